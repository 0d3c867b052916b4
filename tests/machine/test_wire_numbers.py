"""The firmware's plain constants are the numbers of the wire's schema."""

import pytest

from sabot_firmware import hardware, service, shoe, shuffle_commands, shuffler
from sabot_protocol.codec import enum_number
from sabot_protocol.schema import ENUMS


@pytest.mark.parametrize(("module", "enum"), [(shuffler, "ShufflerState"), (shoe, "ShoeState")])
def test_states_have_the_numbers_of_the_wire(module: object, enum: str) -> None:
    members = dict(ENUMS)[enum]
    assert {name: getattr(module, name.upper()) for name, _ in members} == dict(members)


@pytest.mark.parametrize(
    ("number", "enum", "member"),
    [
        (service.SERVICE_ROLE, "Role", "service"),
        (service._ELEVATOR, "Part", "elevator"),
        (service._GRIPPER, "Part", "gripper"),
        (service._SHELF, "Part", "shelf"),
        (shuffle_commands.RAW_NOISE, "RngSource", "noise"),
        (shuffle_commands.RNG_FAILED, "Fault", "rng_failed"),
    ],
)
def test_other_constants_have_the_numbers_of_the_wire(number: int, enum: str, member: str) -> None:
    assert number == enum_number(enum, member)


def test_a_jog_finds_each_roller_by_its_part() -> None:
    rollers = {"feed": hardware.FEED, "insert": hardware.INSERT, "deal": hardware.DEAL}
    assert {enum_number("Part", name): roller for name, roller in rollers.items()} == service._ROLLERS
