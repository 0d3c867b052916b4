"""Program and device are killed (-9) at every need: the next start says where the table is and what to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.at_table.next_start import NextStart
from tests.at_table.stopped_at_need import Plan, device, free_port, plan_of, program_at
from tests.driver.command import Sabot

from sabot_session.needs import NeedKind

pytestmark = pytest.mark.slow
THREE, MINI = "md-three-card-baccarat", "md-mini-baccarat"


@dataclass(frozen=True)
class Situation:
    """How a need comes about at a table."""

    kind: str
    rules: str = THREE
    options: tuple[str, ...] = ()
    """Of the emulated device."""
    plan: Plan = ()
    goes_on: bool = True
    """Whether simulated people can play a round afterwards; those of another process see no cards."""
    program_only: bool = False
    """Whether only the program is killed here."""
    dealt: bool = False
    """Hands are dealt: a device that was killed has forgotten their cards, and people type them."""


def mini(kind: str, *options: str, **more: Any) -> Situation:
    """A need of mini baccarat."""
    return Situation(kind, MINI, ("--capacity", "batch", *options), goes_on=False, **more)


NO_SHOE = plan_of(("bets", "report_unit_failed", {"unit": "shoe"}))
SITUATIONS = [
    Situation("open_table"),
    Situation("sign_in"),
    Situation("receive_pack"),
    Situation("prepare_pack"),
    Situation("feed", options=("--no-dealer",), goes_on=False),
    Situation("bets"),
    Situation("expose", dealt=True),
    Situation("type_hands", options=("--no-reader",), goes_on=False),
    Situation("clear_fault", options=("--fault", "stuck@insertion:9")),
    Situation("release", plan=plan_of(("expose", "hold", {"why": "a card fell"})), dealt=True),
    Situation("decide_dispute", plan=plan_of(("expose", "open_dispute", {})), dealt=True),
    Situation("countersign", plan=plan_of(("expose", "report_shoe_failed", {"why": "it stopped"}))),
    Situation("floor_comes", plan=plan_of(("bets", "call_floor", {"why": "a question"}))),
    Situation("player_arrives", plan=plan_of(("bets", "idle", {}))),
    Situation(
        "confirm_correction",
        plan=plan_of(
            ("bets", "no_more_bets", {"wagers": {1: {"ante": 2000}}}),
            ("bets", "propose_correction", {"round_id": 1, "why": "x", "wagers": {1: {"ante": 4000}}}),
        ),
    ),
    Situation("mark_out_of_order", plan=NO_SHOE, goes_on=False),
    Situation("change_method", plan=NO_SHOE, goes_on=False),
    Situation(
        "swap_pc", plan=plan_of(("open_table", "install_pc", {"before": "a1", "rows": 9, "round_id": 4}))
    ),
    mini("cut"),
    mini("place_cover"),
    mini("lay_in"),
    mini("burn"),
    Situation("determine", options=("--fault", "missing_card@shoe"), goes_on=False, program_only=True),
    Situation("remove_pack", options=("--fault", "missing_card@tray"), goes_on=False, program_only=True),
]
NOT_HERE = {
    "simulated people of another process see no cards, so they never come there": (
        "settle", "collect", "type_cards", "type_third", "name_card", "end_shoe", "last_hand",
        "simulated_round", "collect_vigorish", "controller", "take_card",
    ),
    "emulated people do it at once": ("take_stack", "take_stub", "take_pack"),
    "no situation of this test brings it about yet": (
        "set_game", "register_pack", "order_shuffle", "empty_machine", "purge", "inspect_path",
        "out_of_order", "take_out", "one_pack", "verify_shuffle", "load", "deal", "count_stub", "unexplained",
        "replace_pack", "shuffle_by_hand",
    ),
    "tests/at_table/test_swaps.py goes on with a swap that was ended": ("swap_machine",),
    "tests/at_table/test_kills.py kills the device under a running program": ("link",),
}  # fmt: skip
"""Needs at which nothing is killed here, by the reason."""


@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.kind)
def test_the_program_is_killed_at_a_need_and_the_next_start_says_it(
    home: Path, sabot: Sabot, next_start: NextStart, tmp_path: Path, situation: Situation
) -> None:
    with device(tmp_path / "device.state", free_port(), *situation.options) as url:
        with program_at(home, url, situation.kind, situation.rules, situation.plan) as words:
            pass
        said = next_start(url, lambda said: words in said)
        assert f"table SIM00001, {situation.rules}: " in said
        assert words in said
        if situation.goes_on:
            play_a_round(sabot, url)


@pytest.mark.sweep(every=12)
@pytest.mark.parametrize(
    "situation", [each for each in SITUATIONS if not each.program_only], ids=lambda each: each.kind
)
def test_the_device_is_killed_at_a_need_and_the_next_start_says_what_to_do(
    home: Path, sabot: Sabot, next_start: NextStart, tmp_path: Path, situation: Situation
) -> None:
    state, port = tmp_path / "device.state", free_port()
    with device(state, port, *situation.options) as url:
        held = program_at(home, url, situation.kind, situation.rules, situation.plan)
        held.__enter__()
    held.__exit__(None, None, None)  # the device was killed first
    options = () if "--fault" in situation.options else situation.options
    with device(state, port, *options) as url:
        said = next_start(url, asks_people)
        assert f"table SIM00001, {situation.rules}: " in said
        assert asks_people(said), said
        if situation.goes_on and not situation.dealt:
            play_a_round(sabot, url)


def asks_people(said: str) -> bool:
    """Whether the newest list of needs asks somebody at the table for something."""
    asked = said.rpartition("What is needed now:\n")[2].partition("Keys:\n")[0]
    return any(line.strip().startswith(("dealer", "floor")) for line in asked.splitlines())


def play_a_round(sabot: Sabot, url: str) -> None:
    """Simulated people play a round at the table, from where it is."""
    auto = ("--auto", "--rounds", 1, "--players", 1, "--json")
    played = sabot("play", "--device", url, "--simulator", *auto)
    assert played.code == 0, played.out


def test_every_need_is_here_or_it_is_said_why_not() -> None:
    kinds = [each.kind for each in SITUATIONS]
    assert len(set(kinds)) == len(kinds)
    others = [kind for some in NOT_HERE.values() for kind in some]
    assert sorted([*kinds, *others]) == sorted(str(each) for each in NeedKind)
