"""The device's checks of certificates on one cable, and of the elevations and revocations that go with them.

A board loads this module with the first certificate or list of revocations. Signatures are checked later, in
slices, while nothing moves; see ``DeviceProtocol.work``.
"""

from hashlib import sha256

from sabot_protocol import ticks
from sabot_protocol.codec import MessageCodec, enum_number
from sabot_protocol.device_protocol import NO_SLOT, OBSERVER, UNKNOWN_TIME
from sabot_protocol.errors import AnsweredLater, MemoryDamaged, MemoryFailed, Refusal
from sabot_protocol.mac import digests_equal
from sabot_protocol.schema import HIDDEN, MAX_REVOKED
from sabot_protocol.wire_constants import CERTIFICATE_ID, DEVICE, KEY_SIZE

AFTER_WRONG_MS = 1000  # after a wrong signature this cable refuses what this module takes
GRANT_S = 60  # from the end of an elevation's check until the request must be here
RECORD = "revocations"
HEAD = KEY_SIZE + 4  # the house's key, the list's number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Values
    from sabot_protocol.device_port import DevicePort
    from sabot_protocol.ed25519 import SignatureCheck
    from sabot_protocol.record_store import RecordStore


class Certificate:
    """What the house signed for a person."""

    def __init__(self, house: bytes, site: str, values: "Values") -> None:
        """``values`` of the message ``certificate``."""
        self.house = house
        self.site = site
        self.key: bytes = values[0]
        self.not_after_s: int = values[1]
        self.person: str = values[2]
        self.roles: int = values[3]
        self.id = b""

    def number(self) -> int:
        """The person's number in events: the first four bytes of the certificate's id."""
        return int.from_bytes(self.id[:4], "little")


