"""Whole decks for a manual shoe or the hand, and batches that are cut, laid in and dealt card by card."""

from random import Random

import pytest
from tests.machine.tables import BLUE, RED, Table, void_reason

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.rounds import UNPROVED
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, new_deck

pytestmark = pytest.mark.both_kinds

MANUAL_SHOE, HAND, CARD_BY_CARD = 1, 2, 3
HOURS = (8, 8, 4, 24)  # MD3 3.C, MDM 3.C


def for_method(seed: int, method: int, name: str) -> Table:
    table = Table(seed)
    table.device.run_until_idle()
    table.device.command("set_game", name, method, 1, 3, HOURS[method], role="floor")
    return table


def deliver(table: Table, deck_id: int) -> list[PhysicalCard]:
    table.device.command("deliver_deck", deck_id)
    table.wait(lambda: table.shoe_state in (shoe.STUB_WAITING, shoe.JAMMED))
    return list(table.machine.exit_tray)


@pytest.mark.rule("MD3 8")
@pytest.mark.rule("MD3 9")
@pytest.mark.parametrize(("method", "name"), [(MANUAL_SHOE, "manual"), (HAND, "hand")])
def test_a_whole_shuffled_deck_is_delivered_and_decks_alternate(method: int, name: str) -> None:
    table = for_method(1, method, name)
    decks = [table.shuffle(back=RED)]
    assert table.shuffler_state == shuffler.STORED
    assert table.refused("open_round", 1, decks[0]) == "wrong_state"  # nothing is dealt from this shoe
    for turn in range(4):
        stored = list(table.machine.store)
        assert deliver(table, decks[turn % 2]) == stored
        assert len(stored) == 52
        table.machine.take_exit()
        table.collect()
        table.device.run_until(lambda: True)
        if turn == 0:
            assert table.refused("shuffle", decks[0]) == "tray_empty"
            decks.append(table.new_deck(BLUE))
        other = decks[(turn + 1) % 2]
        table.feed(other)
        assert table.shuffled()
    assert [values[1:] for values in table.named("deck_delivered")] == [(52, 52)] * 4
    assert [values[0] for values in table.named("deck_delivered")] == [decks[0], decks[1]] * 2


@pytest.mark.rule("MD3 3.B")
def test_a_deck_is_not_delivered_twice_in_a_row() -> None:
    table = for_method(2, MANUAL_SHOE, "manual")
    red = table.shuffle(back=RED)
    deliver(table, red)
    table.machine.take_exit()
    table.collect()
    table.new_deck(BLUE)
    table.feed(red)
    table.shuffled()
    assert table.refused("deliver_deck", red) == "not_its_turn"
    assert table.machine.count("store") == 52


def test_the_automated_shoe_delivers_no_decks_and_the_hand_no_rounds() -> None:
    table = Table(3)
    table.open_table()
    assert table.refused("deliver_deck", 1) == "wrong_state"
    assert table.refused("set_game", "x", HAND, 1, 3, 4, role="floor") == "wrong_state"  # cards are inside


@pytest.mark.rule("MD3 3.C")
def test_the_hand_has_four_hours() -> None:
    table = for_method(4, HAND, "hand")
    table.shuffle(back=RED)
    table.device.clock_wrong_by_s = 5 * 3600
    assert table.refused("deliver_deck", 1) == "past_its_hours"


# -- batches ------------------------------------------------------------------------------------------


