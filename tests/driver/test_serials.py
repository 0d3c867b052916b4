"""Serial numbers as people read and type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabot_driver.errors import BadSerial
from sabot_driver.serials import from_text, to_text


@given(st.binary(min_size=8, max_size=8))
def test_what_is_shown_can_be_typed(serial: bytes) -> None:
    text = to_text(serial)
    assert text.isalnum()
    assert from_text(text) == serial


def test_letters_and_digits_are_shown_as_they_are() -> None:
    assert to_text(b"SIM00042") == "SIM00042"
    assert to_text(bytes.fromhex("e661534280000001")) == "E661534280000001"


@pytest.mark.parametrize(
    "text", ["", "SIM0042", "SIM000421", "E66153428000000G", "E66153428000000", "SIM0004\xe4"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadSerial, match="no serial number"):
        from_text(text)
