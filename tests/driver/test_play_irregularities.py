"""Every irregularity of the texts, played on the emulated machine by its fault's name or as people report it.

After each: every wager went back to the cent or was settled, the cards are where the clause wants them, and
the next round is possible, or refused as it should be.
"""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.driver.leading import Led, by_name, led

from sabot_cli.playing.device_control import TableStopped
from sabot_cli.playing.round_play import PlayedRound
from sabot_driver import ReceivedEvent
from sabot_firmware import hardware
from sabot_protocol.host.messages import (
    Back,
    DeckDelivered,
    DeliverDeck,
    MarkOutOfOrder,
    Method,
    RegisterDeck,
    SetGame,
    Shuffle,
    ShufflerChanged,
    ShufflerState,
    Verdict,
)
from sabot_table.cards import card
from sabot_table.coup import Coup
from sabot_table.errors import RuleViolation
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load, parse
from sabot_table.settlement import CardSource

pytestmark = pytest.mark.slow

RED, BLUE = hardware.RED, hardware.BLUE
THREE, MINI = "md-three-card-baccarat", "md-mini-baccarat"
BATCH = 416


def returned(played: PlayedRound, led: Led) -> None:
    """Every wager of the round went back, to the cent, by the clause of the round."""
    assert played.settlement is not None
    lines = {(line["seat"], line["wager"]): line for line in played.settlement}
    made = {
        (seat, wager): cents
        for seat, wagers in led.table.book.wagers.items()
        for wager, cents in wagers.items()
    }
    assert {key: line["stake_cents"] for key, line in lines.items()} == made
    for line in lines.values():
        assert (line["outcome"], line["pays_cents"], line["vig_cents"]) == ("returned", 0, 0)
        assert line["clause"] == played.void_clause


# -- Three Card Baccarat ------------------------------------------------------------------------------

# what happens, the clause, the device's or people's name for it, whether the deck leaves the table
STACKS: list[tuple[str, str, str, bool]] = [
    ("face_up_card@shoe:5", "MD3 13.A", "face_up_card", False),
    ("1:face_up_card", "MD3 13.A", "face_up_card", False),
    ("stack_taken_early@exit_tray:4", "MD3 13.C", "stack_disturbed", False),
    ("1:drawn_in_error", "MD3 13.C", "drawn_in_error", False),
    ("1:wrong_number", "MD3 13.C", "wrong_number", False),
    ("stuck@exit:5", "MD3 13.D", "shoe_failed", False),
    ("stuck@deal:5", "MD3 13.D", "shoe_failed", False),
    ("misfeed@shoe:5", "MD3 13.D", "shoe_failed", False),
    ("double_feed@shoe:5", "MD3 13.D", "shoe_failed", False),
    ("motor_stall@deal:5", "MD3 13.D", "shoe_failed", False),
    ("dead_sensor@exit:5", "MD3 13.D", "shoe_failed", False),
    ("power_cut@controller:109", "MD3 13.D", "power_cut", False),
    ("1:shoe_failed", "MD3 13.D", "shoe_failed", False),
    ("missing_card@shoe:5", "MD3 10.C", "wrong_number", True),
    ("extra_card@shoe:5", "MD3 10.C", "wrong_number", True),
]


@pytest.mark.rule("MD3 10.C")
@pytest.mark.rule("MD3 13.A")
@pytest.mark.rule("MD3 13.C")
@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(("what", "clause", "reason", "leaves"), STACKS, ids=[each[0] for each in STACKS])
def test_a_void_round_of_stacks(tmp_path: Path, what: str, clause: str, reason: str, leaves: bool) -> None:
    fault = "" if what[0].isdigit() else f"&fault={what}"
    reports = (what,) if what[0].isdigit() else ()
    with led(tmp_path, THREE, f"seed=3{fault}", reports=reports) as table:
        table.open()
        void = table.play()
        assert (void.void_clause, void.void_reason) == (clause, reason)
        returned(void, table)
        assert void.hands is None, "no hand is shown"
        red = table.where(RED)
        assert "shoe" not in red, "its cards are out of the shoe"
        assert ("exit_tray" not in red) or leaves
        left = [each["reason"] for each in table.told.of("deck_removed")]
        assert left == (["wrong_count"] if leaves else [])
        following = table.play()
        assert following.void_reason is None
        assert following.back is Back.BLUE, "a void round has used its deck's turn"
        again = table.play()
        assert (again.void_reason, again.back) == (None, Back.RED)
        assert (again.deck_id != 1) is leaves
        assert again.ended is not None
        assert again.ended.count == 52, "the cards were shuffled with those dealt, and are all there"
        assert table.table.desk.table.memory.round is None


