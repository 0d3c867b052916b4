"""``make demo``, as a newcomer sees it."""

from pathlib import Path

import pytest

from sabot_protocol.host.capture import read_capture
from sabot_protocol.host.constructs import parse_frame, parse_payload

pytestmark = pytest.mark.slow


def test_it_shows_a_simulator_and_six_stacks_each_dispensed_once(played: tuple[str, Path]) -> None:
    printed, _ = played
    assert "SIMULATOR" in printed
    assert "Six stacks dispensed, each once: [1, 2, 3, 4, 5] reported, 6 told by the ledger" in printed
    assert "refused: wrong_state" in printed
    assert "round 1 is void" in printed
    assert "a gap of " in printed
    assert "\x1b[" not in printed, "colour only on a terminal"


def test_its_capture_holds_every_frame(played: tuple[str, Path]) -> None:
    _, folder = played
    with (folder / "build" / "demo.pcapng").open("rb") as stream:
        frames = list(read_capture(stream))
    kinds = [parse_payload(parse_frame(each.frame)) for each in frames]
    stacks = [each for each in kinds if each.kind == "event" and each.name == "stack_dispensed"]
    assert {each.fields["stack"] for each in stacks} == {1, 2, 3, 4, 5, 6}
    assert list(dict.fromkeys(each.name for each in kinds))[:2] == ["identify", "identity"]
