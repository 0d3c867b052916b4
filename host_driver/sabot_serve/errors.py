"""What can keep a table's service from running."""

from sabot_driver.errors import SabotError


class ServiceRunning(SabotError, BlockingIOError):
    """Another process runs this table."""

    advice = "Join it with 'sabot play' or at its pages, or end it first."


class ServiceGone(SabotError, ConnectionError):
    """The process that runs a table does not answer."""

    advice = "Look at that process, or end it and start it again."


class ServiceRefused(SabotError):
    """The process that runs a table refused a request; the text is its own. ``status`` is HTTP's."""

    def __init__(self, message: str, advice: str = "", status: int = 0, reason: str = "") -> None:
        super().__init__(message, advice)
        self.status = status
        self.reason = reason


class CredentialRefused(ServiceRefused):
    """The process that runs a table refused what a person showed: a wrong PIN, or nobody's badge or key."""


class OtherVersion(SabotError):
    """The process that runs a table is of another version."""

    advice = "Use the same version of this program for both: end that process and start it again."


class ServiceFileFailed(SabotError, OSError):
    """The files by which programs find a table's service cannot be used."""

    advice = "Check the disk and the rights of the folder."
