"""Who authorises a request, and what of a request no file may hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sabot_driver.errors import KeyMissing
from sabot_driver.keyring import read_key, read_person
from sabot_protocol.host.messages import KeySlotsAre, Role
from sabot_protocol.schema import NEVER_KEPT
from sabot_protocol.wire_constants import FIRST_PERSON, KEY_SIZE, SLOTS

SECRET_MESSAGES = frozenset(NEVER_KEPT)


@dataclass(frozen=True, slots=True)
class Credential:
    """A person's key, which authorises requests one by one. The device holds only a key derived from it."""

    role: Role
    key: bytes = field(repr=False)
    person: int = 0
    """The house's number of the person; 0 if the role has one person only on this device."""
    slot: int | None = None
    """The person's key slot; None to ask the device for it."""
    source: str = field(default="", compare=False)
    """The file the key came from, for messages."""

    @classmethod
    def read(cls, role: Role, path: Path) -> "Credential":
        """The credential in a key file; KeyMissing, which names the role, if there is none in it."""
        try:
            return cls(role, read_key(path), read_person(path), source=str(path))
        except KeyMissing as error:
            advice = "Insert the medium with this person's key file, or name another file."
            raise KeyMissing(f"the key of {role.name.lower()}, {error}", advice) from error

    def check(self) -> None:
        """ValueError for a key or a slot that cannot be one."""
        check_key(self.key)
        if self.slot is not None and not 0 <= self.slot < SLOTS:
            raise ValueError(f"there is no key slot {self.slot}: they are 0 to {SLOTS - 1}")

    def slot_among(self, held: KeySlotsAre) -> int:
        """This person's slot on a device that holds these; KeyMissing if there is none, or no single one."""
        found = [
            slot
            for slot, role, person in zip(held.slots, held.roles, held.persons, strict=True)
            if slot >= FIRST_PERSON and role == self.role and self.person in (0, person)
        ]
        name = self.role.name.lower()
        who = f"person {self.person} as {name}" if self.person else name
        read_from = f", whose key file is {self.source}" if self.source else ""
        if not found:
            raise KeyMissing(
                f"this device has no key of {who}{read_from}", "'sabot key list' tells whose keys it has."
            )
        if len(found) > 1:
            raise KeyMissing(
                f"this device has keys of {len(found)} people as {name}{read_from}",
                "Say which: put the person's number behind the key in the key file.",
            )
        return found[0]


def check_key(key: bytes) -> None:
    """ValueError for what is not a key of 32 bytes: a derived key would hide that it is too short."""
    if not isinstance(key, bytes) or len(key) != KEY_SIZE:
        found = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__  # never the key itself
        raise ValueError(f"a key is {KEY_SIZE} bytes, not {found}")


def free_slot(slots: Sequence[int]) -> int:
    """The first of the people's slots that is not among these; KeyMissing if all are taken."""
    for slot in range(FIRST_PERSON, SLOTS):
        if slot not in slots:
            return slot
    raise KeyMissing("all of this device's key slots are taken", "Remove a key that is no longer needed.")


def without_secret(name: str, body: bytes) -> bytes:
    """A request's body as it may be written to a file."""
    return body[:-KEY_SIZE] + bytes(KEY_SIZE) if name in SECRET_MESSAGES else body