@pytest.mark.rule("MD3 10.C")
def test_a_card_that_stays_in_the_shoes_path_is_looked_for_before_the_next_deck_comes(tmp_path: Path) -> None:
    with led(tmp_path, THREE, "seed=3&fault=stuck@deal:52") as table:
        table.open()
        void = table.play()
        assert (void.void_clause, void.void_reason) == ("MD3 10.C", "wrong_number")
        following = table.play()
        assert (following.void_reason, following.back) == (None, Back.BLUE)
        assert len(table.told.of("shoe_blocked")) == 1
        assert len(table.told.of("path_inspected")) == 1
        assert following.ended is not None
        assert (following.ended.verdict, following.ended.count) == (Verdict.UNPROVED, 52)
        again = table.play()
        assert again.ended is not None
        assert (again.ended.verdict, again.ended.count) == (Verdict.CORRECT, 52)


@pytest.mark.rule("MD3 13.B")
def test_a_card_drawn_in_error_from_a_manual_shoe_is_the_next_card(tmp_path: Path) -> None:
    rules = load(THREE)
    with led(tmp_path, rules, "seed=5") as table:
        client, desk = table.client, table.table.desk
        table.table.ask_floor(SetGame("manual", Method.MANUAL_SHOE, 1, 3, 8))
        table.table.ask_floor(RegisterDeck(1, Back.RED, desk.now_s()))
        client.ask(Shuffle(1))
        wait_for(table, lambda each: isinstance(each, ShufflerChanged) and each.state is ShufflerState.STORED)
        client.ask(DeliverDeck(1))
        wait_for(table, lambda each: isinstance(each, DeckDelivered))
        wait_until(lambda: len(table.machine.handed_out) == 52)
        deck = [each.name for each in table.machine.handed_out]
        do = by_name(desk)
        do("open_table", TableRole.FLOOR)
        do("receive_pack", TableRole.FLOOR, 1, "red")
        for action, who in (
            ("inspect", TableRole.DEALER), ("verify", TableRole.FLOOR), ("spread", TableRole.DEALER),
            ("wash", TableRole.DEALER), ("stack", TableRole.DEALER)):  # fmt: skip
            do(action, who, 1)
        do("play_one_pack", TableRole.FLOOR)
        do("change_method", TableRole.FLOOR, DealingMethod.MANUAL_SHOE)
        do("start_shuffle", TableRole.DEALER, 1, machine=True)
        do("finish_shuffle", TableRole.DEVICE, 1, 52)
        do("load", TableRole.DEALER, 1)
        do("sit", TableRole.PLAYER, 1)
        do("open_bets", TableRole.DEALER)
        do("place_wager", TableRole.PLAYER, 1, "ante", 2_000)
        do("no_more_bets", TableRole.DEALER)
        hands: dict[int, list[str]] = {0: [], 1: []}
        for at in range(6):
            if at == 2:
                do("drawn_in_error", TableRole.DEALER)  # it lies there, unseen: the next hand gets it
                assert desk.table.round.reserved == 1
            to = desk.procedure.three_card.next_to()
            hands[to].append(deck[at])
            do("deal_card_to", TableRole.DEALER, to)
            assert desk.table.round.reserved == 0
        do("pass_stub", TableRole.DEALER)
        shown = {to: tuple(card(each) for each in names) for to, names in hands.items()}
        do("reveal", TableRole.DEALER, shown.pop(0), shown, CardSource.DEALER)
        settled = do("settle", TableRole.DEALER)
        assert [line.outcome for line in settled.lines] != ["returned"]
        assert hands[1] == [deck[0], deck[2], deck[4]], "nothing was skipped"


