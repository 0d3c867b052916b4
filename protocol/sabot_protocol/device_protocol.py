"""The device's end of the wire: what all its cables share.

Identity, keys, command ledger, events, owner and clock are here; ``device_port`` is one cable with its
session. Requests about the machine go to the executor, which is the device's controller.
"""

import struct

from sabot_protocol import frame, ticks
from sabot_protocol.codec import CODEC, Codec, enum_number
from sabot_protocol.errors import MemoryFailed, Refusal
from sabot_protocol.event_chain import CHECKPOINT_EVERY, EVENT_HEAD, TAG_SIZE, EventChain, first_hash
from sabot_protocol.event_store import OVERFLOW, REBOOT, EventStore
from sabot_protocol.executor import Caller as Caller
from sabot_protocol.executor import EventSink as EventSink
from sabot_protocol.executor import Executor as Executor
from sabot_protocol.grid import Grid
from sabot_protocol.house import HouseRecord
from sabot_protocol.key_store import OPEN_S, KeyStore
from sabot_protocol.ledger import MAX_SKIPPED, SKIPPED_EACH_S, Ledger
from sabot_protocol.provisioning import KEYS_DAMAGED, PresenceContact, Provisioning, ProvisioningMark
from sabot_protocol.record_store import COMMAND_SLOTS, RecordStore, load_all
from sabot_protocol.schema import MAX_WINDOW
from sabot_protocol.schema_hash import SCHEMA_HASH
from sabot_protocol.wire_constants import DEVICE, KEY_SIZE, NO_HOST

OBSERVER = enum_number("Role", "observer")
UNKNOWN_TIME = enum_number("ClockQuality", "unknown")
TIME_SET = enum_number("ClockQuality", "set")
TIME_STALE = enum_number("ClockQuality", "stale")

LAST_SECOND = 0xFFFFFFFF  # what a u32 of UTC seconds can say
STALE_AFTER_S = 24 * 3600  # since the host last set the clock
LEAP_S = 24 * 3600  # a person authorises a step forward by more: it can end the hours of every deck
FOLD_S = 60  # wrong proofs within this time of one that was told are told together
LONGEST_FOLD_S = 3600  # while they go on, the time doubles up to this: they must not flush other events
NO_SLOT = 255
CHECKPOINT_AFTER = ("round_ended", "round_voided")
# Events that a host can cause at will and that are no evidence: they must not flush the log.
CHATTER = ("located", "buttons", "clock_changed", "owner_changed", "host_started", "floor_called")
MOST_CHATTER = 8
# Events that the log keeps in a ring of their own: faults, counts, voids, credentials, settings, calibration,
# decks, reveals, presence, resets.
EVIDENCE = (
    "fault_raised", "fault_cleared", "out_of_order_changed", "stopped", "deck_counted", "round_ended",
    "deck_delivered", "shoe_ended", "emptied", "purged", "path_inspected_by", "round_voided",
    "elevation_used", "key_changed", "key_removed", "owner_evicted", "proofs_refused", "chain_key_given",
    "chain_begun", "house_changed", "game_changed", "calibrated", "deck_registered", "deck_removed",
    "faces_revealed", "presence_shown", "provisioning_ended", "reset_used",
    "certificate_used", "revocations_taken",
)  # fmt: skip
# Of those a host can cause some at will, without a person: so many rows, then one an hour. The first reveal
# of each round is not counted among them.
CHEAP_EVIDENCE = ("proofs_refused", "stopped", "faces_revealed")
MOST_CHEAP = 64
MEMORY_LOST = enum_number("GapReason", "memory_lost")
CHAIN_LOST = enum_number("ChainReason", "memory_lost")
FIRST_BOOT = enum_number("ChainReason", "first_boot")
RESET = ("boot", "events", "hosts", "proofs") + tuple(["command.%d" % slot for slot in range(COMMAND_SLOTS)])

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value, Values
    from sabot_protocol.device_port import DevicePort
    from sabot_protocol.ed25519 import SignatureCheck
    from sabot_protocol.link import Link

    # the cable, how the check begins, who is told whether the signature fits, and the check once it has begun
    PendingCheck = tuple[
        DevicePort, Callable[[], SignatureCheck], Callable[[bool], None], SignatureCheck | None
    ]


