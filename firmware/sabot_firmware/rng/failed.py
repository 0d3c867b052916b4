"""Why there is no randomness."""


class RngFailed(Exception):
    """The generator or its noise cannot be trusted; the text says which test failed. Nothing is shuffled."""
