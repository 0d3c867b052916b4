"""The shipped board program over stubbed hardware: rounds are played, and its time is right over days."""

import sys
from types import ModuleType

import pytest
from tests.sweeps import Amount

from sabot_firmware import hardware
from sabot_firmware.boards.rp2040 import pins
from sabot_protocol.device_protocol import DeviceProtocol
from sabot_protocol.errors import Refusal
from sabot_protocol.provisioning import HOLD_MS
from sabot_simulators.board_faults import keys_record
from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.stubs.month import DAY_S, StubbedDevice, live
from sabot_simulators.stubs.stubbed_board import StubbedBoard

CONTACT_LATE_MS = 750  # after its time the keys are cleared so much later at most
WRAP_MS = 1 << 30
SIX_HOURS_MS = 6 * 3600 * 1000


def played(seed: int, rounds: int) -> tuple[list[object], list[int], int]:
    """Rounds over stubs: what was reported, the order in the first shoe, and when it was over."""
    with StubbedBoard() as board:
        table = StubbedDevice(board, seed)
        table.provision()
        dealer = Dealer(table)
        assert dealer.open_table()
        order = [card.number for card in table.machine.shoe]
        assert sorted(order) == list(range(52))
        for _ in range(rounds):
            assert dealer.play_round()
        assert table.named("fault_raised") == []
        return list(table.stamped), order, table.machine.agenda.now_us


@pytest.mark.slow
def test_a_round_is_played_by_the_shipped_program_and_a_seed_gives_it_again() -> None:
    first, second, other = played(1, rounds=1), played(1, rounds=1), played(2, rounds=0)
    assert first == second
    assert first[1] != other[1]


def test_the_modules_of_this_python_are_as_before() -> None:
    import gc
    import select
    import time

    before = {name: sys.modules.get(name) for name in ("select", "gc", "time", "sys", "machine", "rp2")}
    with StubbedBoard() as board:
        board.power_on()
        assert {name: sys.modules.get(name) for name in before} == before
    assert sys.modules["time"] is time
    assert sys.modules["gc"] is gc
    assert sys.modules["select"] is select


@pytest.mark.slow
@pytest.mark.parametrize(
    "present", [pytest.param(False, id="absent", marks=pytest.mark.full), pytest.param(True, id="present")]
)
def test_a_day_with_the_counter_going_round_has_its_hours_and_events_right(
    present: bool, amount: Amount
) -> None:
    """The milliseconds go round after twelve days: here after six hours. Decks may be used for eight."""
    day_s, session_s = amount(10, full=24) * 3600, amount(120, full=3600)
    found = live(
        1, present, ticks_from_us=(WRAP_MS - SIX_HOURS_MS) * 1000, session_s=session_s, day_s=day_s
    )
    assert found.wrong == []
    assert found.events > 20


@pytest.mark.slow
@pytest.mark.full
def test_a_clock_that_stands_still_while_no_host_talks_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: only a cable's port let the device's time go on."""
    tick = DeviceProtocol.tick

    def only_with_a_host(self: DeviceProtocol, now: int) -> None:
        if self.owner is not None or self.uptime_s() < 100:
            tick(self, now)

    monkeypatch.setattr(DeviceProtocol, "tick", only_with_a_host)
    assert live(1, present=False).wrong


def test_the_lamp_shows_its_colours_through_the_expander() -> None:
    """Each light is a bit of its own; a colour may be any sum of them. The motors' byte stays as it is."""
    with StubbedBoard() as board:
        table = StubbedDevice(board, 3)
        table.provision()
        table.run_until_idle()
        assert (table.machine.lamp, board.chip.outputs) == (hardware.GREEN, 1 << pins.LAMP_BIT + 1)
        table.command("locate", 5)
        table.run_until_idle()
        assert (table.machine.lamp, board.chip.outputs) == (hardware.AMBER, 3 << pins.LAMP_BIT)


def test_after_a_crash_the_lamp_is_dark_until_the_next_start_and_for_good_when_the_program_gave_up() -> None:
    """A lamp left green would say that the machine is ready."""
    crashes, dark = 0, []

    def make_crash(program: ModuleType) -> None:
        turn, safe = program.Device.turn, program.Rp2040.safe

        def crashing(self: object) -> None:
            nonlocal crashes
            if crashes:
                crashes -= 1
                raise RuntimeError("planted")
            turn(self)

        def noted(self: object) -> None:
            safe(self)
            dark.append(board.chip.outputs >> pins.LAMP_BIT & 7 == 0)

        program.Device.turn, program.Rp2040.safe = crashing, noted

    with StubbedBoard() as board:
        board.on_load = make_crash
        table = StubbedDevice(board, 3)
        table.provision()
        table.run_until_idle()
        assert table.machine.lamp == hardware.GREEN
        crashes = 1
        table.run_for(5_000_000)
        assert dark == [True]
        assert table.machine.lamp == hardware.GREEN  # the machine is empty, and its self-test found it so
        crashes = 2
        table.run_for(5_000_000)
        assert dark == [True, True, True]
        assert (table.machine.lamp, board.chip.outputs) == (0, 0)


