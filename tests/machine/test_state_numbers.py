"""The firmware's plain constants for states are the numbers of the wire's schema."""

import pytest

from sabot_firmware import shoe, shuffler
from sabot_protocol.schema import ENUMS


@pytest.mark.parametrize(("module", "enum"), [(shuffler, "ShufflerState"), (shoe, "ShoeState")])
def test_states_have_the_numbers_of_the_wire(module: object, enum: str) -> None:
    members = dict(ENUMS)[enum]
    assert {name: getattr(module, name.upper()) for name, _ in members} == dict(members)
