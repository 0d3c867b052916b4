"""A board may want a moment in which nothing moves. It gets one between two cards; when tells nothing."""

from collections.abc import Callable
from random import Random

import pytest
from tests.machine.tables import BLUE, RED, Table

from sabot_firmware import hardware, machine_constants, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_simulators.dealer import Dealer
from sabot_simulators.mechanism.physical_cards import new_deck
from sabot_simulators.mechanism.sensors import DIRT_US
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice


class Sleepy(SimulatedMachine):
    """A machine whose board wants a rest when the shuffler half stands for it."""

    needs_pause = False

    def request_pause(self) -> None:
        self.needs_pause = True

    def pause_requested(self) -> bool:
        return self.needs_pause


class Rested(PythonDevice):
    """The loop of a board that rests when nothing moves, and otherwise if it has been busy for so long."""

    machine: Sleepy

    def __init__(
        self, machine: Sleepy, draw: Callable[[int], int], every_us: int | None, takes_us: int
    ) -> None:
        self.every_us = every_us
        self.takes_us = takes_us
        self.rests: list[int] = []
        self.cards: list[int] = []  # how many were inserted when a rest of a shuffle began
        self.jogged = False
        self._last_us = 0
        self._ends_us: int | None = None
        super().__init__(machine, draw)

    def _step(self) -> int | None:
        due = super()._step()
        now, controller = self.machine.agenda.now_us, self.controller
        if self._ends_us is not None:
            left = self._ends_us - now
            if left > 0:
                return left if due is None else min(left, due)
            self._ends_us, self.machine.needs_pause, self._last_us = None, False, now
            controller.end_pause(self.now_us)
            return 0
        if self.every_us is not None and not controller.on_grid():
            left = self._last_us + self.every_us - now
            if left > 0:
                return left if due is None else min(left, due)
            self.machine.needs_pause = True
        if (
            not self.machine.needs_pause
            or not controller.paused()
            or (due is not None and due < self.takes_us)
        ):
            return due
        assert self.jogged or self.moving() == []
        self.rests.append(now)
        if controller.shuffler.state == shuffler.FEEDING:
            self.cards.append(controller.shuffler.inserted)
        self._ends_us = now + self.takes_us
        return self.takes_us

    def moving(self) -> list[str]:
        """What moves at this moment."""
        machine = self.machine
        found = [f"roller {n}" for n, each in enumerate(machine._rollers) if each.direction]
        levels = machine.sensors.levels
        if machine.elevator._arrives_us > machine.agenda.now_us:
            found.append("elevator")
        if not machine._pusher_home and not levels[hardware.PUSHER_END]:
            found.append("pusher")
        if not machine._shelf_up and not levels[hardware.SHELF]:
            found.append("shelf")
        return found