class Batch(Table):
    """Batches of several decks, cut and laid in by hand."""

    def __init__(self, seed: int, *faults: str, decks: int = 2) -> None:
        super().__init__(seed, *faults, capacity="batch")
        self._deck_size = 52 * decks
        self.device.run_until_idle()
        self.device.command("set_game", "md-mini-baccarat", CARD_BY_CARD, decks, 1, 24, role="floor")
        self.shoe_order: list[PhysicalCard] = []

    def prepare(self, deck_id: int, cover_above_bottom: int = 14) -> None:
        """Deliver the batch, cut it, put the cover card in, and lay it into the shoe."""
        cards = deliver(self, deck_id)
        assert len(cards) == self._deck_size
        self.machine.take_exit()
        self.device.run_until(lambda: True)
        self.machine.handed_out.clear()
        at = self.random.randrange(10, self._deck_size - 10)
        cards = cards[at:] + cards[:at]
        cards.insert(len(cards) - cover_above_bottom, cover_card(self.random))
        self.machine.open_door(hardware.SHOE_DOOR)
        self.device.run_until(lambda: True)
        self.machine.load_shoe(list(cards))
        self.machine.close_door(hardware.SHOE_DOOR)
        self.device.run_until(lambda: True)
        self.shoe_order = cards

    def draw(self, cards: int) -> list[PhysicalCard]:
        view = self.device.view()
        self.device.command("draw_cards", view.open_round, view.stacks + 1, cards)
        return self.taken()

    def taken(self) -> list[PhysicalCard]:
        self.wait(lambda: self.shoe_state in (shoe.STACK_WAITING, shoe.STUB_WAITING, shoe.JAMMED))
        if self.shoe_state == shoe.JAMMED:
            return []
        return self._take()

    def open(self, deck_id: int) -> int:
        round_id = self.device.view().last_round + 1
        self.device.command("open_round", round_id, deck_id)
        self.device.command("close_bets", round_id, 2)
        return round_id

    def hand(self, deck_id: int) -> int:
        """One hand of four cards."""
        round_id = self.open(deck_id)
        for _ in range(4):
            self.draw(1)
        self.device.command("end_round", round_id)
        return round_id


@pytest.mark.rule("MDM 3.A")
@pytest.mark.rule("MDM 5")
@pytest.mark.rule("MDM 8")
@pytest.mark.rule("MDM 9.D")
def test_a_batch_is_shuffled_cut_laid_in_burnt_and_dealt_until_its_last_hand() -> None:
    table = Batch(5)
    deck_id = table.shuffle(back=RED)
    assert table.named("deck_counted")[-1][2:] == (104, 104)
    table.prepare(deck_id)
    assert table.shoe_state == shoe.UNPROVED
    table.device.command("load_shoe", deck_id, role="floor")
    assert not table.device.view().proved(deck_id)  # a claim, until it has been dealt out
    order = iter(table.shoe_order)
    table.device.command("burn_cards", 1)
    assert table.taken() == [next(order)]
    table.device.command("burn_cards", 5)
    assert table.taken() == [next(order) for _ in range(5)]
    assert table.refused("burn_cards", 1) == "already_burnt"
    hands = 0
    while not table.named("cover_card_seen"):
        table.hand(deck_id)
        hands += 1
    assert table.refused("burn_cards", 1) == "already_burnt"
    last = table.hand(deck_id)
    assert table.named("last_hand") == [(last,)]
    assert table.refused("open_round", last + 1, deck_id) == "last_hand_dealt"
    table.device.command("end_shoe", deck_id)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert table.named("shoe_ended") == [(deck_id, 104, 104)]  # only now it is proved
    assert {values[1] for values in table.named("round_ended")} == {UNPROVED}
    assert hands >= (104 - 6 - 14) // 4


@pytest.mark.rule("MDM 3.B")
@pytest.mark.rule("MDM 3.C")
def test_batches_alternate_shoe_by_shoe_and_are_changed_after_24_hours() -> None:
    table = Batch(6, decks=1)
    red = table.shuffle(back=RED)
    table.prepare(red)
    table.device.command("load_shoe", red, role="floor")
    blue = table.shuffle(back=BLUE)  # while the other is dealt
    assert table.shuffler_state == shuffler.STORED
    table.hand(red)
    table.hand(red)  # round after round from the same shoe
    table.device.command("end_shoe", red)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table._take()
    assert table.machine.count("store") == 52  # nothing is pushed that nobody asked for
    assert table.refused("load_shoe", red, role="floor") == "wrong_state"
    table.prepare(blue)
    assert table.refused("load_shoe", red, role="floor") == "not_delivered"
    table.device.command("load_shoe", blue, role="floor")
    table.hand(blue)
    table.device.clock_wrong_by_s = 25 * 3600
    assert table.refused("open_round", 9, blue) == "past_its_hours"