class CertificateDesk:
    """The certificate that was shown on one cable, and what it authorised."""

    def __init__(self, port: "DevicePort") -> None:
        self._port = port
        self._device = port.device
        self._shown: Certificate | None = None
        self._newest = 0  # number of the newest proof that was accepted in this session
        # message, hash of the body, role, uptime in seconds at which it ends
        self._grant: tuple[int, bytes, int, int] | None = None
        self._list: tuple[int, int, bytearray] | None = None  # number, count, ids so far
        self._wrong_at: int | None = None  # ticks of the last wrong signature
        self.used: Certificate | None = None
        """The certificate that authorised the current request."""

    def begin_session(self) -> None:
        """Forget what was authorised and handed over in the session before."""
        self._newest, self._list = 0, None
        self.drop_grant()

    def drop_grant(self) -> None:
        """Withdraw what was authorised and not used yet."""
        self._grant = None

    def use(
        self, message: MessageCodec, request_id: int, body: "bytes | memoryview"
    ) -> "tuple[int, int, int]":
        """NO_SLOT, role and number of the person who authorised a request; zeros if nobody did."""
        grant, shown, self.used = self._grant, self._shown, None
        if grant is None or shown is None or grant[0] != message.id:
            return 0, 0, 0
        if self._device.uptime_s() >= grant[3]:
            self._grant = None
            return 0, 0, 0
        hash = sha256(body)
        for name, _ in HIDDEN:
            if name == message.name and len(body) >= KEY_SIZE:
                assert self._port.link is not None
                secret = self._port.link.session.hide(message.id, request_id, bytes(body[-KEY_SIZE:]))
                hash = sha256(bytes(body[:-KEY_SIZE]) + secret)
        if not digests_equal(hash.digest(), grant[1]):
            return 0, 0, 0  # another request of the same kind
        self._grant = None
        self.used = shown
        return NO_SLOT, grant[2], shown.number()

    def tell(self, message: int, request_id: int, role: int) -> None:
        """Report who authorised the request in hand."""
        used, host_id = self.used, self._port.host_id
        assert used is not None
        self._device.emit("certificate_used", host_id, used.id, used.person, role, message, request_id)

    # -- requests -------------------------------------------------------------------------------

    def certificate(
        self, key: bytes, not_after_s: int, person: str, roles: int, site: str, signature: bytes
    ) -> "Values":
        """Take a certificate, once the house's signature has been checked."""
        house, now_s = self._house(), self._now_s()
        self._wait()
        if site != self._device.house.site:
            raise refused("wrong_site")
        if now_s > not_after_s:
            raise refused("expired")
        shown = Certificate(house, site, (key, not_after_s, person, roles))

        def begin() -> "SignatureCheck":
            from sabot_protocol.house_lines import ROLES, certificate_line, certificate_text, is_site

            text = b""
            if is_site(person) and not roles & ~sum([1 << role for role, _ in ROLES]):
                text = certificate_text(house, key, not_after_s, person, roles, site)
                shown.id = sha256(text).digest()[:CERTIFICATE_ID]
            return self._device.executor.check_signature(house, signature, (certificate_line(text),))

        def done(fits: bool) -> "Values":
            if not fits:
                raise self._wrong("forged")
            self._check_good(shown)
            self._shown = shown
            self.drop_grant()
            return ()

        self._later("certificate", begin, done)
        raise AnsweredLater

    def elevate(self, role: int, message: int, number: int, body_hash: bytes, proof: bytes) -> "Values":
        """Authorise the next request with this message id and body, once the person's signature was checked.

        ``number`` is the elevation's own and rises in a session; it is no request id.
        """
        self.drop_grant()
        house, now_s, shown = self._house(), self._now_s(), self._shown
        self._wait()
        if shown is None or shown.house != house:
            raise refused("not_shown")
        if now_s > shown.not_after_s:
            raise refused("expired")
        found = self._device.codec.find(message)
        if not shown.roles >> role & 1 or found is None or not found.roles >> role & 1:
            raise refused("role_missing")
        if number <= self._newest:
            raise refused("shown_before")

        def begin() -> "SignatureCheck":
            from sabot_protocol.house_lines import elevation_line

            assert self._port.link is not None
            line = elevation_line(self._port.link.session.transcript, role, message, number, body_hash)
            return self._device.executor.check_signature(shown.key, proof, (line,))

        def done(fits: bool) -> "Values":
            if not fits:
                raise self._wrong("wrong_proof")
            self._check_good(shown)
            self._newest = number
            self._grant = (message, body_hash, role, self._device.uptime_s() + GRANT_S)
            return role, shown.number()

        self._later("elevate", begin, done)
        raise AnsweredLater

    def revocations(self, number: int, count: int, first: int, ids: bytes, signature: bytes) -> "Values":
        """Take a part of the house's list, and keep the list once its signature has been checked."""
        device, house = self._device, self._house()
        if not device.executor.idle():
            raise Refusal("busy", (device.events.free(),))
        self._wait()
        known, newest = load(device.memory(), house)[:2]
        if known and number < newest:
            raise refused("old_list")
        if known and number == newest:
            return 1, newest, 0
        if not first and not signature:
            try:
                self._list = (number, count, bytearray())
            except MemoryError:
                raise Refusal("memory_failed") from None
        if self._list is None or self._list[:2] != (number, count):
            raise refused("bad_list")
        taken = self._list[2]
        size = CERTIFICATE_ID
        if first * size != len(taken) or len(ids) % size or first * size + len(ids) > count * size:
            raise refused("bad_list")
        if not signature:
            taken.extend(ids)
            return 1 if known else 0, newest, len(taken) // size
        if first != count:
            raise refused("bad_list")

        def begin() -> "SignatureCheck":
            from sabot_protocol.house_lines import revocation_parts

            return device.executor.check_signature(house, signature, revocation_parts(house, number, taken))

        def done(fits: bool) -> "Values":
            self._list = None
            if not fits:
                raise self._wrong("bad_list")
            if house != device.house.key:
                raise refused("no_house")
            known, newest = load(device.memory(), house)[:2]
            if known and number < newest:
                raise refused("old_list")  # another cable was faster
            save(device.memory(), house, number, taken)
            device.emit("revocations_taken", number, count, self._port.host_id)
            for port in device.sessions:
                if port.credentials.desk is not None:
                    port.credentials.desk.drop_grant()
            return 1, number, 0

        self._later("revocations", begin, done)
        raise AnsweredLater

    # -- checks ---------------------------------------------------------------------------------

    def _house(self) -> bytes:
        """The house's key; Refusal without one, or in a session not proved with the device's key."""
        if self._port.slot != DEVICE:
            raise Refusal("wrong_role", (OBSERVER,))
        if not self._device.house.key:
            raise refused("no_house")
        return self._device.house.key

    def _now_s(self) -> int:
        """UTC, or ``latest_s`` if a host has set the clock back. Refusal if the time is unknown."""
        seconds, _, quality = self._device.utc()
        if quality == UNKNOWN_TIME:
            raise refused("time_unknown")
        return max(seconds, self._device.latest_s)

    def _check_good(self, shown: Certificate) -> None:
        """Refusal for a changed house key or site, an expired or a revoked certificate."""
        device = self._device
        if device.house.key != shown.house:
            raise refused("no_house")
        if device.house.site != shown.site:
            raise refused("wrong_site")
        if self._now_s() > shown.not_after_s:
            raise refused("expired")
        known, _, ids = load(device.memory(), shown.house)
        if not known:
            raise refused("no_revocations")
        at = ids.find(shown.id, HEAD)
        while at >= 0:
            if not (at - HEAD) % CERTIFICATE_ID:
                raise refused("revoked")
            at = ids.find(shown.id, at + 1)

    def _wrong(self, reason: str) -> Refusal:
        """A signature is wrong: count it, and refuse what comes next on this cable for AFTER_WRONG_MS."""
        self._wrong_at = self._device.now()
        self._device.note_wrong_proof(NO_SLOT)
        return refused(reason)

    def _wait(self) -> None:
        """Refusal during AFTER_WRONG_MS after a wrong signature."""
        if self._wrong_at is None:
            return
        passed = ticks.diff(self._device.now(), self._wrong_at)
        if 0 <= passed < AFTER_WRONG_MS:
            raise Refusal("too_soon", (AFTER_WRONG_MS - passed,))
        self._wrong_at = None

    def _later(
        self, name: str, begin: "Callable[[], SignatureCheck]", done: "Callable[[bool], Values]"
    ) -> None:
        """Have a signature checked, and answer the query in hand then, if its session still runs."""
        port = self._port
        link, request_id = port.link, port.requests.current

        def answer(fits: bool) -> None:
            if port.link is not link:
                return
            refusal, values = None, ()
            try:
                values = done(fits)
            except Refusal as found:
                refusal = found
            except MemoryFailed:
                refusal = Refusal("memory_failed")
            port.requests.answer_later(name, request_id, refusal, values)

        self._device.check_signature(port, begin, answer)


def refused(reason: str) -> Refusal:
    """A refusal with a reason of ``CertificateReason``."""
    return Refusal("certificate_refused", (enum_number("CertificateReason", reason),))


def load(memory: "RecordStore", house: bytes) -> "tuple[bool, int, bytes]":
    """Whether there is a list of this house, its number, and the record, whose ids begin at HEAD.

    A list of another house, or one that cannot be read, is none: certificates are refused then.
    """
    try:
        record = memory.load(RECORD) or b""
    except (MemoryDamaged, MemoryFailed):
        record = b""
    if len(record) < HEAD or record[:KEY_SIZE] != house:
        return False, 0, b""
    return True, int.from_bytes(record[KEY_SIZE:HEAD], "little"), record


def save(memory: "RecordStore", house: bytes, number: int, ids: "bytes | bytearray") -> None:
    """Keep a list of a house for good; MemoryFailed if it cannot be kept."""
    assert len(ids) <= MAX_REVOKED * CERTIFICATE_ID
    memory.save(RECORD, house + number.to_bytes(4, "little") + ids)