@pytest.mark.rule("MD3 13.E")
def test_a_device_out_of_order_is_marked_and_the_fall_back_is_a_manual_shoe(tmp_path: Path) -> None:
    with led(tmp_path, THREE, "seed=3&fault=motor_stall@deal:5") as table:
        table.open()
        table.table.prepare()
        void = table_after_stop(table)
        assert void.void_clause == "MD3 13.D"
        returned(void, table)
        procedure = table.table.desk.table
        assert procedure.memory.units == {DeviceUnit.SHOE: "sign", DeviceUnit.SHUFFLER: "sign"}
        with pytest.raises(TableStopped, match=r"MD3 13\.E"):
            table.table.prepare()
        do = by_name(table.table.desk)
        with pytest.raises(RuleViolation) as refused:
            do("open_bets", TableRole.DEALER)
        assert refused.value.clause in ("MD3 13.E", "MD3 5.C")
        with pytest.raises(RuleViolation, match="hand") as refused:
            do("change_method", TableRole.FLOOR, DealingMethod.HAND)
        assert refused.value.clause == "MD3 9.A"
        do("change_method", TableRole.FLOOR, DealingMethod.MANUAL_SHOE)
        with pytest.raises(RuleViolation) as refused:
            do("start_shuffle", TableRole.DEALER, 1, machine=True)
        assert refused.value.clause == "MD3 13.E"
        do("remove_pack", TableRole.FLOOR, 2, RemovalReason.FLOOR_ORDER, "one pack without a shuffler")
        do("play_one_pack", TableRole.FLOOR)
        do("start_shuffle", TableRole.DEALER, 1, machine=False)
        do("finish_shuffle", TableRole.DEALER, 1)
        do("cut", TableRole.DEALER, 1, 20)
        do("load", TableRole.DEALER, 1)
        do("open_bets", TableRole.DEALER)
        assert procedure.state == "betting"


def table_after_stop(table: Led) -> PlayedRound:
    """The shoe fails in a round, the floor marks the machine out of order, and the round is cleared away."""
    rounds = table.table
    clear = rounds.clear

    def mark() -> None:
        clear()
        table.on_device(lambda: None)
        rounds.wait(lambda: rounds.shoe.name == "READY", "the other deck")
        rounds.empty()
        rounds.ask_floor(MarkOutOfOrder())
        rounds.wait(lambda: rounds.shoe.name == "OUT_OF_ORDER", "the sign")

    rounds.clear = mark  # type: ignore[method-assign]
    with pytest.raises(TableStopped):
        rounds.play_round()
    do = by_name(rounds.desk)
    do("empty_device", TableRole.DEALER)
    do("collect", TableRole.DEALER)
    return table.played[-1]


def wait_for(table: Led, what: Any) -> None:
    for event in table.client.events(0, timeout=20):
        if isinstance(event, ReceivedEvent) and what(event.message):
            return
    raise AssertionError("it was never told")


def wait_until(done: Any) -> None:
    for _ in range(400):
        if done():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


# -- mini baccarat ------------------------------------------------------------------------------------


def coup(played: PlayedRound) -> Coup:
    """The hands of a round, which the rules must have dealt."""
    assert played.hands is not None
    player, banker = (tuple(card(each) for each in hand) for hand in played.hands)
    return Coup(player, banker)


def all_dealt(table: Led) -> list[str]:
    """Every card that came out of the shoe after the burn, in order, as people saw them."""
    people = table.table.people
    assert people is not None
    return [name for key in sorted(people.hands) if key for draw in people.hands[key] for name in draw]


@pytest.mark.rule("MDM 13.A")
def test_a_card_drawn_in_error_and_not_seen_opens_the_next_hand(tmp_path: Path) -> None:
    with led(tmp_path, MINI, "seed=3", reports=("1:drawn_in_error",)) as table:
        table.open()
        first, second = table.play(), table.play()
        dealt = all_dealt(table)
        assert first.void_reason is None is second.void_reason
        assert first.hands is not None
        assert second.hands is not None
        assert first.hands[0][0] == dealt[1], "the round is played with the cards that follow"
        assert second.hands[0][0] == dealt[0], "and this one opens the next hand"
        assert (first.source, second.source) == ("reader", "typed")
        coup(first), coup(second)
        hands = [*first.hands, *second.hands]
        assert sorted(dealt) == sorted(name for hand in hands for name in hand), "each card was used once"


# by seed: what happens to a third card that the Player got and must not have
THIRDS = [
    ("seed=9", "1:unauthorised_third", "banker"),
    ("seed=9", "1:unauthorised_third=seen", "banker"),
    ("seed=2", "1:unauthorised_third", "next"),
    ("seed=2", "1:unauthorised_third=seen", "discard"),
]