def lay_in(table: Table, cards: list[PhysicalCard]) -> None:
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.load_shoe(cards)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)


@pytest.mark.rule("MDM 3.B")
def test_a_batch_is_laid_in_once_for_each_delivery() -> None:
    """After its shoe has ended it must be shuffled again."""
    table = Batch(20, decks=1)
    red = table.shuffle(back=RED)
    table.prepare(red)
    table.device.command("load_shoe", red, role="floor")
    table.device.command("end_shoe", red)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    lay_in(table, table._take())
    assert table.refused("load_shoe", red, role="floor") == "not_delivered"


def test_a_batch_with_one_more_card_in_the_path_is_not_laid_in_before_that_card_was_found() -> None:
    """As many cards as there must be came out, and one more lay in the path, under the next shoe."""
    table = Batch(22, "stuck@deal:53", decks=1)
    red = table.shuffle(back=RED)
    table.machine.store.append(new_deck(RED, Random(1))[0])  # by an unseen hand
    assert len(deliver(table, red)) == 52
    cards = table._take()
    table.device.run_until_idle()
    assert (table.shoe_state, table.machine.count("shoe")) == (shoe.BLOCKED, 1)
    lay_in(table, cards)
    assert table.refused("load_shoe", red, role="floor") == "not_delivered"


@pytest.mark.rule("MDM 3.B")
def test_a_batch_that_is_fed_again_is_no_longer_a_delivered_one() -> None:
    """Other cards laid into the shoe would be taken for the batch that lies on the shelf."""
    table = Batch(21, decks=1)
    red = table.shuffle(back=RED)
    deliver(table, red)
    table.machine.take_exit()
    table.collect()
    table.device.run_until(lambda: True)
    table.feed(red)
    assert table.shuffled()
    lay_in(table, new_deck(RED, Random(1)))
    assert table.refused("load_shoe", red, role="floor") == "not_delivered"


@pytest.mark.rule("MDM 13.E")
def test_too_few_cards_void_the_round_and_end_the_shoe() -> None:
    table = Batch(7, decks=1)
    deck_id = table.shuffle(back=RED)
    table.prepare(deck_id, cover_above_bottom=52)
    table.device.command("load_shoe", deck_id, role="floor")
    round_id = table.open(deck_id)
    for _ in range(4):
        table.draw(12)
    table.device.command("draw_cards", round_id, 5, 12)
    table.taken()
    assert table.named("round_voided") == [(round_id, void_reason("too_few_cards"))]
    assert table.named("shoe_ended") == [(deck_id, 52, 52)]
    assert table.shoe_state == shoe.EMPTY


@pytest.mark.rule("MDM 8")
def test_a_card_face_up_in_the_shoe_is_told_and_a_simulated_round_needs_no_bets() -> None:
    table = Batch(8, decks=1)
    deck_id = table.shuffle(back=RED)
    table.prepare(deck_id)
    table.machine.shoe[2].face_up = True
    table.device.command("load_shoe", deck_id, role="floor")
    round_id = table.hand(deck_id)
    assert table.named("card_exposed") == [(round_id,)]
    assert table.faults() == []
    table.device.command("simulate_round", round_id + 1, deck_id, role="floor")
    table.draw(2)
    table.device.command("end_round", round_id + 1)
    assert len(table.named("bets_closed")) == 1


