"""Decks, shuffles, whole rounds and faults."""

import time

import pytest
from tests.conformance.table import FLOOR, Table
from tests.conformance.targets import Target

from sabot_driver.errors import NotAllowed, Stale, WrongState
from sabot_protocol.host.messages import (
    Back,
    ClearFault,
    DeckCounted,
    DispenseStack,
    EndRound,
    Faces,
    Fault,
    FaultCleared,
    FaultRaised,
    Forbidden,
    OpenRound,
    Place,
    RegisterDeck,
    RemoveDeck,
    RemoveReason,
    RevealRound,
    RoundEnded,
    RoundVoided,
    ShoeChanged,
    ShoeState,
    Shuffle,
    ShufflerChanged,
    ShufflerState,
    StatusFlag,
    Verdict,
    VoidReason,
)


def test_a_deck_is_registered(table: Table) -> None:
    table.register()


def test_two_decks_with_the_same_back_are_refused(table: Table) -> None:
    table.floor()
    table.client.ask(RegisterDeck(1, Back.RED, int(time.time())), by=FLOOR)
    with pytest.raises(NotAllowed):
        table.client.ask(RegisterDeck(2, Back.RED, int(time.time())), by=FLOOR)


def test_a_third_deck_is_refused(table: Table) -> None:
    table.register()
    with pytest.raises(NotAllowed):
        table.client.ask(RegisterDeck(3, Back.RED, int(time.time())), by=FLOOR)


def test_a_deck_that_was_removed_never_returns(table: Table) -> None:
    table.register()
    table.client.ask(RemoveDeck(2, RemoveReason.FLOOR_ORDER), by=FLOOR)
    with pytest.raises(NotAllowed):
        table.client.ask(RegisterDeck(2, Back.BLUE, int(time.time())), by=FLOOR)


def test_a_shuffle_is_counted(table: Table) -> None:
    table.register()
    counted = table.shuffle(1)
    assert (counted.count, counted.expected) == (52, 52)


def test_every_shuffle_has_its_own_number(table: Table) -> None:
    table.register()
    first = table.client.ask(Shuffle(1)).shuffle_id
    table.wait_for(DeckCounted, 0, deck_id=1)
    table.wait_for(ShoeChanged, 0, state=ShoeState.READY)
    assert table.client.ask(Shuffle(2)).shuffle_id == first + 1


def test_a_deck_nobody_registered_is_not_shuffled(table: Table) -> None:
    table.register()
    with pytest.raises(NotAllowed):
        table.client.ask(Shuffle(7))


def test_the_first_deck_goes_into_the_empty_shoe(table: Table) -> None:
    table.register()
    table.shuffle(1)
    assert table.wait_for(ShoeChanged, 0, state=ShoeState.READY).deck_id == 1


def test_the_second_deck_waits_on_the_shelf(table: Table) -> None:
    table.open()
    assert table.client.status().shuffler == ShufflerState.STORED


def test_a_round_adds_up(table: Table) -> None:
    table.open()
    ended = table.play(1, hands=7)
    assert ended.verdict is Verdict.CORRECT
    assert (ended.stub, ended.count) == (31, 52)


def test_decks_alternate(table: Table) -> None:
    table.open()
    for deck_id in (1, 2, 1):
        assert table.play(deck_id).verdict is Verdict.CORRECT


def test_the_deck_of_the_last_round_is_refused(table: Table) -> None:
    table.open()
    table.play(1)
    with pytest.raises(NotAllowed):
        table.client.ask(OpenRound(2, 1))


def test_a_round_number_that_has_been_is_stale(table: Table) -> None:
    table.open()
    table.play(1)
    with pytest.raises(Stale):
        table.client.ask(OpenRound(1, 2))


def test_no_round_without_a_deck_in_the_shoe(table: Table) -> None:
    table.register()
    with pytest.raises(WrongState):
        table.client.ask(OpenRound(1, 1))


def test_a_round_ends_only_when_every_hand_has_its_stack(table: Table) -> None:
    table.open()
    table.open_round()
    table.stack(1)
    with pytest.raises(NotAllowed):
        table.client.ask(EndRound(1))


def test_a_deck_in_play_is_not_removed(table: Table) -> None:
    table.open()
    table.open_round()
    with pytest.raises(NotAllowed):
        table.client.ask(RemoveDeck(1, RemoveReason.DAMAGED), by=FLOOR)


