"""A host's requests that have not ended: in which order they are sent, which wait, which are too late."""

from sabot_protocol import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import MessageCodec

BUSY_MS = 50  # before requests are sent again that the device was too busy for


class PendingRequest:
    """A request until it ends."""

    def __init__(self, request_id: int, message: "MessageCodec", body: bytes) -> None:
        self.request_id = request_id
        self.message = message
        self.body = body
        self.asked_of: tuple[bytes, int] | None = None  # the device's memory and boot id then, if known
        self.memory_id = b""  # of the device it was sent to; empty until then
        self.boot_id = 0  # of the device it was sent to last
        self.flags = 0
        self.expires: int | None = None
        self.by: tuple[int, bytes] | None = None  # the slot and the key of the person who authorises it
        self.elevated = False  # in this session
        self.refused: tuple[int, bytes] | None = None  # the device's refusal of that elevation
        self.sent_here = False  # in this session
        self.held = False  # not to be sent before ``release``

    def forget_elevation(self) -> None:
        """The elevation does not count any more: the request needs a new one."""
        self.elevated, self.refused = False, None


class PendingRequests:
    """All requests of one host that have not ended, by request id."""

    def __init__(self) -> None:
        self.by_id: dict[int, PendingRequest] = {}
        self._unsent: list[int] = []
        self._busy: list[int] = []  # the device was too busy for them
        self._retry_at: int | None = None
        self._next_expiry: int | None = None  # when the next request may expire

    def add(self, asked: PendingRequest, now: int, timeout_ms: int | None) -> None:
        """Add a new request; it is sent next, unless it is held."""
        if timeout_ms is not None:
            asked.expires = ticks.add(now, timeout_ms)
            if self._next_expiry is None or ticks.diff(asked.expires, self._next_expiry) < 0:
                self._next_expiry = asked.expires
        self.by_id[asked.request_id] = asked
        if not asked.held:
            self._unsent.append(asked.request_id)

    def release(self, request_id: int) -> None:
        """A request that was held may be sent; one that has ended meanwhile is not."""
        asked = self.by_id.get(request_id)
        if asked is not None and asked.held:
            asked.held = False
            self._unsent.append(request_id)

    def begin_session(self) -> None:
        """Every request that is not held is to be sent in the new session."""
        for asked in self.by_id.values():
            asked.forget_elevation()
            asked.sent_here = False
        self._unsent = sorted([request_id for request_id, asked in self.by_id.items() if not asked.held])
        self._busy, self._retry_at = [], None

    def next_unsent(self) -> PendingRequest | None:
        """The request to send next; None if there is none, or if all wait because the device is busy."""
        while self._unsent and not self._busy:
            asked = self.by_id.get(self._unsent[0])
            if asked is not None:
                return asked
            self._unsent.pop(0)
        return None

    def take_unsent(self) -> None:
        """Take the request that ``next_unsent`` returned off the list."""
        self._unsent.pop(0)

    def device_busy(self, asked: PendingRequest) -> None:
        """The device was too busy for a request: it is undecided, and sent again before the others."""
        self._busy.append(asked.request_id)
        asked.forget_elevation()
        for request_id in self._unsent:
            if request_id in self.by_id:
                self.by_id[request_id].forget_elevation()

    def retry(self, now: int) -> None:
        """Send the requests again that the device was too busy for, some time after the first of them."""
        if not self._busy:
            return
        if self._retry_at is None:
            self._retry_at = ticks.add(now, BUSY_MS)
        elif ticks.diff(now, self._retry_at) >= 0:
            self._unsent = sorted(self._busy + self._unsent)
            self._busy, self._retry_at = [], None

    def expired(self, now: int) -> "list[int]":
        """The requests whose time is up, in the order of their ids."""
        over: list[int] = []
        if self._next_expiry is None or ticks.diff(now, self._next_expiry) < 0:
            return over
        self._next_expiry = None
        for request_id in sorted(self.by_id):
            expires = self.by_id[request_id].expires
            if expires is None:
                continue
            if ticks.diff(now, expires) >= 0:
                over.append(request_id)
            elif self._next_expiry is None or ticks.diff(expires, self._next_expiry) < 0:
                self._next_expiry = expires
        return over

    def has_work(self) -> bool:
        """Whether ``poll`` has something to do with them before ``deadline``."""
        return bool(self._unsent) or (bool(self._busy) and self._retry_at is None)

    def deadline(self) -> int | None:
        """The tick at which a request expires or is sent again, or None."""
        due, retry = self._next_expiry, self._retry_at
        if retry is not None and (due is None or ticks.diff(retry, due) < 0):
            due = retry
        return due
