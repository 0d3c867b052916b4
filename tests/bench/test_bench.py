"""Every benchmark runs and gives figures that can be true; how fast it is, is nobody's business here."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench import codec, machine, on_micropython
from tests.bench.__main__ import table

from sabot_protocol import frame, mac

pytestmark = pytest.mark.slow


def test_figures_of_messages_frames_and_shuffles_make_a_table() -> None:
    for peer in ("cobs", "pymodbus", "smp"):
        pytest.importorskip(peer)
    figures = [*codec.typed(2, 1), *codec.frames(2, 1), *machine.shuffles(1)]
    assert all(each.rate > 0 for each in figures)
    judged = {(each.name, each.reference) for each in figures if each.met is not None}
    assert {("FaultRaised", "pymodbus RTU"), ("FaultRaised", "smp")} <= judged
    assert ("all of it, s", "the bound, s") in judged
    assert table(figures).row_count == len(figures) + len({each.section for each in figures})


@pytest.mark.full
@pytest.mark.xdist_group("bench")
def test_every_rate_and_ratio_is_positive(figures: list[dict[str, Any]]) -> None:
    for figure in figures:
        assert figure["rate"] > 0, figure
        if figure["reference"]:
            assert figure["reference_rate"] > 0, figure
            assert figure["ratio"] > 0, figure


@pytest.mark.full
@pytest.mark.xdist_group("bench")
def test_every_goal_of_the_wire_is_judged(figures: list[dict[str, Any]]) -> None:
    judged = {(each["name"], each["reference"]) for each in figures if each["met"] is not None}
    for name in ("FaultRaised", "CountersAre"):
        assert {(name, "pymodbus RTU"), (name, "smp")} <= judged
    assert ("Sabot, window 16", "Sabot, window 1") in judged
    assert ("Sabot, window 16", "bare frames, 16 outstanding") in judged


def test_real_messages_are_held_to_the_allowance_too(micropython: str) -> None:
    figures = on_micropython.figures(64)
    limited = {each.name: each.allocated or 0 for each in figures if each.allowed is not None}
    for message in ("probe_32", "status_report", "set_key", "log_is", "fault_raised"):
        assert any(name.startswith(message) for name in limited), limited
    assert all(allocated > 0 for allocated in limited.values()), limited


zeros_and_others = st.lists(st.sampled_from([0, 1, 255]), min_size=1).map(bytes)


@given(st.binary(min_size=1, max_size=frame.MAX_PAYLOAD) | zeros_and_others)
def test_both_ways_to_encode_agree(payload: bytes) -> None:
    """The board's way and the host's; ``frame.encode`` is one of them."""
    payload = payload[: frame.MAX_PAYLOAD]
    assert frame.encode_in_place(payload) == frame.encode_by_parts(payload)


@given(st.binary(min_size=8, max_size=40), st.binary(min_size=32, max_size=32), st.booleans())
def test_both_ways_to_compare_a_mac_agree(packet: bytes, code: bytes, right: bool) -> None:
    if right:
        packet = packet[:-8] + code[:8]
    end = len(packet) - 8
    expected = packet[end:] == code[:8]
    assert mac.mac_matches_portable(packet, end, code) is expected
    assert mac.mac_matches_native(memoryview(packet), end, code) is expected