def test_status_shows_an_open_round(table: Table) -> None:
    table.open()
    assert not table.client.status().flags & StatusFlag.ROUND_OPEN
    table.open_round()
    assert table.client.status().flags & StatusFlag.ROUND_OPEN


def test_one_deck_is_shuffled_while_the_other_is_dealt(table: Table) -> None:
    table.open()
    table.open_round(2, 1)
    table.stack(1)
    table.stack(2)
    table.end_round()
    here = table.now
    table.client.ask(Shuffle(1))
    table.open_round(2, 2)
    table.stack(1)
    assert table.wait_for(DeckCounted, here, deck_id=1).count == 52
    table.stack(2)
    assert table.end_round().verdict is Verdict.CORRECT


def test_no_stack_before_the_bets_are_closed(table: Table) -> None:
    table.open()
    table.client.ask(OpenRound(1, 1))
    with pytest.raises(NotAllowed) as refused:
        table.client.ask(DispenseStack(1, 1))
    assert refused.value.reason is Forbidden.BETS_OPEN


def test_faces_are_told_only_after_the_reveal(table: Table) -> None:
    table.open()
    table.play(1)
    with pytest.raises(NotAllowed) as refused:
        table.client.ask(Faces(1, 1))
    assert refused.value.reason is Forbidden.NOT_REVEALED
    table.client.ask(RevealRound(1))
    faces = [table.client.ask(Faces(1, stack)).faces for stack in (1, 2, 3)]
    read = [face for each in faces for face in each]
    assert len(set(read)) == 9
    assert all(face < 52 for face in read)


def test_a_power_cut_voids_the_round(table: Table, target: Target) -> None:
    table.open()
    table.open_round()
    table.stack(1)
    here = table.now
    if not target.hands:
        return
    target.reboot()
    table.client.status(timeout=30)
    assert table.wait_for(RoundVoided, here).reason is VoidReason.POWER_CUT


@pytest.mark.settings("seed=1&fault=stuck@exit:5")
def test_a_stuck_card_voids_the_round_and_is_told_with_its_place(table: Table) -> None:
    if not _planned(table):
        return
    told = table.wait_for(FaultRaised, 0)
    assert told.place is Place.EXIT
    assert told.fault in (Fault.CARD_STUCK, Fault.DOUBLE_FEED), "a shadow longer than a card"
    assert table.wait_for(RoundVoided, 0).reason is VoidReason.SHOE_FAILED
    assert table.client.status().flags & StatusFlag.FAULT_LATCHED


@pytest.mark.settings("seed=1&fault=stuck@exit:5")
def test_a_cleared_jam_lets_play_go_on(table: Table) -> None:
    if not _planned(table):
        return
    told = table.wait_for(FaultRaised, 0)
    _clear(table, told.fault)
    table.wait_for(FaultCleared, 0)
    table.wait_for(ShoeChanged, 0, state=ShoeState.READY, deck_id=2)
    table.shuffle(1)
    assert table.play(2).verdict is Verdict.CORRECT


@pytest.mark.settings("seed=1&fault=stuck@insertion:70")
def test_a_jam_of_the_shuffler_never_touches_the_round(table: Table) -> None:
    if not table.client.simulator:
        return
    table.register()
    table.shuffle(1)
    table.wait_for(ShoeChanged, 0, state=ShoeState.READY, deck_id=1)
    table.open_round(3, 1)
    table.client.ask(Shuffle(2))
    table.wait_for(ShufflerChanged, 0, state=ShufflerState.JAMMED)
    for stack in (1, 2, 3):
        table.stack(stack)
    here = table.now
    table.client.ask(EndRound(table.round_id))
    table.wait_for(ShoeChanged, here, state=ShoeState.EMPTY)
    assert table.wait_for(RoundEnded, here).verdict is Verdict.CORRECT


def _planned(table: Table) -> bool:
    """Play into the planned fault; False on a machine that plans none."""
    table.open()
    table.open_round()
    if not table.client.simulator:
        return False
    table.stack(1)
    table.client.ask(DispenseStack(table.round_id, 2))
    return True


def _clear(table: Table, fault: Fault) -> None:
    """The people empty the half in a moment; until then the machine does not believe it."""
    ends = time.monotonic() + 60
    while True:
        try:
            table.client.ask(ClearFault(fault), by=FLOOR)
            return
        except NotAllowed:
            assert time.monotonic() < ends
            time.sleep(0.01)