class DeviceIdentity:
    """What a device tells every host about itself, without proof."""

    def __init__(self, serial: bytes, model: str, version: str, flags: int = 0) -> None:
        self.serial = serial
        self.model = model
        self.version = version
        self.flags = flags


class DeviceProtocol:
    """Everything the device's ports share."""

    def __init__(
        self,
        identity: DeviceIdentity,
        memory: RecordStore,
        executor: Executor,
        random: "Callable[[int], bytes]",
        now: int,
        boot_reason: int = enum_number("BootReason", "power"),
        window: int = MAX_WINDOW,
        max_payload: int = frame.MAX_PAYLOAD,
        event_capacity: int = 64,
        codec: Codec = CODEC,
        schema_hash: bytes = SCHEMA_HASH,
        log: "EventSink | None" = None,
        mark: "ProvisioningMark | None" = None,
        reopen: "Callable[[], RecordStore] | None" = None,
        opened: bool = False,
        house: "HouseRecord | None" = None,
    ) -> None:
        """``mark`` says in another chip whether the device ever had a key, ``house`` whose the device is.

        ``reopen`` opens critical memory again where ``memory`` is ``UnusableStore``. ``opened`` says that a
        person has just held the presence contact, so provisioning is open.
        """
        self.identity = identity
        self.executor = executor
        self.log = log
        self.codec = codec
        self.schema_hash = schema_hash
        self.random = random
        self.window = window
        self.max_payload = max_payload
        self._memory = memory
        self._reopen = reopen
        self._contact = PresenceContact()
        self.restart_required = False
        """Somebody at the contact had keys cleared that were out of reach: the device is to begin anew."""
        self.keys = KeyStore(memory)
        self.chain = EventChain(memory)
        self._unchecked = 0  # events since the last checkpoint
        self._chatter_left = MOST_CHATTER  # rows of CHATTER that the log still takes
        self._chatter_minute = 0  # of uptime: when that was counted last
        self._cheap_left = MOST_CHEAP  # rows that a host caused at will and the ring of evidence still takes
        self._cheap_hour = 0
        self._revealed_round = 0  # the newest round whose first reveal is in that ring
        # While a new device is provisioned: first key, boot id and n of the first event, first hash
        self._first_key: tuple[bytes, int, int, bytes] | None = None
        self._first_key_for: Link | None = None  # the session that has it
        self._checks: list[PendingCheck] = []  # signatures to check, one for each cable at most
        self.owner: DevicePort | None = None
        self.sessions: list[DevicePort] = []  # the cables that have one
        self.handshakes = 0
        self.skipped = 0  # command numbers that hosts passed over in this boot
        self._open_until = 0  # uptime in seconds at which the slots of a new device close
        self._run = (NO_HOST, 0)  # the last owner, and which run of its program
        self._now = now
        self.grid = Grid(now)
        self._uptime_s = 0
        self._uptime_ms = 0
        self._utc: tuple[int, int, int] | None = None  # seconds, ms, at this uptime (ms)
        self._utc_set_s = 0
        self._trusted_s: int | None = None  # UTC when this boot began, from which leaps are told
        self.latest_s = 0
        """The latest UTC from which the clock was set back, without a person's authority, in this boot."""
        usable = True
        reset = False
        try:
            records = load_all(memory, RESET)
            reset = records is None or self.chain.damaged or (len(records) > 0 and "boot" not in records)
            if records is None or reset:
                # Damaged, or a cut while that was put right: a new memory id tells hosts what is forgotten.
                records = {}
                for name in RESET:
                    memory.save(name, b"")
        except MemoryFailed:
            usable = False
            records = {}
        boot = records.get("boot", b"")
        if boot:
            self.memory_id = boot[:4]
            self.boot_id = struct.unpack_from("<I", boot, 4)[0] + 1
        else:
            self.memory_id = random(4)
            self.boot_id = 1
        try:
            self._save_boot(memory)
        except MemoryFailed:
            usable = False
        self.house = house if house is not None else HouseRecord()
        self.provisioning = Provisioning(
            self.keys, mark if mark is not None else ProvisioningMark(), usable, self.house
        )
        self.ledger = Ledger(memory, records)
        self.events = EventStore(memory, records, self.chain, self.boot_id, event_capacity)
        self._proofs_total, self._proofs_untold = 0, 0
        proofs = records.get("proofs", b"")
        if len(proofs) == 8:
            self._proofs_total, self._proofs_untold = struct.unpack("<II", proofs)
        self._proofs_slot = NO_SLOT
        self._proofs_told_s: int | None = None  # uptime of the last event about them
        self._proofs_fold_s = FOLD_S
        lost = self.chain.lost_in_reboot()
        self.emit("booted", boot_reason)
        if lost is not None:
            self.emit("events_lost", MEMORY_LOST if reset else REBOOT, *lost)
        if usable and not self.chain.begun() and self.keys.get(DEVICE) is not None:
            try:
                self._begin_chain(CHAIN_LOST if self.chain.damaged else FIRST_BOOT, random(KEY_SIZE))
            except MemoryFailed:
                usable = False  # tried again at the next boot
        self.checkpoint()
        self._tell_proofs()
        if opened:
            self.provisioning.open_window(0)
            executor.forget_numbers()
            self.emit("presence_shown", KEYS_DAMAGED, self.provisioning.state())

    def _save_boot(self, memory: RecordStore) -> None:
        memory.save("boot", self.memory_id + struct.pack("<I", self.boot_id))

    def renew_memory_id(self) -> None:
        """Draw a new memory id: hosts see that all numbers start anew. MemoryFailed if it cannot be saved."""
        self._renew_memory_id(self._memory)

    def _renew_memory_id(self, memory: RecordStore) -> None:
        """The old id goes first: after a cut no device with that id says that its commands never came."""
        for name in RESET:
            if name not in ("events", "proofs"):
                memory.save(name, b"")
        self.memory_id = self.random(4)
        self._save_boot(memory)
        self.events.forget_boots(memory)
        self.ledger = Ledger(memory, {})

    def update_contact(self, closed: bool) -> None:
        """Take the level of the contact in the logic compartment; held for long enough it clears the keys."""
        if not self._contact.held(closed, self._now):
            return
        was = self.provisioning.state()
        for port in list(self.sessions):
            port.close()
        try:
            memory = self._memory if self._reopen is None else self._reopen()
            self.provisioning.clear(memory, self._uptime_s)
            self._renew_memory_id(memory)
            self.restart_required = self._reopen is not None
            if not self.restart_required:
                self.executor.forget_numbers()
        except (MemoryFailed, OSError):
            self.provisioning.damaged = True
        if not self.restart_required:  # else the next beginning says so
            self.emit("presence_shown", was, self.provisioning.state())

    # -- events and their chain -----------------------------------------------------------------

    def emit(self, name: str, *values: "Value") -> int:
        """Report something; it reaches the owner exactly once, or is named in a gap."""
        n = self._add(name, values)
        if self._unchecked >= CHECKPOINT_EVERY - 1 or name in CHECKPOINT_AFTER:
            self.checkpoint()
        return n

    def _add(self, name: str, values: "Values", sure: bool = False) -> int:
        message = self.codec.named(name)
        quality, head = self._event_head()
        body = head + message.pack(values)
        n = self.events.add(message.id, quality, body, sure)
        self._unchecked += 1
        if self.log is not None:
            if name in CHATTER and not self._may_chatter():
                self.log.skip()
            else:
                self.log.add(bytes((message.id, quality)) + body, self._is_evidence(name, values))
        return n

    def _may_chatter(self) -> bool:
        """Whether an event of CHATTER may still have a row: a few at once, then one a minute."""
        minute = self._uptime_s // 60
        if minute > self._chatter_minute:
            self._chatter_left = min(self._chatter_left + minute - self._chatter_minute, MOST_CHATTER)
            self._chatter_minute = minute
        if not self._chatter_left:
            return False
        self._chatter_left -= 1
        return True

    def _is_evidence(self, name: str, values: "Values") -> bool:
        """Whether an event has a row in the ring of evidence."""
        if name not in EVIDENCE:
            return False
        if name == "faces_revealed" and values[0] > self._revealed_round:
            self._revealed_round = values[0]
            return True
        if name not in CHEAP_EVIDENCE:
            return True
        hour = self._uptime_s // 3600
        if hour > self._cheap_hour:
            self._cheap_left = min(self._cheap_left + hour - self._cheap_hour, MOST_CHEAP)
            self._cheap_hour = hour
        if not self._cheap_left:
            return False
        self._cheap_left -= 1
        return True

    def _event_head(self) -> "tuple[int, bytes]":
        """The clock's quality, and what every event's body begins with."""
        seconds, ms, quality = self.utc()
        return quality, struct.pack("<IIIH", self.boot_id, self._now, seconds, ms)

    def checkpoint(self) -> None:
        """Report the chain's state, unless the newest event does, or nothing can be proved now."""
        chain, events = self.chain, self.events
        if not self._unchecked or not chain.begun() or not chain.saved:
            return
        message = self.codec.named("chain_checkpoint")
        quality, head = self._event_head()
        fields = message.pack((self.boot_id, events.last, chain.index, chain.hash, bytes(TAG_SIZE)))
        body = head + fields[:-TAG_SIZE]
        event = struct.pack(EVENT_HEAD, message.id, quality, events.last + 1) + body
        tag = chain.tag(event)
        try:
            events.add(message.id, quality, body + tag, True)
            self._unchecked = 0
            self._memory.save("checkpoint", event + tag)
        except MemoryFailed:
            return  # no tag was shown, or its event is there

    def newest_checkpoint(self) -> bytes:
        """The newest checkpoint's event, as it is hashed; made now if events came since. Else empty."""
        self.checkpoint()
        return self._memory.load("checkpoint") or b""

    def acknowledge(self, boot_id: int, n: int) -> None:
        """The owner has every event up to this one on disk."""
        events = self.events
        events.acknowledge(boot_id, n)
        lost = events.take_overflow()
        if lost is not None:
            self.checkpoint()
            self.emit("events_lost", OVERFLOW, *lost)
            self.checkpoint()

    def begin_chain(self, reason: int, key: bytes) -> None:
        """Begin a chain with this first key, which one session may ask for. MemoryFailed changes nothing."""
        self._first_key = (key,) + self._begin_chain(reason, key)
        self._first_key_for = None

    def _begin_chain(self, reason: int, key: bytes) -> "tuple[int, int, bytes]":
        """Boot id and n of the first event, and the hash before it."""
        self.checkpoint()
        chain = self.chain
        before, index, hash = chain.state(), chain.index, chain.hash
        first = first_hash(self.identity.serial, self.memory_id, self.boot_id)
        chain.begin(key, first)
        try:
            n = self._add("chain_begun", (reason, self.memory_id, index, hash), True)
        except MemoryFailed:
            chain.abort(before)
            raise
        self.checkpoint()
        return self.boot_id, n, first

    def take_first_key(self, session: "Link | None") -> "tuple[bytes, int, int, bytes] | None":
        """The chain's first key with the event and the hash it belongs to, for one session; else None."""
        self._forget_first_key()
        if self._first_key is None or self._first_key_for not in (None, session):
            return None
        self._first_key_for = session
        return self._first_key

    def first_key_given(self) -> bool:
        """Whether a session has the chain's first key."""
        return self._first_key_for is not None

    def _forget_first_key(self) -> None:
        """Once provisioning is over, or the session that has it."""
        if self.keys.open:
            if self._first_key_for is None:
                return
            for port in self.sessions:
                if port.link is self._first_key_for:
                    return
        self._first_key = None

    def owner_id(self) -> bytes:
        """The host id of the owner, zeros if there is none."""
        return NO_HOST if self.owner is None else self.owner.host_id

    def set_owner(self, port: "DevicePort | None") -> None:
        """Change who owns the device, and report it if the host is another one."""
        before = self.owner_id()
        lost, self.owner = self.owner, port
        if lost is not None and lost is not port:
            lost.demote()
        if self.owner_id() != before:
            self.emit("owner_changed", self.owner_id())
            if self.owner is None:
                self.checkpoint()

    def note_host_run(self, host_id: bytes, run: int) -> None:
        """Report an owner whose program is not the one that was here before."""
        if (host_id, run) != self._run:
            self._run = (host_id, run)
            self.emit("host_started", host_id, run)

    # -- time -----------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Set the time; ports do this with every call. On the grid the time advances from tick to tick.

        An event carries this time. A finer time would reveal what delayed the event.
        """
        if self.executor.on_grid():
            now = self.grid.floor(now)
        passed = ticks.diff(now, self._now)
        if passed <= 0:
            return
        self._now = now
        self.grid.advance(now)
        self._uptime_ms += passed
        while self._uptime_ms >= 1000:
            whole = self._uptime_ms // 1000
            self._uptime_s += whole
            self._uptime_ms -= whole * 1000
        if self.provisioning.window_over(self._uptime_s):
            self.emit("provisioning_ended")
        if self._proofs_untold:
            self._tell_proofs()
        if self.keys.open and self._uptime_s >= self._open_until:
            self.keys.open = False
        if self._first_key is not None:
            self._forget_first_key()

    def now(self) -> int:
        """The time set last, in ticks."""
        return self._now

    def uptime_s(self) -> int:
        """Seconds since this boot."""
        return self._uptime_s

    def utc(self) -> tuple[int, int, int]:
        """UTC as (seconds, milliseconds, quality); zeros while the time is unknown."""
        if self._utc is None:
            return 0, 0, UNKNOWN_TIME
        seconds, ms, at_ms = self._utc
        ms += self._uptime_ms - at_ms
        seconds += self._uptime_s - self._utc_set_s
        if ms < 0:
            seconds, ms = seconds - 1, ms + 1000
        elif ms >= 1000:
            seconds, ms = seconds + 1, ms - 1000
        stale = self._uptime_s - self._utc_set_s > STALE_AFTER_S
        return min(seconds, LAST_SECOND), ms, TIME_STALE if stale else TIME_SET

    def may_skip(self, numbers: int) -> bool:
        """Whether a host may pass over so many command numbers.

        Without a bound, requests that each jump ahead could use up the numbers of every host.
        """
        return not numbers or self.skipped + numbers <= MAX_SKIPPED + self._uptime_s * SKIPPED_EACH_S

    def is_leap(self, utc_s: int) -> bool:
        """Whether this time is more than LEAP_S ahead, in one step or several.

        The first time of a boot is never a leap: the device may have been off for weeks. From then on a time
        counts as ahead of the earliest that was set since, or since a person authorised one.
        """
        return self._trusted_s is not None and utc_s - self._uptime_s - self._trusted_s > LEAP_S

    def set_clock(self, utc_s: int, utc_ms: int, authorised: bool = False) -> None:
        """Take the host's time."""
        before, _, quality = self.utc()
        began_s = utc_s - self._uptime_s
        if self._trusted_s is None or authorised or began_s < self._trusted_s:
            self._trusted_s = began_s
        self.latest_s = 0 if authorised else max(self.latest_s, before)
        self._utc = (utc_s, utc_ms, self._uptime_ms)
        self._utc_set_s = self._uptime_s
        step = utc_s - before if quality != UNKNOWN_TIME else 0
        step = max(-0x80000000, min(0x7FFFFFFF, step))
        if step or quality != TIME_SET:
            self.emit("clock_changed", step, TIME_SET)

    def clear_clock(self) -> None:
        """Mark the time of day as unknown until a host sets it."""
        self._utc = self._trusted_s = None
        self.emit("clock_changed", 0, UNKNOWN_TIME)

    # -- keys and proofs ------------------------------------------------------------------------

    def memory(self) -> RecordStore:
        """Critical memory."""
        return self._memory

    def check_signature(
        self, port: "DevicePort", begin: "Callable[[], SignatureCheck]", done: "Callable[[bool], None]"
    ) -> None:
        """Check a signature while nothing moves; ``done`` is told whether it fits.

        Refusal while another one of the same cable is checked: a flood on one cable holds up no other.
        """
        for each in self._checks:
            if each[0] is port:
                raise Refusal("busy", (0,))
        self._checks.append((port, begin, done, None))

    def drop_check(self, port: "DevicePort") -> None:
        """The cable's session is over: what it waits for is not checked."""
        self._checks = [each for each in self._checks if each[0] is not port]

    def checking(self) -> bool:
        """Whether ``work`` has something to do now."""
        return len(self._checks) > 0 and not self.executor.on_grid() and self.executor.idle()

    def work(self) -> None:
        """One slice of a signature that is being checked: the owner's first, the others in turn."""
        checks = self._checks
        if not checks:
            return
        index = 0
        for at in range(len(checks)):
            if checks[at][0] is self.owner:
                index = at
        port, begin, done, check = checks.pop(index)
        if check is None:
            check = begin()
        elif check.step():
            done(check.fits)
            if not checks:
                self.executor.signatures_checked()
            return
        checks.append((port, begin, done, check))

    def open_slots(self) -> None:
        """The device was given its key: for a while its owner may fill the empty slots."""
        self.keys.open = True
        self._open_until = self._uptime_s + OPEN_S

    def end_sessions(self, slot: int, but: "DevicePort") -> None:
        """A slot's key changed: sessions proved with the old key end; the port ``but`` may answer first."""
        for port in list(self.sessions):
            port.on_key_changed(slot, self._now, port is but)

    def note_wrong_proof(self, slot: int) -> None:
        """Count a wrong proof for good, and report it: at once, or later with others."""
        self._proofs_total = min(self._proofs_total + 1, 0xFFFFFFFF)
        self._proofs_untold = min(self._proofs_untold + 1, 0xFFFFFFFF)
        self._proofs_slot = slot
        if not self._tell_proofs():
            self._save_proofs()

    def _tell_proofs(self) -> bool:
        """Report the wrong proofs not reported yet, unless some were a short while ago; whether it did."""
        count, fold_s = self._proofs_untold, self._proofs_fold_s
        if not count:
            return False
        if self._proofs_told_s is not None:
            passed_s = self._uptime_s - self._proofs_told_s
            if passed_s < fold_s:
                return False
            self._proofs_fold_s = min(2 * fold_s, LONGEST_FOLD_S) if passed_s < 2 * fold_s else FOLD_S
        self._proofs_untold = 0
        self._proofs_told_s = self._uptime_s
        self.emit("proofs_refused", self._proofs_slot, count, self._proofs_total)
        self._save_proofs()
        return True

    def _save_proofs(self) -> None:
        try:
            self._memory.save("proofs", struct.pack("<II", self._proofs_total, self._proofs_untold))
        except MemoryFailed:
            return  # the next one is saved with this one
