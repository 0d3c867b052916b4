"""The machine does not tell everything: a face that its reader cannot read, events that were lost."""

from itertools import combinations

import pytest
from tests.session.acted_table import ActedTable
from tests.session.scripted_shoe import ShoeTable

from sabot_protocol.host import messages as m
from sabot_protocol.host.message_base import Message
from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_table.ruleset import load

FEEDING, STORED, IDLE = m.ShufflerState.FEEDING, m.ShufflerState.STORED, m.ShufflerState.IDLE
DECK, BATCH = 52, 8 * 52


@pytest.mark.rule("MDM 8.D")
def test_a_third_card_is_read_although_the_dealer_typed_the_first_four() -> None:
    """The reader missed one of the four. It reads the third cards again, so the dealer types none of them."""
    table = ShoeTable()
    table.ready()
    table.shoe.cards = ("2H", "", "3H", "AD", "KS", "2C")
    table.bet({1: {"player": 2000}})
    table.give(acts.Expose())
    assert table.kinds() == [NeedKind.TYPE_CARDS]
    table.give(dealing_acts.Announce(("2H", "3H"), ("AC", "AD")))
    assert table.kinds() == [NeedKind.SETTLE]
    told = [(each.data["card"], each.data["source"]) for each in table.rows("third_card")]
    assert told == [("KS", "reader"), ("2C", "reader")]


# -- lost events --------------------------------------------------------------------------------


def of_shuffle(deck: int, cards: int) -> list[Message]:
    """What the machine tells of a deck's first shuffle."""
    return [
        m.ShuffleCommitted(deck, deck, bytes(32)),
        m.ShufflerChanged(FEEDING, deck),
        m.DeckCounted(deck, deck, cards, cards),
        m.ShufflerChanged(STORED, deck),
    ]


def every_gap(events: list[Message]) -> list[list[Message]]:
    """Each run of these events: a gap stands for events that follow each other."""
    return [events[first:end] for first, end in combinations(range(len(events) + 1), 2)]


def test_a_batch_whose_count_was_lost_comes_out_and_is_shuffled_again() -> None:
    """Neither its count nor its way to the shelf was told: nobody was asked for anything."""
    table = ShoeTable("md-mini-baccarat")
    table.machine.to_lose = of_shuffle(1, BATCH)[2:]
    table.begin()
    shuffles = [(each.kind, each.data["pack_id"]) for each in table.rows("start_shuffle", "finish_shuffle")]
    assert shuffles[:2] == [("start_shuffle", 1), ("finish_shuffle", 1)]
    assert table.machine.asked.count("empty_machine") == 1
    assert table.machine.asked.count("shuffle_with") == 3  # the first batch twice
    assert table.kinds() == [NeedKind.CUT]


def test_a_batch_is_shuffled_whatever_is_lost_of_its_shuffle() -> None:
    """The session waited for the lost event of a commitment or of a feeding for ever."""
    for lost in every_gap(of_shuffle(1, BATCH)):
        table = ShoeTable("md-mini-baccarat")
        table.machine.to_lose = [*lost]
        table.begin()
        packs = table.session.procedure.table.packs()
        assert [each.state for each in packs] == ["shuffled", "shuffled"], lost
        assert table.kinds() == [NeedKind.CUT], lost


@pytest.mark.parametrize("rules", ["md-mini-baccarat", "baccarat-six-deck"])
def test_a_batch_that_came_out_uncounted_is_shuffled_again(rules: str) -> None:
    cards = load(rules).cards.decks * DECK
    delivered: list[Message] = [m.ShufflerChanged(IDLE, 0), m.DeckDelivered(1, cards, cards)]
    for lost in (delivered, delivered[1:]):
        table = ShoeTable(rules)
        table.machine.to_lose = [*lost]
        table.begin()
        assert [each.data["pack_id"] for each in table.rows("finish_shuffle")].count(1) == 2
        assert len(table.rows("deliver")) == 1
        assert table.kinds() == [NeedKind.CUT if rules == "md-mini-baccarat" else NeedKind.LAY_IN]


def test_a_machine_whose_emptying_was_lost_is_fed_again() -> None:
    table = ShoeTable("md-mini-baccarat")
    empty = m.ShoeChanged(m.ShoeState.EMPTY, 0, 0)
    emptied: list[Message] = [m.Emptied(0), empty, m.ShufflerChanged(IDLE, 0)]
    table.machine.to_lose = [*of_shuffle(1, BATCH)[2:], *emptied]
    table.begin()
    assert table.machine.to_lose == []
    assert table.kinds() == [NeedKind.CUT]


@pytest.mark.slow
@pytest.mark.parametrize("deck", [1, 2])
def test_three_card_rounds_go_on_whatever_is_lost_of_a_shuffle(deck: int) -> None:
    loaded: list[Message] = [m.ShoeChanged(m.ShoeState.READY, deck, 0), m.ShufflerChanged(IDLE, 0)]
    for lost in every_gap([*of_shuffle(deck, DECK), *loaded]):
        table = ActedTable()
        table.machine.to_lose = [*lost]
        table.ready()
        for _ in range(2):
            table.round()
            table.tick()
            table.prepare()
        assert table.rows("unexplained") == [], lost


def test_a_batch_is_fed_again_whatever_is_lost_of_its_shoes_end() -> None:
    empty, cards = m.ShoeChanged(m.ShoeState.EMPTY, 0, 0), load("baccarat-six-deck").cards.decks * DECK
    for lost in every_gap([m.ShoeEnded(1, cards, cards), empty]):
        table = ShoeTable()
        table.ready()
        table.shoe.cards = ("KH", "2C", "8H", "5D")
        table.bet({1: {"player": 2000}})
        table.machine.to_lose = [*lost]
        table.give(acts.Expose())
        assert table.machine.to_lose == [], lost
        table.give(dealing_acts.Settle())  # people lay the batch into the tray, and with that collect it
        table.lay_in()


def test_a_shoe_whose_end_was_lost_is_over() -> None:
    """The batch is past its hours, so the machine was asked to end its shoe."""
    table = ShoeTable("md-mini-baccarat")
    table.begin()
    table.give(dealing_acts.CutPack(1, 200))
    table.give(dealing_acts.PlaceCover(1, 20))
    table.give(dealing_acts.LaidIn(1), "anna")
    table.give(dealing_acts.Burn(1, "AS"))
    assert table.need(NeedKind.BETS) is not None
    table.machine.to_lose = [m.ShoeEnded(1, BATCH, BATCH), m.ShoeChanged(m.ShoeState.EMPTY, 0, 0)]
    table.tick(24 * 3600)
    table.tick()
    assert table.machine.to_lose == []
    assert [each.data["pack_id"] for each in table.rows("discard")] == [1]
