"""A board may want a moment in which nothing moves. It gets one between two cards; when tells nothing."""

from collections.abc import Callable
from random import Random

import pytest
from tests.machine.tables import RED, Table

from sabot_firmware import figures, hardware, shoe, shuffler
from sabot_protocol.codec import enum_number
from sabot_simulators.dealer import Dealer
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import new_deck
from sabot_simulators.mechanism.machine import Machine


class Sleepy(Machine):
    """A machine whose board wants a rest every so often."""

    tired = False

    def wants_rest(self, much_ahead: bool = False) -> bool:
        return self.tired


class Rested(InProcess):
    """The loop of a board that rests: asked for, put off as the core says, taken when nothing moves."""

    machine: Sleepy

    def __init__(self, machine: Sleepy, draw: Callable[[int], int], every_us: int) -> None:
        self.every_us = every_us
        self.rests: list[int] = []
        self.tired_us = 0
        self.jogged = False
        self.put_off: list[int] = []  # how long each rest of a shuffle waited
        super().__init__(machine, draw)

    def _step(self) -> int | None:
        due = super()._step()
        agenda, core = self.machine.agenda, self.core
        now = agenda.now_us
        if not self.machine.tired:
            left = self.tired_us + self.every_us - now
            if left > 0:
                return left if due is None else min(left, due)
            self.machine.tired, self.tired_us = True, now
        left = core.shuffler.rest_after_us() - (now - self.tired_us)
        if left > 0:
            return left if due is None else min(left, due)
        if not core.resting():
            return due
        assert self.jogged or self.moving() == []
        self.rests.append(now)
        if core.shuffler.rest_after_us():
            self.put_off.append(now - self.tired_us)
        self.machine.tired = False
        core.go_on(self.now_us, now - self.tired_us)
        return 0

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

    def __init__(self, draw: Callable[[int], int], every_us: int, slow: bool = False) -> None:
        self.random = Random(1)
        self.draws = []
        self.machine = Sleepy(self.random)
        if slow:
            for roller in self.machine._rollers:
                roller.speed_um_ms = 1000 - 10 * figures.ROLLER_TOLERANCE_PERCENT
        Dealer.__init__(self, Rested(self.machine, draw, every_us), 7)

    def heard(self) -> list[tuple[object, ...]]:
        """What a shuffle tells, and when; rests are seen by answers that come late."""
        device, agenda = self.device, self.machine.agenda
        device.run_until_still()
        deck_id = self.new_deck(RED)
        self.decks[deck_id] = new_deck(RED, Random(1))
        device.tired_us, device.rests = agenda.now_us, []
        heard: list[tuple[object, ...]] = []
        device.each_report = lambda name, values: heard.append((agenda.now_us // 1000, name, values))
        self.feed(deck_id)
        self.wait(lambda: self.shoe_state in (shoe.READY, shoe.JAMMED) or bool(self.faults()))
        return [*heard, *((at // 1000,) for at in device.rests)]


DRAWS: dict[str, Callable[[], Callable[[int], int]]] = {
    "always on top": lambda: lambda bound: 0,
    "always at the bottom": lambda: lambda bound: bound - 1,
    "at random": lambda: Random(2).randrange,
}


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("every_us", [1_300_000, 2_111_000])
def test_when_a_board_rests_in_a_shuffle_does_not_depend_on_the_slots(every_us: int, slow: bool) -> None:
    usual = Sleeping(Random(1).randrange, every_us, slow).heard()
    assert ("deck_counted", (1, 1, 52, 52)) in [each[1:] for each in usual]
    assert len([each for each in usual if len(each) == 1]) > 5
    for draw in DRAWS.values():
        assert Sleeping(draw(), every_us, slow).heard() == usual


def test_the_farthest_ways_still_leave_a_card_done_in_time() -> None:
    """The put-off of a rest is long enough for any card: none comes later, in any way the elevator may go."""
    table = Sleeping(lambda bound: 0 if bound % 2 else bound - 1, 900_000, slow=True)
    table.heard()
    put_off = table.device.put_off
    assert len(put_off) > 15
    assert set(put_off) == {shuffler.longest_card_us(52)}


def test_cards_are_dealt_and_counted_as_without_rests() -> None:
    table = Sleeping(Random(3).randrange, 450_000)
    assert table.open_table()
    order = [card.face for card in table.machine.shoe]
    table.device.rests.clear()
    assert table.play_round()
    dealt = [card.face for hand in table.hands_dealt for card in hand]
    assert sorted(dealt) == sorted(order[: len(dealt)])
    assert [values[1:] for values in table.named("round_ended")] == [(1, 31, 52)]
    assert len(table.device.rests) > 8
    assert not table.faults()


def test_a_door_that_opens_while_the_board_rests_stops_its_half() -> None:
    table = Sleeping(Random(4).randrange, 1_000_000)
    device = table.device
    device.run_until_still()
    table.feed(table.new_deck(RED))
    table.wait(lambda: device.machine.tired and device.core.shuffler._wait.resting)
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
    device.run_until_still()
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
