"""A host's id and its command numbers."""

from sabot_protocol.errors import RequestNotAllowed
from sabot_protocol.wire_constants import LAST_COMMAND


class CommandNumbers:
    """Gives each command a number, rising and never twice for the same host id.

    This one starts where it is told. A host that may crash keeps the id and a number it has not yet
    passed on disk, so that after a restart it goes on above every number it ever gave. It must not skip more
    than 1,024 by that.
    """

    def __init__(self, host_id: bytes, first: int = 1) -> None:
        self.host_id = host_id
        self.next = first

    def take(self) -> int:
        """The next number."""
        number = self.next
        if number > LAST_COMMAND:
            raise RequestNotAllowed("this host id has used up its numbers: make a new host id")
        self.next = number + 1
        return number

    def skip_to(self, number: int) -> None:
        """A device knows a number of this host that was not given here: go on above it."""
        if number >= self.next:
            self.next = number + 1
