"""People for a table on an emulated device of this process: enrolled in memory, PINs drawn at each start."""

import secrets
from dataclasses import dataclass

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_session.people import STEPS, PeopleRegister
from sabot_table.procedure import TableRole

ENROLLED_BY = "demonstration"


@dataclass(frozen=True)
class Demonstration:
    """The register, what each person shows, and the keys they hold on the emulated device."""

    register: PeopleRegister
    shown: dict[str, tuple[str, str]]
    """Badge ("" for none) and PIN by person."""
    keys: dict[str, Credential]


def demonstration(key: bytes, now_s: int) -> Demonstration:
    """A dealer, a floor and a service; ``key`` is the people's on the emulated device."""
    register = PeopleRegister(None)
    shown: dict[str, tuple[str, str]] = {}
    for role in (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE):
        pin, badge = _pin(), ""
        register.enrol(role, f"Demonstration {role}", [role], pin, ENROLLED_BY, now_s)
        if role is not TableRole.DEALER:
            badge = f"{secrets.randbelow(10**8):08}"
            register.give_badge(role, badge, ENROLLED_BY, now_s)
        shown[role] = badge, pin
    keys = {"floor": Credential(Role.FLOOR, key), "service": Credential(Role.SERVICE, key)}
    return Demonstration(register, shown, keys)


def _pin() -> str:
    while True:
        pin = f"{secrets.randbelow(10**4):04}"
        if len(set(pin)) > 1 and pin not in STEPS:
            return pin
