"""What the host's end of the wire reports, in order."""


class Notification:
    """The base of what ``HostProtocol.take_notifications`` returns."""


class SessionUp(Notification):
    """A session is proved and the device takes requests from this host."""

    def __init__(
        self, serial: bytes, boot_id: int, memory_id: bytes, version: tuple[int, int], rebooted: bool,
        limited: bool, owner: bool, flags: int,
    ) -> None:
        self.serial = serial
        self.boot_id = boot_id
        self.memory_id = memory_id
        self.version = version
        self.rebooted = rebooted  # since the last session of this end
        self.limited = limited  # versions differ: frozen messages only
        self.owner = owner
        self.flags = flags  # bits of IdentityFlag, as the device proved them


class SessionDown(Notification):
    """The session is over, or could not be made; ``reason`` is its name."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class AttachRefused(Notification):
    """The session is proved, but the device refused the mode asked for."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body


class RequestAnswered(Notification):
    """A request's answer: status 0 and the answer's fields, or an error's code and details."""

    def __init__(self, request_id: int, message: int, status: int, body: bytes) -> None:
        self.request_id = request_id
        self.message = message
        self.status = status
        self.body = body


class RequestFailed(Notification):
    """A request ended without an answer from the device; ``reason`` is one of host_protocol's names."""

    def __init__(self, request_id: int, reason: str) -> None:
        self.request_id = request_id
        self.reason = reason


class EventReceived(Notification):
    """The device's next event, once and in order."""

    def __init__(
        self, boot_id: int, n: int, ticks_ms: int, utc_s: int, utc_ms: int, quality: int, message: int,
        body: bytes,
    ) -> None:
        self.boot_id = boot_id
        self.n = n
        self.ticks_ms = ticks_ms
        self.utc_s = utc_s
        self.utc_ms = utc_ms
        self.quality = quality
        self.message = message
        self.body = body


class EventGap(Notification):
    """Events after ``after`` and before ``before`` are lost; ``size`` is None if their number is unknown."""

    def __init__(
        self, reason: int, size: int | None, after: tuple[int, int], before: tuple[int, int]
    ) -> None:
        self.reason = reason
        self.size = size
        self.after = after
        self.before = before
