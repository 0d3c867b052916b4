"""Randomness: raw noise under health tests, a generator seeded from it, and unbiased draws."""


class RngFailed(Exception):
    """The generator or its noise source failed a test, which the text names. Nothing is shuffled then."""


def wipe(secret: bytearray) -> None:
    """Overwrite a secret in place."""
    for index in range(len(secret)):
        secret[index] = 0
