"""The shoe half on the simulated mechanism: stacks of three, and a stub that makes 52 again."""

from collections.abc import Callable
from random import Random

import pytest
from tests.machine.tables import BLUE, RED, Table, void_reason

from sabot_firmware import hardware, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_protocol.executor import Caller
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, new_deck

pytestmark = pytest.mark.both_kinds

Meddle = Callable[[list[PhysicalCard], Random], None]


class Dealt(Table):
    """A table with RED in the shoe, where somebody may have meddled with it before."""

    def __init__(self, seed: int, *faults: str, meddle: "Meddle | None" = None, hands: int = 7) -> None:
        super().__init__(seed, *faults, hands=hands)
        self.shuffle()
        self.wait(lambda: self.shoe_state in (shoe.READY, shoe.JAMMED))
        if meddle is not None:
            meddle(self.machine.shoe, self.random)
        self.order = list(self.machine.shoe)

    def open_round(self) -> None:
        self.device.command("open_round", 1, 1)
        self.device.command("close_bets", 1, self.hands)

    def stack(self, stack: int) -> list[PhysicalCard]:
        self.device.command("dispense_stack", 1, stack)
        self.wait(lambda: self.shoe_state in (shoe.STACK_WAITING, shoe.JAMMED))
        return list(self.machine.exit_tray)


@pytest.mark.rule("MD3 10.B")
@pytest.mark.rule("WA3 sets")
@pytest.mark.parametrize("seed", range(5))
def test_seven_stacks_of_three_from_the_top_and_a_stub_of_31(seed: int) -> None:
    table = Dealt(seed)
    assert table.deal_round()
    assert table.hands_dealt == [table.order[at : at + 3] for at in range(0, 21, 3)]
    assert table.machine.exit_tray == table.order[21:]
    assert table.named("round_ended") == [(1, 1, 31, 52)]
    assert table.faults() == []


def test_seventeen_stacks_leave_one_card() -> None:
    table = Dealt(3, hands=17)
    assert table.deal_round()
    assert table.named("round_ended") == [(1, 1, 1, 52)]


@pytest.mark.looks_inside
def test_a_round_that_the_deck_has_not_cards_for_is_refused() -> None:
    table = Dealt(3)
    table.device.controller.persistent.game.stack_cards = 7
    table.device.command("open_round", 1, 1)
    assert table.refused("close_bets", 1, 8) == "too_many"
    assert table.refused("dispense_stack", 1, 1) == "bets_open"


@pytest.mark.looks_inside
def test_a_stack_that_is_taken_while_the_board_talks_has_its_cards() -> None:
    """A board hears of edges in the midst of its talk and follows later: such a stack was reported with 0."""
    table = Dealt(14)
    table.open_round()
    controller = table.device.controller
    process_changes = controller.process_changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controller, "process_changes", lambda: None)
        controller.execute("dispense_stack", (1, 1), Caller(b"TABLE-PC", enum_number("Role", "table"), True))
        table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
        assert len(table.machine.take_exit()) == 3
        table.device.run_for(50_000)
    process_changes()
    assert table.named("stack_dispensed") == [(1, 1, 3)]
    assert table.named("stack_taken") == [(1, 1)]
    assert table.device.controller.dealing.round is not None
    assert table.device.controller.dealing.round.stacks == [3]


@pytest.mark.rule("MD3 10.A")
def test_nothing_is_dealt_before_bets_are_closed() -> None:
    table = Dealt(4)
    table.device.command("open_round", 1, 1)
    assert table.refused("dispense_stack", 1, 1) == "bets_open"
    assert table.machine.exit_tray == []
    table.device.command("close_bets", 1, 7)
    assert table.named("bets_closed") == [(1, 7)]
    assert len(table.stack(1)) == 3


@pytest.mark.rule("MD3 10.B")
def test_the_stub_comes_only_when_every_hand_has_its_stack() -> None:
    table = Dealt(4, hands=2)
    table.open_round()
    table.stack(1)
    table.take_stack()
    assert table.refused("end_round", 1) == "stacks_missing"


def test_the_next_stack_waits_until_the_last_is_taken() -> None:
    table = Dealt(4)
    table.open_round()
    before = table.stack(1)
    table.device.run_for(10_000_000)
    assert table.shoe_state == shoe.STACK_WAITING
    assert table.machine.display[0] == "TAKE THE STACK"
    assert table.refused("dispense_stack", 1, 2) == "wrong_state"
    assert table.machine.exit_tray == before


@pytest.mark.rule("MD3 10.C")
@pytest.mark.parametrize(("change", "verdict"), [(-1, 3), (1, 4)])
def test_a_card_missing_or_extra_is_seen_by_the_stub_and_the_round_is_void(change: int, verdict: int) -> None:
    def meddle(cards: list[PhysicalCard], random: Random) -> None:
        if change < 0:
            cards.pop(40)
        else:
            cards.insert(40, new_deck(RED, random)[0])

    table = Dealt(5, meddle=meddle)
    table.deal_round()
    assert table.named("round_ended") == [(1, verdict, 31 + change, 52 + change)]
    assert table.named("round_voided") == [(1, void_reason("wrong_number"))]
    assert table.device.command("last_round")[2:4] == (verdict, void_reason("wrong_number"))
    assert table.refused("reveal_round", 1) == "stale"  # the faces of a void round are nobody's business


@pytest.mark.rule("MD3 10.C")
def test_two_cards_as_one_void_the_round_and_the_next_shuffle_shows_that_the_deck_is_whole() -> None:
    table = Table(5, "aligned_double@shoe:8")
    table.open_table()
    table.play_round()
    assert [values[1] for values in table.named("round_ended")] == [3]  # 51 were seen: void
    assert len(table.named("round_voided")) == 1
    assert [values[2] for values in table.named("deck_counted")] == [52, 52, 52]  # it was misdealt


