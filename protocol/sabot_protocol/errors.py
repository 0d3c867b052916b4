"""What can go wrong on the wire, as typed errors. MicroPython allows one base each."""


class ProtocolError(Exception):
    """The base of every error this package raises."""


class FrameSize(ProtocolError):
    """A payload does not fit one frame, or the frame size the peer advertised."""


class FieldError(ProtocolError):
    """A value that the schema does not allow; says which message, which field and why."""

    def __init__(self, message: str, field: str | None, index: int, why: str) -> None:
        where = message if field is None else message + "." + field
        super().__init__(where + ": " + why)
        self.message = message
        self.field = field
        self.index = index
        self.why = why


class UnknownMessage(ProtocolError):
    """A message id or name that this side's schema does not have."""


class RequestNotAllowed(ProtocolError):
    """A request this end must not make now; the text says why and what to do."""


class Refusal(ProtocolError):
    """A request that the device refuses: an error of the schema with its details."""

    def __init__(self, error: str, values: tuple[int | bytes | str, ...] = ()) -> None:
        super().__init__(error)
        self.error = error
        self.values = values


class AnsweredLater(ProtocolError):
    """A query whose answer takes longer than one turn of the device: it follows."""


class MemoryFailed(ProtocolError):
    """Critical memory could not be written; nothing that depends on it may happen."""


class MemoryDamaged(ProtocolError):
    """Critical memory holds a record that is neither the old nor the new one."""
