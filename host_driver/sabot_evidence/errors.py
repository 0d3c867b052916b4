"""What can be wrong with keys that sign, and with files of evidence."""


class EvidenceError(Exception):
    """Evidence that cannot be written or read; ``advice`` says what to do."""

    advice = ""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(message)
        if advice is not None:
            self.advice = advice


class PcKeyDamaged(EvidenceError):
    """The file of the PC's key cannot be used."""

    advice = (
        "Restore the file pc.key from a copy. If there is none, move it away: a new key is drawn then, "
        "and the checkpoints say so."
    )


class ChainDamaged(EvidenceError):
    """The newest row, its hash and its checkpoint do not belong together."""

    advice = "Keep the file as it is for whoever examines it; 'sabot evidence verify' says what does not fit."


class SigningKeyUnusable(EvidenceError):
    """A key file that cannot be read, written or used."""

    advice = "Give the file of an Ed25519 key in PEM, and its passphrase if it has one."


class NotCountersigned(EvidenceError):
    """A checkpoint that the floor must not countersign."""

    advice = "Keep the files as they are, and have them verified: 'sabot evidence verify --anchor FILE'."