@pytest.mark.rule("MD3 13.A")
def test_a_face_up_card_voids_the_round() -> None:
    def meddle(cards: list[PhysicalCard], random: Random) -> None:
        cards[4].face_up = True

    table = Dealt(6, meddle=meddle)
    assert not table.deal_round()
    assert table.faults() == [("exit", "face_up_card")]
    assert table.named("round_voided") == [(1, void_reason("face_up_card"))]


def test_a_card_of_the_other_deck_and_a_cover_card_are_refused() -> None:
    def other(cards: list[PhysicalCard], random: Random) -> None:
        cards[1] = new_deck(BLUE, random)[0]

    def cover(cards: list[PhysicalCard], random: Random) -> None:
        cards.insert(1, cover_card(random))

    for meddle, cause in ((other, "wrong_deck"), (cover, "foreign_card")):
        table = Dealt(7, meddle=meddle)
        assert not table.deal_round()
        assert table.faults() == [("exit", cause)]
        assert len(table.named("round_voided")) == 1


@pytest.mark.rule("MD3 13.C")
@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("stuck@deal:8", ("deal", "misfeed")),
        ("stuck@exit:8", ("exit", "double_feed")),
        ("misfeed@shoe:8", ("deal", "misfeed")),
        ("double_feed@shoe:8", ("exit", "double_feed")),
        ("motor_stall@deal:8", ("deal", "motor_stall")),
    ],
)
def test_a_shoe_that_fails_stops_and_voids_the_round(fault: str, found: tuple[str, str]) -> None:
    table = Dealt(8, fault)
    assert not table.deal_round()
    assert table.faults() == [found]
    assert table.named("round_voided") == [(1, void_reason("shoe_failed"))]
    assert table.machine._rollers[hardware.DEAL].direction == 0


def test_a_stack_taken_before_it_is_complete_voids_the_round() -> None:
    table = Dealt(9, "stack_taken_early@exit_tray:5")
    assert not table.deal_round()
    assert table.faults() == [("exit_tray", "stack_disturbed")]
    assert table.named("round_voided") == [(1, void_reason("stack_disturbed"))]


def test_a_hand_back_in_the_exit_voids_the_round() -> None:
    table = Dealt(9)
    table.open_round()
    table.stack(1)
    table.take_stack()
    table.machine.strike("hand_in_exit")
    table.device.run_until(lambda: True)
    assert table.faults() == [("exit_tray", "stack_disturbed")]
    assert table.named("round_voided") == [(1, void_reason("stack_disturbed"))]


def test_a_hand_in_the_exit_while_the_deck_is_pushed_stops_the_shoe() -> None:
    """A card laid there would become part of the first stack."""
    table = Table(12)
    table.device.run_until_idle()
    table.feed(table.new_deck(RED))
    table.wait(lambda: table.shoe_state == shoe.LOADING)
    table.machine.put_into_exit(new_deck(RED, table.random)[:1])
    table.wait(lambda: table.shoe_state != shoe.LOADING)
    assert table.shoe_state == shoe.JAMMED
    assert table.faults() == [("exit_tray", "stack_disturbed")]


def test_a_card_pulled_out_by_hand_between_stacks_voids_the_round() -> None:
    table = Dealt(9)
    table.open_round()
    table.device._edge(hardware.EXIT, 1, table.device.now_us, table.device.now_us)
    assert table.faults() == [("exit", "stack_disturbed")]
    assert len(table.named("round_voided")) == 1


@pytest.mark.rule("MD3 3.B")
def test_a_new_deck_is_shuffled_while_the_other_is_dealt() -> None:
    table = Dealt(10)
    deck_id = table.new_deck(BLUE)
    blue = list(table.decks[deck_id])
    table.feed(deck_id)
    assert table.deal_round()
    assert table.hands_dealt == [table.order[at : at + 3] for at in range(0, 21, 3)]
    table.wait(lambda: table.shuffler_state == shuffler.STORED)
    assert sorted(map(id, table.machine.store)) == sorted(map(id, blue))
    assert [values[2] for values in table.named("deck_counted")] == [52, 52]


def test_the_floor_voids_a_round_and_the_cards_come_out() -> None:
    table = Dealt(11)
    table.open_round()
    table.stack(1)
    table.device.command("void_round", 1, void_reason("floor_order"), role="floor")
    assert table.named("round_voided") == [(1, void_reason("floor_order"))]
    assert table.shoe_state == shoe.UNPROVED
    assert table.refused("dispense_stack", 1, 2) == "wrong_state"
    table.recover()
    assert table.named("emptied") == [(49,)]
    assert table.shoe_state == shoe.READY


@pytest.mark.rule("MD3 10.C")
def test_faces_leave_the_device_only_after_the_reveal() -> None:
    table = Dealt(12)
    table.open_round()
    assert table.refused("faces", 1, 1) == "stale"  # it has not ended
    for stack in range(1, 8):
        table.stack(stack)
        table.take_stack()
    assert table.refused("reveal_round", 1) == "stale"
    table.device.command("end_round", 1)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert table.refused("faces", 1, 1) == "not_revealed"
    table.device.command("reveal_round", 1)
    for stack in range(1, 8):
        seen: object = table.device.command("faces", 1, stack)[2]
        assert seen == [card.number for card in table.order[3 * stack - 3 : 3 * stack]]
    assert table.refused("faces", 1, 8) == "stale"
