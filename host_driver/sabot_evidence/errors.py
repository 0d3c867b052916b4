"""What can be wrong with the key that signs checkpoints, and with files of evidence."""


class EvidenceError(Exception):
    """Evidence that cannot be written or read; ``advice`` says what to do."""

    advice = ""


class PcKeyDamaged(EvidenceError):
    """The file of the PC's key cannot be used."""

    advice = (
        "Restore the file pc.key from a copy. If there is none, move it away: a new key is drawn then, "
        "and the checkpoints say so."
    )


class ChainDamaged(EvidenceError):
    """The newest row, its hash and its checkpoint do not belong together."""

    advice = "Keep the file as it is for whoever examines it; 'sabot evidence verify' says what does not fit."