def test_crashes_that_are_a_week_apart_are_not_crashes_in_a_row() -> None:
    """Ticks tell six days at most: a life of a week counted as a short one, and the fourth crash ended it."""
    crashing, weeks_ms = False, 0

    def make_crash(program: ModuleType) -> None:
        turn, now_ms = program.Device.turn, program.now_ms

        def turn_or_crash(self: object) -> None:
            nonlocal crashing
            if crashing:
                crashing = False
                raise RuntimeError("planted")
            turn(self)

        program.Device.turn = turn_or_crash
        program.__dict__["now_ms"] = lambda: now_ms() + weeks_ms & WRAP_MS - 1

    with StubbedBoard() as board:
        board.on_load = make_crash
        table = StubbedDevice(board, 3)
        table.provision()
        table.run_until_idle()
        table.pull_cable()
        for _ in range(5):
            table.run_for(70_000_000)
            weeks_ms += 7 * DAY_S * 1000
            crashing = True
            table.run_for(5_000_000)
        assert not crashing
        assert board.chip.outputs >> pins.LAMP_BIT & 7  # dark, had the program given up


@pytest.mark.parametrize("cable", [True, False], ids=["host", "alone"])
@pytest.mark.parametrize("phase_ms", [0, 190, 380, 570, 760, 950])
def test_the_contact_clears_the_keys_when_it_was_held_whatever_else_wakes_the_loop(
    cable: bool, phase_ms: int
) -> None:
    """On the old code the loop looked at the contact when it woke for another reason, up to 2 s late."""
    at, size = keys_record()
    with StubbedBoard() as board:
        table = StubbedDevice(board, 3)
        table.provision()
        table.run_until_idle()
        if not cable:
            table.pull_cable()
        table.run_for(3_000_000 + phase_ms * 1000)
        keys = board.fram.cells[at : at + size]
        table.machine.hold_contact(True)
        table.run_for((HOLD_MS - 50) * 1000)
        assert board.fram.cells[at : at + size] == keys
        table.run_for((50 + CONTACT_LATE_MS) * 1000)
        assert board.fram.cells[at : at + size] != keys


def test_after_a_crash_garbage_is_collected_before_anything_is_written_down() -> None:
    """On the old code an error for want of memory was followed by one that ended the program."""
    allocated: list[int] = []
    crashing = False

    def make_crash(program: ModuleType) -> None:
        turn, keep = program.Device.turn, program.Program._keep

        def turn_or_crash(self: object) -> None:
            nonlocal crashing
            if crashing:
                crashing = False
                board.chip.heap.allocate(50_000)
                raise MemoryError("planted")
            turn(self)

        def noted(self: object, error: Exception) -> None:
            allocated.append(board.chip.heap.allocated)
            keep(self, error)

        program.Device.turn, program.Program._keep = turn_or_crash, noted

    with StubbedBoard() as board:
        board.on_load = make_crash
        table = StubbedDevice(board, 3)
        table.provision()
        table.run_until_idle()
        crashing = True
        table.run_for(5_000_000)
        assert allocated == [0]


@pytest.mark.slow
def test_a_power_cut_keeps_the_chips_and_nothing_else() -> None:
    with StubbedBoard() as board:
        table = StubbedDevice(board, 3)
        table.provision()
        dealer = Dealer(table)
        table.run_until_idle()
        deck_id = dealer.new_deck(1)
        table.reboot()
        table.run_until_idle()
        assert [each.values for each in table.stamped if each.name == "booted"] == [(1,), (1,)]
        assert list(table.ask("decks")[0]) == [deck_id]
        assert board.boots == 2


def test_a_program_that_hangs_is_started_again_by_the_watchdog() -> None:
    with StubbedBoard() as board:
        table = StubbedDevice(board, 4)
        table.provision()
        table.run_until_idle()
        board.chip.fed_us -= board.chip.watchdog_us  # as if it had not been fed for so long
        board.chip.now_us += 1
        ran = board.run(board.chip.now_us + DAY_S)
        while ran.why == runner_messages.SAID:
            ran = board.run(board.chip.now_us + DAY_S)
        assert ran.why == runner_messages.RESET
        assert board.boots == 2


def test_a_new_device_refuses_what_needs_a_key() -> None:
    with StubbedBoard() as board:
        table = StubbedDevice(board, 5)
        table.provision()
        with pytest.raises(Refusal):
            table.ask("start_loader")
