"""What the device's end of the wire needs of the device: an executor of commands, and an event log."""

from sabot_protocol.errors import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabot_protocol.codec import Values
    from sabot_protocol.ed25519 import SignatureCheck


class Caller:
    """Who asks: the host, and the role and the person (0: nobody) that this request was authorised by."""

    def __init__(self, host_id: bytes, role: int, is_owner: bool, person: int = 0) -> None:
        self.host_id = host_id
        self.role = role
        self.is_owner = is_owner
        self.person = person


class Executor:
    """Executes commands for the wire. This base class refuses them all."""

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """(shuffler state, shoe state, fault, status flags, round id, stack)."""
        return 0, 0, 0, 0, 0, 0

    def on_grid(self) -> bool:
        """Whether bytes may pass the cables only at the ticks of the grid. Allocates nothing."""
        return False

    def idle(self) -> bool:
        """Whether nothing moves, so that flash may be written."""
        return True

    def idle_and_empty(self) -> bool:
        """Whether nothing moves and no card is inside, as far as it is known; if nothing is known, False."""
        return False

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Execute a request that the schema allows this caller; return the answer's values.

        The answer says that the request was accepted and begun; events report its result. Refusal says why
        it was not, and then nothing has happened.
        """
        raise Refusal("not_supported")

    def forget_numbers(self) -> None:
        """Start the numbers of rounds and decks anew: the memory id is a new one."""

    def take_entropy(self, entropy: bytes) -> None:
        """Mix the host's bytes into the generator, now and for all later boots.

        Called at provisioning, before the key is saved. MemoryFailed if the bytes cannot be saved.
        """

    def check_signature(
        self, public: bytes, signature: bytes, text: "Iterable[bytes]"
    ) -> "SignatureCheck":
        """Begin to check a signature (Ed25519) of a text in parts. A board may return something faster."""
        from sabot_protocol.ed25519 import SignatureCheck  # a board loads it when it is needed

        return SignatureCheck(public, signature, text)

    def signatures_checked(self) -> None:
        """No signature is being checked any more: a board may free what it loaded for that."""

    def draw_key(self) -> bytes:
        """32 secret bytes of the generator, empty without a generator; Refusal if it failed."""
        return b""


class EventSink:
    """A persistent log of every event, if the device has one."""

    def add(self, row: bytes, evidence: bool = False) -> None:
        """Append one event: id, clock quality, header and body; evidence also to a ring of its own."""
        raise NotImplementedError

    def skip(self) -> None:
        """Count one event that gets no row."""