@pytest.mark.rule("MDM 11.A")
def test_faces_of_a_hand_dealt_card_by_card_are_told_once_it_lies_open() -> None:
    table = Batch(14, decks=1)
    deck_id = table.shuffle(back=RED)
    table.prepare(deck_id)
    table.device.command("load_shoe", deck_id, role="floor")
    round_id = table.device.view().last_round + 1
    table.device.command("open_round", round_id, deck_id)
    assert table.refused("reveal_round", round_id) == "bets_open"
    table.device.command("close_bets", round_id, 2)
    drawn = [table.draw(1)[0].number for _ in range(4)]
    assert table.refused("faces", round_id, 1) == "stale"  # nobody said that the hands lie open
    table.device.command("reveal_round", round_id)
    for draw, number in enumerate(drawn, 1):
        told: object = table.device.command("faces", round_id, draw)[2]
        assert told == [number]
    assert table.refused("faces", round_id, 5) == "stale"  # the third card has not come
    third = table.draw(1)[0].number
    told = table.device.command("faces", round_id, 5)[2]
    assert told == [third]
    table.device.command("end_round", round_id)
    told = table.device.command("faces", round_id, 2)[2]
    assert told == [drawn[1]]
    following = table.open(deck_id)
    table.draw(1)
    assert table.refused("faces", following, 1) == "stale"


def test_a_shoe_is_laid_in_only_behind_a_door_that_was_opened_and_shut() -> None:
    table = Batch(9, decks=1)
    deck_id = table.shuffle(back=RED)
    assert table.refused("load_shoe", deck_id, role="floor") == "wrong_state"  # the shoe is empty
    table.prepare(deck_id)
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    assert table.refused("load_shoe", deck_id, role="floor") == "wrong_state"


def test_a_shoe_that_was_laid_in_before_a_power_cut_is_opened_again_before_it_counts() -> None:
    """While the power was off nobody could see who opened the door."""
    table = Batch(15, decks=1)
    deck_id = table.shuffle(back=RED)
    table.prepare(deck_id)
    table.device.reboot()
    table.device.run_until_idle()
    assert table.shoe_state == shoe.UNPROVED
    assert table.refused("load_shoe", deck_id, role="floor") == "not_cleared"
    lay_in(table, [])
    table.device.command("load_shoe", deck_id, role="floor")
    assert table.shoe_state == shoe.READY


def test_a_card_of_the_other_batch_stops_the_shoe() -> None:
    table = Batch(10, decks=1)
    deck_id = table.shuffle(back=RED)
    table.prepare(deck_id)
    table.machine.strike("other_deck_card@shoe")
    table.device.command("load_shoe", deck_id, role="floor")
    for _ in range(14):
        if table.shoe_state != shoe.READY:
            break
        round_id = table.open(deck_id)
        table.draw(4)
        if table.shoe_state != shoe.ROUND_OPEN:
            break
        table.device.command("end_round", round_id)
    assert table.faults() == [("exit", "wrong_deck")]
    assert len(table.named("round_voided")) == 1


def test_eight_decks_are_shuffled_and_counted() -> None:
    table = Batch(11, decks=8)
    deck_id = table.shuffle(back=RED)
    assert table.faults() == []
    assert table.named("deck_counted") == [(deck_id, 1, 416, 416)]
    assert table.machine.count("store") == 416


def test_a_game_is_kept_and_told() -> None:
    table = for_method(12, MANUAL_SHOE, "md-three-card-baccarat")
    game: object = table.device.command("game")
    assert game == ("md-three-card-baccarat", MANUAL_SHOE, 1, 3, 8, 0)
    table.device.reboot()
    table.device.run_until_idle()
    assert table.device.command("game") == game
    assert table.refused("set_game", "x", 0, 2, 3, 8, role="floor") == "other_method"  # stacks from two decks


@pytest.mark.rule("WA3 sets")
def test_stacks_are_as_large_as_the_game_says() -> None:
    table = Table(13, hands=4)
    table.device.run_until_idle()
    table.device.command("set_game", "five-card", 0, 1, 5, 0xFFFF, role="floor")
    table.open_table()
    assert table.deal_round()
    assert [len(hand) for hand in table.hands_dealt] == [5] * 4
    assert table.named("round_ended") == [(1, 1, 32, 52)]
