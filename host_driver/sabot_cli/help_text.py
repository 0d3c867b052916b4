"""The example at the end of a command's help; the suite runs each."""


def example(command: str) -> str:
    """A command's ``epilog``: an example on a line of its own, which click does not wrap."""
    return "\b\nExample:\n  " + command
