"""Program and device are killed (-9) at every need: the next start says where the table is and what to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.at_table.next_start import NextStart
from tests.at_table.stopped_at_need import HANDS, KEYLESS, Plan, device, plan_of, program_at
from tests.driver.command import Sabot

from sabot_session.needs import NeedKind
from sabot_simulators.free_port import free_port

pytestmark = pytest.mark.slow
THREE, MINI = "md-three-card-baccarat", "md-mini-baccarat"
RULES_FOLDER = Path(__file__).parent / "rules"


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
    before: tuple[str, ...] = ()
    """A command that is given at the device before the table is opened."""

    @property
    def where(self) -> str:
        """How the next start says which table it is."""
        return f"table SIM00001, {Path(self.rules).stem}: "

    @property
    def play(self) -> tuple[str, ...]:
        """What the next start must be told: a rule set of a file is named again."""
        return ("--rules", self.rules) if self.rules.endswith(".toml") else ()


def mini(kind: str, *options: str, rules: str = "", **more: Any) -> Situation:
    """A need of mini baccarat; ``rules``: a file of rule sets as an operator writes them."""
    chosen = str(RULES_FOLDER / rules) if rules else MINI
    return Situation(kind, chosen, ("--capacity", "batch", *options), goes_on=False, **more)


NO_SHOE = plan_of(("bets", "report_unit_failed", {"unit": "shoe"}))
NO_MACHINE = plan_of(*NO_SHOE, ("mark_out_of_order", "report_unit_failed", {"unit": "shuffler"}))
MANUAL = plan_of(("bets", "change_method", {"method": "manual-shoe"}))
COVER_CARD = plan_of(*NO_MACHINE, ("deal", "cover_card", {}))
BANKER_WINS = ("type_cards", "announce", {"player": ["2H", "4C"], "banker": ["9H", "KC"]})
AWAY = plan_of(("bets", HANDS, {"line": "dealer away"}))
TAKE = ("take_stack", HANDS, {"line": "take"})
RECEIVE = {"act": "receive_pack", "back": "red", "bag": "1", "brought_by": "security"}
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
    # The emulated dealer is away: nobody takes cards out of the machine.
    Situation("take_stack", plan=AWAY, goes_on=False),
    Situation("take_stub", plan=plan_of(*AWAY, TAKE, TAKE), goes_on=False),
    Situation("take_pack", plan=plan_of(*AWAY, *MANUAL), goes_on=False),
    mini("take_card", plan=AWAY),
    Situation(
        "take_out",
        plan=plan_of(*AWAY, ("take_stack", "report_unit_failed", {"unit": "shoe"})),
        goes_on=False,
    ),
    # People deal, as the machine failed or the floor chose it.
    Situation("set_game", plan=MANUAL, goes_on=False),
    Situation("load", plan=NO_SHOE, goes_on=False),
    Situation("deal", plan=NO_SHOE, goes_on=False),
    Situation("count_stub", plan=NO_SHOE, goes_on=False),
    Situation("collect", plan=NO_SHOE, goes_on=False),
    Situation("shuffle_by_hand", plan=NO_MACHINE, goes_on=False),
    Situation("order_shuffle", plan=NO_MACHINE, goes_on=False),
    mini("verify_shuffle", plan=NO_MACHINE),
    mini("settle", plan=COVER_CARD),
    mini("last_hand", plan=COVER_CARD),
    mini("end_shoe", plan=COVER_CARD),
    mini(
        "collect_vigorish",
        rules="marked.toml",
        plan=plan_of(*NO_MACHINE, BANKER_WINS, ("bets", "no_more_bets", {"seats": [1]}), *COVER_CARD[-1:]),
    ),
    # The machine deals card by card.
    mini("type_cards", "--no-reader"),
    mini("type_third", "--no-reader", "--seed", "1"),
    mini("name_card", "--seed", "1", "--fault", "face_up_card@shoe:440"),
    mini("simulated_round", plan=plan_of(("bets", "card_exposed", {"card": "4D"}))),
    mini("controller", rules="must-hit.toml"),
    # The machine stopped, or does not know a pack.
    # Before the first round: the cards of an open one are known only to the program that was killed.
    Situation("empty_machine", options=("--fault", "power_cut+25")),
    Situation("purge", options=("--fault", "missing_card@shoe"), goes_on=False),
    Situation("inspect_path", options=("--fault", "missing_card@shoe"), goes_on=False),
    Situation("out_of_order", before=("service", "out-of-order"), goes_on=False),
    Situation("replace_pack", options=("--seed", "1", "--fault", "bent_card@shoe:20"), goes_on=False),
    Situation("register_pack", plan=plan_of(("receive_pack", KEYLESS, RECEIVE)), goes_on=False),
]
NOT_HERE = {
    "tests/at_table/test_swaps.py goes on with a swap that was ended": ("swap_machine",),
    "tests/at_table/test_kills.py kills the device under a running program": ("link",),
    "no emulated machine tells what does not fit; tests/session/test_stray_events.py restores such a table": (
        "unexplained",
    ),
}
"""Needs at which nothing is killed here, by the reason."""


@pytest.mark.sweep(every=16)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.kind)
def test_the_program_is_killed_at_a_need_and_the_next_start_says_it(
    home: Path, sabot: Sabot, next_start: NextStart, tmp_path: Path, situation: Situation
) -> None:
    with device(tmp_path / "device.state", free_port(), *situation.options) as at:
        if situation.before:
            assert sabot(*situation.before, "--device", at.url, "--simulator").code == 0
        with program_at(home, at, situation.kind, situation.rules, situation.plan) as words:
            pass
        said = next_start(at.url, lambda said: words in said, *situation.play)
        assert situation.where in said
        assert words in said
        if situation.goes_on:
            play_a_round(sabot, at.url)


@pytest.mark.sweep(every=27)
@pytest.mark.parametrize(
    "situation", [each for each in SITUATIONS if not each.program_only], ids=lambda each: each.kind
)
def test_the_device_is_killed_at_a_need_and_the_next_start_says_what_to_do(
    home: Path, sabot: Sabot, next_start: NextStart, tmp_path: Path, situation: Situation
) -> None:
    state, port = tmp_path / "device.state", free_port()
    with device(state, port, *situation.options) as at:
        if situation.before:
            assert sabot(*situation.before, "--device", at.url, "--simulator").code == 0
        held = program_at(home, at, situation.kind, situation.rules, situation.plan)
        held.__enter__()
    held.__exit__(None, None, None)  # the device was killed first
    options = () if "--fault" in situation.options else situation.options
    with device(state, port, *options) as at:
        said = next_start(at.url, asks_people, *situation.play)
        assert situation.where in said
        assert asks_people(said), said
        if situation.goes_on and not situation.dealt:
            play_a_round(sabot, at.url)


def asks_people(said: str) -> bool:
    """Whether the newest list of needs asks somebody at the table for something."""
    asked = said.rpartition("What is needed now:\n")[2].partition("Keys:\n")[0]
    return any(line.strip().startswith(("dealer", "floor", "service")) for line in asked.splitlines())


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