class Sleeping(Table):
    """A table with such a board."""

    device: Rested

    def __init__(
        self,
        draw: Callable[[int], int],
        every_us: int | None = None,
        takes_us: int = 20_000,
        slow: bool = False,
    ) -> None:
        self.random = Random(1)
        self.draws = []
        self.machine = Sleepy(self.random)
        if slow:
            for roller in self.machine._rollers:
                roller.speed_um_ms = 1000 - 10 * machine_constants.ROLLER_TOLERANCE_PERCENT
        Dealer.__init__(self, Rested(self.machine, draw, every_us, takes_us), 7)

    def heard(self) -> list[tuple[object, ...]]:
        """What a shuffle tells, and when."""
        device, agenda = self.device, self.machine.agenda
        device.run_until_idle()
        deck_id = self.new_deck(RED)
        self.decks[deck_id] = new_deck(RED, Random(1))
        device.rests, device.cards = [], []
        heard: list[tuple[object, ...]] = []
        device.on_report = lambda name, values: heard.append((agenda.now_us // 1000, name, values))
        self.feed(deck_id)
        self.wait(lambda: self.shoe_state in (shoe.READY, shoe.JAMMED) or bool(self.faults()))
        return heard


DRAWS: dict[str, Callable[[], Callable[[int], int]]] = {
    "always on top": lambda: lambda bound: 0,
    "always at the bottom": lambda: lambda bound: bound - 1,
    "at random": lambda: Random(2).randrange,
}
FIXED = [0, *range(shuffler.PAUSE_EVERY, 52, shuffler.PAUSE_EVERY)]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("takes_us", [0, 20_000, 28_000])
def test_rests_come_after_fixed_cards_and_a_shuffle_takes_the_same_time(takes_us: int, slow: bool) -> None:
    usual = Sleeping(Random(1).randrange, None, takes_us, slow).heard()
    assert ("deck_counted", (1, 1, 52, 52)) in [each[1:] for each in usual]
    for draw in DRAWS.values():
        table = Sleeping(draw(), None, takes_us, slow)
        assert table.heard() == usual
        assert table.device.cards[: len(FIXED)] == FIXED
        assert set(table.device.cards[len(FIXED) :]) == {52}  # while the half waits for its time


def test_a_shuffle_with_its_rests_is_within_the_bound() -> None:
    """13.74 s is the mean of the ways to the slots, grips, insertions, raisings and releases of 52 cards."""
    assert shuffler.padded_time_us(52) < 1.15 * 13_740_000


def _dealing_us(at_us: int) -> tuple[int, int]:
    """How long a stack and a stub take so long after the other deck's shuffle began."""
    table = Sleeping(Random(3).randrange)
    device, agenda = table.device, table.machine.agenda
    device.run_until_idle()
    table.feed(table.new_deck(RED))
    table.wait(lambda: table.shoe_state == shoe.READY)
    table.feed(table.new_deck(BLUE))
    device.run_for(at_us)
    device.command("open_round", 1, device.controller.shoe.deck)
    device.command("close_bets", 1, 1)
    began = agenda.now_us
    device.command("dispense_stack", 1, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    dealt = agenda.now_us
    table.machine.take_exit()
    table.wait(lambda: table.shoe_state == shoe.ROUND_OPEN)
    ejected = agenda.now_us
    device.command("end_round", 1)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert len(device.cards) > 5
    return dealt - began, agenda.now_us - ejected


def test_the_shoe_deals_as_fast_whenever_the_shuffler_rests() -> None:
    """Rests depend on the slots: a stack or a stub that waited for one would tell when it came."""
    assert len({_dealing_us(at_us) for at_us in range(3_000_000, 3_900_000, 150_000)}) == 1


def test_cards_are_dealt_and_counted_as_without_rests() -> None:
    table = Sleeping(Random(3).randrange, 450_000, takes_us=0)
    assert table.open_table()
    order = [card.face for card in table.machine.shoe]
    table.device.rests.clear()
    assert table.play_round()
    dealt = [card.face for hand in table.hands_dealt for card in hand]
    assert sorted(dealt) == sorted(order[: len(dealt)])
    assert [values[1:] for values in table.named("round_ended")] == [(1, 31, 52)]
    assert len(table.device.rests) > 8
    assert not table.faults()


@pytest.mark.parametrize("paced", [True, False], ids=["other deck shuffled", "board rests"])
def test_an_exit_that_is_covered_when_a_pause_ends_stops_the_shoe(paced: bool) -> None:
    """The last card made no edge there. The round was called one card short, which it was not."""
    table = Sleeping(Random(3).randrange, None, takes_us=35_000)
    device, machine, half = table.device, table.device.machine, table.device.controller.shoe
    device.run_until_idle()
    table.feed(table.new_deck(RED))
    table.wait(lambda: table.shoe_state == shoe.READY)
    if paced:
        table.feed(table.new_deck(BLUE))
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 1)
    device.command("dispense_stack", 1, 1)
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    table.take_stack()
    device.command("end_round", 1)
    table.wait(lambda: half.in_tray == 47)
    machine.needs_pause = machine.needs_pause or not paced
    table.wait(lambda: half.in_tray == 48 and half._wait.paused)
    machine.sensors.force(hardware.EXIT, DIRT_US)
    table.wait(lambda: bool(table.faults()) or table.shoe_state == shoe.STUB_WAITING)
    assert table.faults() == [("exit", "sensor_disagrees")]
    assert table.named("round_ended") == []


def test_a_door_that_opens_while_the_board_rests_stops_its_half() -> None:
    table = Sleeping(Random(4).randrange, 1_000_000)
    device = table.device
    device.run_until_idle()
    table.feed(table.new_deck(RED))
    table.wait(lambda: device.machine.needs_pause and device.controller.shuffler._wait.paused)
    table.machine.open_door(hardware.SHUFFLER_DOOR)
    table.wait(lambda: bool(table.faults()))
    assert table.shuffler_state == shuffler.JAMMED
    rested = len(device.rests)
    table.wait(lambda: len(device.rests) > rested)  # which does not set it going again
    assert device.moving() == []
    assert table.shuffler_state == shuffler.JAMMED


def test_a_jog_of_service_keeps_no_board_from_resting() -> None:
    """It may take minutes, and waits for no edge; a board that waited for it could not be told to end it."""
    table = Sleeping(Random(5).randrange, 1_000_000)
    device = table.device
    device.run_until_idle()
    device.command("mark_out_of_order", role="floor")
    device.command("service_mode", 1, role="service")
    device.command("jog", enum_number("Part", "feed"), 1, role="service")
    rested, device.jogged = len(device.rests), True
    for _ in range(15):
        device.run_for(200_000)
        device.command("jog", enum_number("Part", "feed"), 1)
    assert device.moving() == ["roller 0"]
    assert len(device.rests) > rested + 1
    device.run_for(3_000_000)
    assert device.moving() == []