@pytest.mark.rule("MDM 13.B")
@pytest.mark.rule("MDM 13.C")
@pytest.mark.parametrize(("seed", "report", "goes"), THIRDS, ids=[f"{each[1]}-{each[2]}" for each in THIRDS])
def test_a_third_card_that_the_player_must_not_have(
    tmp_path: Path, seed: str, report: str, goes: str
) -> None:
    with led(tmp_path, MINI, seed, reports=(report,)) as table:
        table.open()
        first, second = table.play(), table.play()
        assert first.void_reason is None is second.void_reason
        dealt = all_dealt(table)
        assert first.hands is not None
        assert second.hands is not None
        assert len(coup(first).player) == 2, "it is not the Player's"
        if goes == "banker":
            assert first.hands[1][2] == dealt[4]
        elif goes == "next":
            assert second.hands[0][0] == dealt[4]
        else:
            assert second.hands[0][0] == dealt[6], "it went to the discards with one more, unseen"
            (order,) = [each for each in table.told.of("order") if each["do"] == "discard"]
            assert order["details"] == {"cards": [str(card(dealt[4]))], "unseen": 1}


@pytest.mark.rule("MDM 13.C")
def test_by_the_operators_choice_a_disclosed_third_card_opens_a_simulated_round(tmp_path: Path) -> None:
    data = load(MINI).model_dump(mode="json")
    data["options"] = {"disclosed_third": "simulated-round"}
    with led(tmp_path, parse(data), "seed=2", reports=("1:unauthorised_third=seen",)) as table:
        table.open()
        table.play(2)
        _, simulated, _ = table.played
        dealt = all_dealt(table)
        assert simulated.simulated
        assert simulated.hands is not None
        assert simulated.hands[0][0] == dealt[4]
        assert not simulated.settlement, "nobody wagers in it"


@pytest.mark.rule("MDM 13.D")
@pytest.mark.parametrize("what", ["face_up_card@shoe:430", "1:card_exposed"])
def test_any_other_card_that_was_seen_opens_a_simulated_round(tmp_path: Path, what: str) -> None:
    fault = "" if what[0].isdigit() else f"&fault={what}"
    with led(tmp_path, MINI, f"seed=3{fault}", reports=(what,) if what[0].isdigit() else ()) as table:
        table.open()
        while not any(each.simulated for each in table.played):
            assert len(table.played) < 4, "it never came"
            table.play()
        before, simulated, after = table.played[-3:]
        assert [each.void_reason for each in (before, simulated, after)] == [None] * 3
        assert before.settlement
        assert after.settlement
        assert not simulated.settlement
        assert simulated.hands is not None
        assert simulated.source == "typed", "no reader saw the card that came face up"
        seen = [each["card"] for each in [*table.told.of("exposed"), *table.told.of("report")]]
        assert [str(card(simulated.hands[0][0]))] == seen, "the card that was seen opens it"
        used = [name for each in table.played for hand in each.hands or () for name in hand]
        assert sorted(used) == sorted(all_dealt(table)), "each card was used once"
        coup(before), coup(simulated), coup(after)
        with pytest.raises(RuleViolation) as refused:
            by_name(table.table.desk)("begin_simulated", TableRole.DEALER)
        assert refused.value.clause == "MDM 13.D"


@pytest.mark.rule("MDM 13.E")
@pytest.mark.parametrize("fault", ["stuck@exit:430", "misfeed@shoe:430", "door_opened@shoe:430"])
def test_a_shoe_that_fails_voids_the_round_and_the_other_batch_follows(tmp_path: Path, fault: str) -> None:
    with led(tmp_path, MINI, f"seed=3&fault={fault}") as table:
        table.open()
        while not table.played or table.played[-1].void_reason is None:
            assert len(table.played) < 4, "it never came"
            table.play()
        void = table.played[-1]
        assert (void.void_clause, void.void_reason) == ("MDM 13.E", "shoe_failed")
        returned(void, table)
        assert "shoe" not in table.where(RED), "what is left of the shoe is out"
        following = table.play()
        assert (following.void_reason, following.back) == (None, Back.BLUE)
        assert sum(table.where(RED).values()) == BATCH


@pytest.mark.rule("MDM 13.E")
def test_too_few_cards_void_the_round_and_a_new_shoe_begins(tmp_path: Path) -> None:
    with led(tmp_path, MINI, "seed=4") as table:
        table.open()
        table.play()
        left = 2

        def take_away() -> None:
            while len(table.machine.shoe) > left:
                table.machine.strike("missing_card@shoe")

        table.on_device(take_away)
        void = table.play()
        assert (void.void_clause, void.void_reason) == ("MDM 13.E", "too_few_cards")
        returned(void, table)
        following = table.play()
        assert (following.void_reason, following.back) == (None, Back.BLUE)
        assert [each["reason"] for each in table.told.of("deck_removed")] == ["wrong_count"]
