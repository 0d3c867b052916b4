"""Whether the device has its keys, and when it takes new ones.

A device never works without its real keys. Their state is told at power-up and kept here:

unprovisioned  the device never had a key, or a person cleared the keys by its contact
provisioned    the key is there
keys_damaged   a key was given once and is not there, or critical memory cannot be used: the device
               identifies itself and refuses everything else, ``provision`` included

The only way back to *unprovisioned* is physical presence: a contact inside the locked logic compartment, held
for HOLD_MS. It clears the keys and opens provisioning for OPEN_S; afterwards, and after any restart,
provisioning is closed until the contact is held again. A device that never had a key needs no contact.

A device that belongs to a house (``HouseRecord``) needs the house's reset statement too, for this reset only.

That a device once had a key is marked in another chip than its keys
(``ProvisioningMark``, in flash): critical memory that was replaced or erased does not make it a new one.
"""

from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.house import HouseRecord
from sabot_protocol.key_store import KeyStore
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE

HOLD_MS = 5000
OPEN_S = 600

UNPROVISIONED = enum_number("KeyState", "unprovisioned")
PROVISIONED = enum_number("KeyState", "provisioned")
KEYS_DAMAGED = enum_number("KeyState", "keys_damaged")

# What the mark says.
NEVER = 0  # no key was ever given
GIVEN = 1
CLEARED = 2  # by a person at the contact; a key is taken only while provisioning is open


class ProvisioningMark:
    """Whether the device was ever given a key; a board keeps it in flash, this one forgets it."""

    def __init__(self) -> None:
        self._state = NEVER

    def read(self) -> int:
        """NEVER, GIVEN or CLEARED; GIVEN where it cannot be read."""
        return self._state

    def write(self, state: int) -> None:
        """Keep it; OSError if that cannot be."""
        self._state = state


class UnusableStore(RecordStore):
    """Critical memory that must not be used, because the program failed repeatedly with it."""

    def load(self, name: str) -> bytes | None:
        """MemoryFailed."""
        raise MemoryFailed("critical memory is not in use")

    def save(self, name: str, data: bytes) -> None:
        """MemoryFailed."""
        raise MemoryFailed("critical memory is not in use")


class PresenceContact:
    """The contact in the logic compartment: when it has been held for long enough."""

    def __init__(self) -> None:
        self._was_open = False  # in this boot: a contact that is stuck clears nothing
        self._since: int | None = None

    def held(self, closed: bool, now: int) -> bool:
        """Take its level; True once, HOLD_MS after it was closed."""
        if not closed:
            self._was_open = True
            self._since = None
            return False
        if not self._was_open:
            return False
        if self._since is None:
            self._since = now
        if ticks.diff(now, self._since) < HOLD_MS:
            return False
        self._was_open = False  # it must be let go before it counts again
        return True


class Provisioning:
    """The state of one device's keys."""

    def __init__(self, keys: KeyStore, mark: ProvisioningMark, usable: bool, house: HouseRecord) -> None:
        """``usable``: critical memory can be read and written."""
        self._keys = keys
        self._mark = mark
        self.house = house
        self.reset_accepted = False
        """The house's statement for this reset was shown; it counts until a key is given or time is over."""
        self._open_until: int | None = None  # uptime in seconds
        self._marked = mark.read()
        self.damaged = False
        if not usable or keys.damaged:
            self.damaged = True
        elif keys.get(DEVICE) is not None:
            self.key_given()
        elif self._marked == GIVEN:
            self.damaged = True

    def state(self) -> int:
        """A number of ``KeyState``."""
        if self.damaged:
            return KEYS_DAMAGED
        return UNPROVISIONED if self._keys.get(DEVICE) is None else PROVISIONED

    def is_closed(self) -> bool:
        """Whether a device without a key takes none before its contact was held again."""
        return self._marked == CLEARED and self._open_until is None

    def needs_statement(self) -> bool:
        """Whether a device without a key takes none before its house has signed for it."""
        return self.house.is_bound() and not self.reset_accepted

    def key_given(self) -> None:
        """There is a key: mark it, also where a power cut came between the key and its mark.

        The reset is counted first: a cut between counts it twice, and no statement ever counts twice.
        """
        self._open_until = None
        self.reset_accepted = False
        if self._marked != GIVEN:
            try:
                self.house.count_reset()
                self._mark.write(GIVEN)
            except OSError:
                return  # tried again at the next power-up
            self._marked = GIVEN

    def clear(self, memory: RecordStore, uptime_s: int) -> None:
        """The contact was held: delete the keys and open provisioning; MemoryFailed or OSError if that fails.

        Keys first, the mark last: a power cut between leaves *keys_damaged*.
        """
        self.damaged = True
        self._keys.clear(memory)
        self._mark.write(CLEARED)
        self._marked = CLEARED
        self.damaged = False
        self.open_window(uptime_s)

    def open_window(self, uptime_s: int) -> None:
        """Take a key for a while."""
        self.reset_accepted = False
        self._open_until = uptime_s + OPEN_S

    def window_over(self, uptime_s: int) -> bool:
        """Whether the time for a key has just gone by; True once."""
        if self._open_until is None or uptime_s < self._open_until:
            return False
        self._open_until = None
        self.reset_accepted = False
        return True
