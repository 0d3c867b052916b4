"""The shoe half on the simulated mechanism: stacks of three, and a stub that makes 52 again."""

from collections.abc import Callable
from random import Random

import pytest

from sabot_firmware import hardware, shoe, shuffler
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import Card, cover_card, new_deck
from sabot_simulators.mechanism.machine import Machine
from sabot_simulators.mechanism.track import Body


class Table:
    """A machine with a deck in its store, and hands that take what it deals."""

    def __init__(self, seed: int, meddle: Callable[[list[Card], Random], None] | None = None) -> None:
        self.random = Random(seed)
        self.machine = Machine(self.random)
        self.device = InProcess(self.machine, self.random.randrange)
        self.shoe = self.device.shoe
        self.deck = new_deck(hardware.RED, self.random)
        self.machine.load(list(self.deck))
        self.device.shuffler.shuffle(hardware.RED, self.device.now_us)
        self.device.run_until(lambda: self.device.shuffler.state == shuffler.STORED)
        if meddle is not None:
            meddle(self.machine.store, self.random)
        self.order = list(self.machine.store)
        self.shoe.load(hardware.RED, self.device.now_us)
        self.until(shoe.READY)

    def until(self, *states: int) -> None:
        self.device.run_until(lambda: self.shoe.state in (*states, shoe.JAMMED))

    def stack(self) -> list[Card]:
        self.shoe.deal_stack(self.device.now_us)
        self.until(shoe.STACK_WAITING)
        return list(self.machine.exit_tray)

    def take(self) -> None:
        self.machine.take_exit()
        self.until(shoe.READY)

    def stub(self) -> list[Card]:
        self.shoe.eject(self.device.now_us)
        self.until(shoe.EJECTED)
        return list(self.machine.exit_tray)


@pytest.mark.rule("MD3 10.B")
@pytest.mark.parametrize("seed", range(5))
def test_seven_stacks_of_three_from_the_top_and_a_stub_of_31(seed: int) -> None:
    table = Table(seed)
    for stack in range(7):
        assert table.stack() == table.order[3 * stack : 3 * stack + 3]
        assert table.shoe.dealt == 3 * stack + 3
        table.take()
    assert table.stub() == table.order[21:]
    assert (table.shoe.stacks, table.shoe.stub, table.shoe.dealt) == (7, 31, 52)
    assert table.machine.handed_out == table.order[:21]
    assert table.shoe.jam is None


def test_seventeen_stacks_leave_one_card() -> None:
    table = Table(3)
    for _ in range(17):
        table.stack()
        table.take()
    table.stub()
    assert (table.shoe.stub, table.shoe.dealt) == (1, 52)


def test_the_next_stack_waits_until_the_last_is_taken() -> None:
    table = Table(4)
    table.stack()
    before = list(table.machine.exit_tray)
    with pytest.raises(AssertionError):
        table.device.run_until(lambda: _ten_seconds(table))
    assert table.shoe.state == shoe.STACK_WAITING
    assert table.machine.exit_tray == before
    table.shoe.deal_stack(table.device.now_us)
    assert table.shoe.state == shoe.JAMMED
    assert table.machine.exit_tray == before


def _ten_seconds(table: Table) -> bool:
    assert table.machine.agenda.now_us < 60_000_000
    return False


@pytest.mark.rule("MD3 10.C")
def test_a_card_missing_or_extra_is_seen_by_the_stub() -> None:
    for change in (-1, 1):

        def meddle(store: list[Card], random: Random, change: int = change) -> None:
            if change < 0:
                store.pop(40)
            else:
                store.insert(40, new_deck(hardware.RED, random)[0])

        table = Table(5, meddle)
        for _ in range(7):
            table.stack()
            table.take()
        table.stub()
        assert (table.shoe.stub, table.shoe.dealt) == (31 + change, 52 + change)


@pytest.mark.rule("MD3 13.A")
def test_a_face_up_card_stops_the_shoe() -> None:
    def meddle(store: list[Card], random: Random) -> None:
        store[4].face_up = True

    table = Table(6, meddle)
    table.stack()
    table.take()
    table.stack()
    assert table.shoe.jam is not None
    assert (table.shoe.jam.place, table.shoe.jam.cause) == ("exit", "face_up_card")


def test_a_card_of_the_other_deck_and_a_cover_card_are_refused() -> None:
    def other(store: list[Card], random: Random) -> None:
        store[1] = new_deck(hardware.BLUE, random)[0]

    def cover(store: list[Card], random: Random) -> None:
        store.insert(1, cover_card(random))

    for meddle, cause in ((other, "wrong_deck"), (cover, "foreign_card")):
        table = Table(7, meddle)
        table.stack()
        assert table.shoe.jam is not None
        assert table.shoe.jam.cause == cause


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize(
    ("stuck_at_um", "place", "cause"),
    [(20_000, "deal", "misfeed"), (60_000, "exit", "double_feed"), (120_000, "exit", "double_feed")],
)
def test_a_card_stuck_in_the_shoe_stops_it(
    stuck_at_um: int, place: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(8)
    take = table.machine._from_shoe

    def sticky() -> Body | None:
        body = take()
        if body is not None and len(table.machine.shoe) == 45:
            body.stuck_at_um = stuck_at_um
        return body

    monkeypatch.setattr(table.machine.deal_track, "_take", sticky)
    for _ in range(3):
        table.stack()
        if table.shoe.state == shoe.JAMMED:
            break
        table.take()
    assert table.shoe.jam is not None
    assert (table.shoe.jam.place, table.shoe.jam.cause) == (place, cause)
    assert table.machine._rollers[hardware.DEAL].direction == 0


def test_a_stack_taken_before_it_is_complete_is_noticed() -> None:
    table = Table(9)
    table.shoe.deal_stack(table.device.now_us)
    table.device.run_until(lambda: len(table.machine.exit_tray) == 1)
    table.machine.take_exit()
    table.until(shoe.STACK_WAITING)
    assert table.shoe.jam is not None
    assert table.shoe.jam.cause == "stack_disturbed"


def test_a_new_deck_is_shuffled_while_the_other_is_dealt() -> None:
    """The halves work at the same time, and neither disturbs the other (`MD3 3.B(3)`)."""
    table = Table(10)
    blue = new_deck(hardware.BLUE, table.random)
    table.machine.load(list(blue))
    table.device.shuffler.shuffle(hardware.BLUE, table.device.now_us)
    for stack in range(7):
        assert table.stack() == table.order[3 * stack : 3 * stack + 3]
        table.take()
    table.stub()
    table.device.run_until(lambda: table.device.shuffler.state == shuffler.STORED)
    assert table.shoe.dealt == 52
    assert table.device.shuffler.verified() == 52
    assert sorted(map(id, table.machine.store)) == sorted(map(id, blue))
