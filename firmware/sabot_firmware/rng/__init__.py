"""Randomness: raw noise under health tests, a generator seeded from it, and draws without bias."""


class RngFailed(Exception):
    """The generator or its noise cannot be trusted; the text says which test failed. Nothing is shuffled."""


def wipe(secret: bytearray) -> None:
    """Overwrite a secret where it lies."""
    for index in range(len(secret)):
        secret[index] = 0
