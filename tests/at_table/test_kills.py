"""Program and device killed (-9) at needs: the next start says where the table is and what to do."""

from pathlib import Path

import pytest
from tests.at_table.stopped_at_need import device
from tests.at_table.terminal import Open
from tests.conformance.targets import Tcp

from sabot_simulators.free_port import free_port

pytestmark = pytest.mark.slow
ENTER = "\r"
PREPARE = ("inspect {0}", "verify the dealer's inspection", "spread {0}", "wash {0}", "stack {0}")
OPENING = (("FLOOR: open the table", ENTER), ("DEALER: a dealer signs in", ENTER))
BRING = (("new pack with", ENTER), ("number of the bag", "1" + ENTER), ("brought by", ENTER))


def test_the_program_is_killed_at_needs_and_the_next_start_goes_on(terminal: Open, tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    play = ("play", "--device", target.listener.url, "--simulator", "--players", 1)
    with terminal(*play) as first:
        first.do(*OPENING, *BRING)
        first.see("new pack with blue backs")
        first.kill()
    with terminal(*play) as second:
        second.see("table SIM00001, md-three-card-baccarat: open, between two rounds; simulated")
        second.do(*BRING)
        for back in ("RED", "BLUE"):
            second.do(*((words.format(back), ENTER) for words in PREPARE))
        second.do(("say which seats bet", ENTER), ("seats that bet", ENTER))
        second.see("DEALER: expose the hands")
        second.kill()
    with terminal(*play, "--rounds", 1) as third:
        third.see("md-three-card-baccarat: round 1: the hands are dealt and not")
        third.do(("DEALER: expose the hands", ENTER), ("round 1 RED", ""))
        assert third.end() == 0
    target.close()


def test_the_device_is_killed_in_a_round_and_the_screen_says_so_at_once(
    terminal: Open, tmp_path: Path
) -> None:
    state, port = tmp_path / "device.state", free_port()
    with device(state, port) as at:
        table = terminal("play", "--device", at.url, "--simulator", "--players", 1)
        table.do(*OPENING, *BRING, *BRING)
        for back in ("RED", "BLUE"):
            table.do(*((words.format(back), ENTER) for words in PREPARE))
        table.do(("say which seats bet", ENTER), ("seats that bet", ENTER))
        table.see("DEALER: expose the hands")
    table.see("the machine does not answer: check its cable and power")
    with device(state, port), table:
        table.see_all("the machine answers again; play goes on", "started again")
        table.press("q")
        assert table.end() == 0
        assert "Round 1 stays open" in table.screen() or "give back" in table.screen()
