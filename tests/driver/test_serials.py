"""Serial numbers as people read and type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabot_driver.errors import BadSerial
from sabot_driver.serial_numbers import format_serial, parse_serial


@given(st.binary(min_size=8, max_size=8))
def test_what_is_shown_can_be_typed(serial: bytes) -> None:
    text = format_serial(serial)
    assert text.isalnum()
    assert parse_serial(text) == serial


def test_letters_and_digits_are_shown_as_they_are() -> None:
    assert format_serial(b"SIM00042") == "SIM00042"
    assert format_serial(bytes.fromhex("e661534280000001")) == "E661534280000001"


@pytest.mark.parametrize(
    "text", ["", "SIM0042", "SIM000421", "E66153428000000G", "E66153428000000", "SIM0004\xe4"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadSerial, match="not a serial number"):
        parse_serial(text)
