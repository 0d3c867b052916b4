"""Who authorises a request on one cable of the device, and the requests about keys, owner and house.

An elevation authorises one request with its message id and body. With a slot's key it also names the request
id. With a certificate it does not: it authorises the next such request (``device_certificates``).
"""

from hashlib import sha256

from sabot_protocol import wire_constants
from sabot_protocol.codec import MessageCodec, enum_number
from sabot_protocol.device_protocol import NO_SLOT, OBSERVER
from sabot_protocol.errors import AnsweredLater, Refusal
from sabot_protocol.key_store import fits
from sabot_protocol.link import SILENCE_MS
from sabot_protocol.mac import digests_equal
from sabot_protocol.schema import ROUND_OPEN_FLAG
from sabot_protocol.session import elevation_proof
from sabot_protocol.wire_constants import BY_CERTIFICATE, BY_SLOT_KEY, DEVICE, FIRST_PERSON, KEY_SIZE, SLOTS

TABLE = enum_number("Role", "table")
SERVICE = enum_number("Role", "service")
SHOE = enum_number("Half", "shoe")
KEY_REQUESTS = ("elevate", "set_key", "remove_key", "key_slots", "evict_owner", "chain_key", "house_key")
"""The requests that ``Credentials`` executes, by the name of its methods."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values
    from sabot_protocol.device_certificates import CertificateDesk
    from sabot_protocol.device_port import DevicePort
    from sabot_protocol.ed25519 import SignatureCheck


class Credentials:
    """Elevations of one session, and the commands about keys and owners."""

    def __init__(self, port: "DevicePort") -> None:
        self._port = port
        self._device = port.device
        self.grant: tuple[int, int, int, bytes] | None = None  # slot, message, request id, hash of the body
        self._granted = [0, 0]  # the newest request id authorised in this session: of commands, of queries
        self.by = (0, 0, 0)  # slot (NO_SLOT: certificate), role, person of the request; zeros: nobody
        self.desk: CertificateDesk | None = None  # from the first certificate or list on

    def begin_session(self) -> None:
        """Forget what was authorised in the session before."""
        self._granted = [0, 0]
        self.grant = None
        if self.desk is not None:
            self.desk.begin_session()

    def drop_grant(self) -> None:
        """Withdraw what was authorised and not used yet."""
        self.grant = None
        if self.desk is not None:
            self.desk.drop_grant()

    def open_desk(self) -> "CertificateDesk":
        """The checks of certificates on this cable, made at the first use: only then a board loads them."""
        if self.desk is None:
            from sabot_protocol.device_certificates import CertificateDesk

            self.desk = CertificateDesk(self._port)
        return self.desk

    def role(self) -> int:
        """The role of the request in hand: of the person who authorised it, or the session's own."""
        return self.by[1] or (TABLE if self._port.owns() else OBSERVER)

    def use(self, message: MessageCodec, request_id: int, body: bytes | memoryview) -> "tuple[int, int, int]":
        """Slot, role and person that authorised this request, which uses it up; zeros if none did."""
        grant = self.grant
        if grant is None or grant[1] != message.id or grant[2] != request_id:
            return (0, 0, 0) if self.desk is None else self.desk.use(message, request_id, body)
        self.grant = None
        if not digests_equal(sha256(body).digest(), grant[3]):
            return 0, 0, 0
        role, person = self._device.keys.holder(grant[0])
        return grant[0], role, person

    def elevate(
        self, scheme: int, slot: int, message: int, request_id: int, body_hash: bytes, proof: bytes
    ) -> "Values":
        """Authorise the request with this message id, request id and body.

        In the scheme BY_CERTIFICATE ``slot`` is the role, and ``request_id`` the elevation's own number.
        """
        device = self._device
        self.grant = None
        if self._port.slot != DEVICE:
            raise Refusal("wrong_role", (OBSERVER,))
        if scheme == BY_CERTIFICATE:
            return self.open_desk().elevate(slot, message, request_id, body_hash, proof)
        if scheme != BY_SLOT_KEY:
            raise Refusal("not_supported")
        key = device.keys.get(slot) if slot >= FIRST_PERSON else None
        if key is None:
            raise Refusal("no_such_key", (slot,))
        found = device.codec.find(message)
        kind = 1 if request_id > wire_constants.LAST_COMMAND else 0
        if request_id == 0 or (found is not None and (found.kind == "query") != bool(kind)):
            raise Refusal("bad_credential", (slot,))  # no such request can have this number
        if request_id <= self._granted[kind] and not self._port.requests.comes_again(request_id):
            raise Refusal("bad_credential", (slot,))  # replayed
        assert self._port.link is not None
        wanted = elevation_proof(
            key, self._port.link.session.transcript, scheme, slot, message, request_id, body_hash
        )
        if not digests_equal(proof, wanted):
            device.note_wrong_proof(slot)
            raise Refusal("bad_credential", (slot,))
        self._granted[kind] = max(self._granted[kind], request_id)
        self.grant = (slot, message, request_id, body_hash)
        return device.keys.holder(slot)

    def set_key(self, slot: int, role: int, person: int, key: bytes) -> "Values":
        """Set a slot's key. Until provisioning ends the owner may fill empty slots; else service may."""
        device = self._device
        if slot >= SLOTS:
            raise Refusal("no_such_key", (slot,))
        if self.by[1] != SERVICE and (not device.keys.open or device.keys.get(slot) is not None):
            raise Refusal("wrong_role", (self.role(),))
        if not fits(slot, role, person):
            raise Refusal("bad_field", (1,))
        if digests_equal(key, bytes(KEY_SIZE)):
            raise Refusal("bad_field", (3,))  # zeros are no secret key
        device.keys.set(slot, key, role, person)
        device.end_sessions(slot, self._port)
        device.emit("key_changed", slot, role, person, self._port.host_id, self.by[2])
        return ()

    def remove_key(self, slot: int) -> "Values":
        """Remove the key of a slot; sessions that were proved with it end."""
        device = self._device
        if slot == DEVICE:
            raise Refusal("bad_field", (0,))  # only presence takes the device from its owner
        if device.keys.get(slot) is None:
            raise Refusal("no_such_key", (slot,))
        role, person = device.keys.holder(slot)
        device.keys.remove(slot)
        device.end_sessions(slot, self._port)
        device.emit("key_removed", slot, role, person, self._port.host_id, self.by[2])
        return ()

    def evict_owner(self, host_id: bytes) -> "Values":
        """End a host's ownership between rounds, or after SILENCE_MS of silence. A repeat does nothing."""
        device = self._device
        owner = device.owner
        if owner is self._port:
            raise Refusal("bad_field", (0,))  # the owner itself uses detach
        if owner is None or owner.host_id != host_id:
            return ()
        _, shoe, _, flags, _, _ = device.executor.status()
        silent_ms = 0 if owner.link is None else owner.link.silent_ms(device.now())
        if flags & ROUND_OPEN_FLAG and silent_ms < SILENCE_MS:
            raise Refusal("wrong_state", (shoe, 0, SHOE))
        device.emit("owner_evicted", host_id, self._port.host_id, self.by[2])
        device.set_owner(None)
        return ()

    def key_slots(self) -> "Values":
        """Whether empty slots may be filled, and slot, role and person of each key."""
        keys = self._device.keys
        slots = keys.slots()
        held = [keys.holder(slot) for slot in slots]
        return (
            1 if keys.open else 0,
            tuple(slots),
            tuple([role for role, _ in held]),
            tuple([person for _, person in held]),
        )

    def chain_key(self) -> "Values":
        """The event chain's first key, for the first session that asks while a new device is provisioned."""
        device = self._device
        was_given = device.first_key_given()
        found = device.take_first_key(self._port.link)
        if found is None:
            raise Refusal("provisioning_closed")
        key, boot_id, n, hash = found
        if not was_given:
            device.emit("chain_key_given", self._port.host_id)
        return boot_id, n, hash, key

    def house_key(self, key: bytes, site: str, number: int, old_until_s: int, proof: bytes) -> "Values":
        """Bind the device to a house, or to another key of it, which the old key signed."""
        from sabot_protocol.house_lines import is_key, is_site, rotation_line

        device, house = self._device, self._device.house
        if self.by[1] != SERVICE and (not device.keys.open or house.is_bound()):
            raise Refusal("wrong_role", (self.role(),))
        if not is_key(key):
            raise Refusal("bad_field", (0,))
        if not is_site(site):
            raise Refusal("bad_field", (1,))
        if not device.executor.idle():
            raise Refusal("busy", (device.events.free(),))  # flash may be written only while nothing moves
        person = self.by[2]
        if not house.key or house.key == key:
            self._bind(key, site, person)
            return ()
        port, request_id = self._port, self._port.requests.current
        link = port.link
        old = house.key
        line = rotation_line(old, key, number, old_until_s)

        def begin() -> "SignatureCheck":
            return device.executor.check_signature(old, proof, (line,))

        def done(fits: bool) -> None:
            if port.link is not link:
                return  # the session in which service authorised this is over
            refused = None
            try:
                if not fits:
                    device.note_wrong_proof(NO_SLOT)
                    raise Refusal("bad_proof")
                if not device.executor.idle():
                    raise Refusal("busy", (device.events.free(),))
                self._bind(key, site, person)
            except Refusal as refusal:
                refused = refusal
            port.requests.answer_later("house_key", request_id, refused)

        device.check_signature(port, begin, done)
        raise AnsweredLater

    def _bind(self, key: bytes, site: str, person: int) -> None:
        device, house = self._device, self._device.house
        if (house.key, house.site) == (key, site):
            return
        count = house.count
        if house.damaged:  # the count is lost: a random one, so that no statement signed before fits
            count = int.from_bytes(device.random(4), "little")
        try:
            house.write(key, site, count)
        except OSError:
            raise Refusal("memory_failed") from None
        device.emit("house_changed", key, site, self._port.host_id, person)
