"""What can be wrong with a laboratory's package and with what it is made of."""

from sabot_evidence.errors import EvidenceError


class LabPackageError(EvidenceError):
    """A package that cannot be built, or that does not hold."""


class SourceUnusable(LabPackageError):
    """A source tree that no package can be made of."""

    advice = "Give the folder of a clean git checkout: commit or remove what is changed."


class ResultsUnusable(LabPackageError):
    """Test results that are not of this build."""

    advice = "Run 'make lab-results' on the commit of the package; it names the commit in the results."


class PackageBad(LabPackageError):
    """A package whose files, manifest or signature do not fit each other."""

    advice = "Get the package again from the maker, and compare the key with what the maker told you."
