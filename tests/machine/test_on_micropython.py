"""The machine's tests again, the firmware on MicroPython in 256 KB: each run is the same as in one process.

A run is everything that was reported, the place and order of every card, the bytes in critical memory, the
display, and the time it took the machine.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import ModuleType
from typing import Any

import pytest
from tests.machine import (
    tables,
    test_deal,
    test_delivery,
    test_recovery,
    test_service,
    test_shuffle,
    test_two_decks,
)

from sabot_firmware import shoe
from sabot_firmware.boards import joined as board
from sabot_protocol.errors import Refusal
from sabot_simulators import chips, soak
from sabot_simulators.dealer import CannotGoOn, Dealer
from sabot_simulators.in_process import InProcess, LockStep, Stuck
from sabot_simulators.joined import HEAP, FirmwareCrashed, Joined
from sabot_simulators.mechanism.faults import KINDS, Fault
from sabot_simulators.mechanism.machine import Machine, PowerCut
from sabot_simulators.watch import Watch

pytestmark = pytest.mark.usefixtures("micropython")

HEAP_BYTES = 256 * 1024
WITH_GENERATOR = "576k"  # the generator is compiled from its source too
MODULES = (test_deal, test_delivery, test_recovery, test_service, test_shuffle, test_two_decks)
INSIDE = {  # these look at the core's own objects, or need no machine
    "test_what_a_rounds_count_says",
    "test_a_round_that_the_deck_has_not_cards_for_is_refused",
    "test_calibrations_are_kept_with_their_date",
    "test_a_clock_set_back_makes_no_deck_younger_and_another_method_applies_at_once",
    "test_every_event_is_in_the_log_after_a_reboot_and_is_read_over_the_wire",
}

Make = Callable[..., LockStep]


def run_of(device: LockStep, chip: chips.SimFram) -> dict[str, Any]:
    """What can be compared when a test is over."""
    machine = device.machine
    return {
        "reports": device.reports,
        "cards": {zone: [card.name for card in cards] for zone, cards in machine.truth().items()},
        "memory": bytes(chip.cells),
        "display": (machine.display, machine.lamp),
        "took_us": machine.agenda.now_us,
    }


class Runs:
    """Devices of one kind that a test makes, and what became of each."""

    def __init__(self, joined: bool) -> None:
        self._joined = joined
        self._made: list[tuple[LockStep, chips.SimFram]] = []
        self.most = 0  # bytes of the heap in use, the most there were

    def make(
        self,
        machine: Machine,
        draw: Callable[[int], int] | None,
        memory: None = None,
        chip: chips.SimFram | None = None,
    ) -> LockStep:
        """A device like ``InProcess``."""
        chip = chip or chips.SimFram()
        device: LockStep
        if self._joined:
            device = Joined(machine, draw, chip, HEAP if draw is not None else WITH_GENERATOR)
        else:
            device = InProcess(machine, draw, chip=chip)
        self._made.append((device, chip))
        return device

    def end(self) -> list[dict[str, Any]]:
        """Every run; the processes are ended."""
        runs = []
        for device, chip in self._made:
            runs.append(run_of(device, chip))
            if isinstance(device, Joined):
                if device.board is not None:
                    self.most = max(self.most, device.heap()[1])
                device.close()
        return runs


@contextmanager
def each_target() -> Iterator[tuple[Runs, Runs]]:
    """The runs in this process and those on MicroPython, which must be the same when this is left."""
    here, there = Runs(False), Runs(True)
    try:
        yield here, there
        expected = here.end()
        assert len(expected) > 0
        assert there.end() == expected
    finally:
        there.end()


def on_both(module: ModuleType, play: Callable[[], object]) -> int:
    """Play something twice, its devices once here and once on MicroPython; the most heap it used."""
    with each_target() as both:
        for runs in both:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "InProcess", runs.make)
                play()
    return both[1].most


# -- the machine's tests again ------------------------------------------------------------------------


def again(test: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        assert 0 < on_both(tables, lambda: test(*args, **kwargs)) <= HEAP_BYTES

    return run


for _module in MODULES:
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and callable(_test) and _name not in INSIDE:
            assert _name not in globals()
            globals()[_name] = again(_test)


# -- faults and power ---------------------------------------------------------------------------------

SEED = 5
ATTEMPTS = 8
NOT_MECHANICAL = ("torn_record", "corrupted_record", "wrong_clock", "unknown_clock", "power_cut")
FAULTS = sorted(f"{kind}@{place}" for kind in set(KINDS) - set(NOT_MECHANICAL) for place in KINDS[kind][1])


def planned(text: str) -> Fault:
    """A fault in the second deck's first shuffle or the first round, whichever its place belongs to."""
    kind, _, place = text.partition("@")
    if place == "controller" or kind == "door_opened":
        return Fault.parse(f"{text}+20")
    return Fault.parse(f"{text}:{9 if place in ('shoe', 'deal', 'exit', 'exit_tray', 'pusher') else 70}")


def play(device: LockStep) -> None:
    """Until a round was played well; what stops the machine is cleared, and a power cut is one more boot."""
    dealer = Dealer(device, hands=2)
    going_on: bool | None = None
    for _ in range(ATTEMPTS):
        try:
            if going_on is None:
                going_on = dealer.open_table()
            elif not going_on:
                dealer.recover()
                going_on = True
            elif dealer.play_round():
                break
            else:
                going_on = False
        except (PowerCut, chips.PowerCut):
            device.reboot()
            going_on = False
        except Refusal:
            going_on = False
        except (CannotGoOn, Stuck):
            break


def compare(*faults: Fault, cut_after: int | None = None) -> Joined:
    """The same table here and on MicroPython, watched; the one on MicroPython, switched off."""
    runs = []
    for joined in (False, True):
        random, chip = Random(SEED), chips.SimFram()
        machine = Machine(random, faults)
        device: LockStep
        if joined:
            device = Joined(machine, random.randrange, chip)
        else:
            device = InProcess(machine, random.randrange, chip=chip)
        watch = Watch(device)
        try:
            cut_short(device, chip, cut_after)
            play(device)
            runs.append((run_of(device, chip), watch.claims, watch.wrong, device.view()))
        finally:
            if isinstance(device, Joined):
                most = device.heap()[1] if device.board is not None else 0
                device.close()
    assert runs[1] == runs[0]
    assert 0 < most <= HEAP_BYTES
    assert isinstance(device, Joined)
    return device


def cut_short(device: LockStep, chip: chips.SimFram, cut_after: int | None) -> None:
    """The chip's power will be cut after so many bytes, and come back with the next boot."""
    restore = device.reboot

    def reboot() -> None:
        chip.power.restore()
        restore()

    device.reboot = reboot  # type: ignore[method-assign]
    chip.power.cut_after(cut_after)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_met_the_same_way(fault: str) -> None:
    compare(planned(fault))


@pytest.mark.parametrize("fault", ["stuck@exit", "stuck@insertion"])
def test_a_jam_is_found_and_cleared_and_play_goes_on(fault: str) -> None:
    device = compare(planned(fault))
    names = [name for name, _ in device.reports]
    assert names.index("fault_raised") < names.index("fault_cleared")
    assert [values[1] for name, values in device.reports if name == "round_ended"]


@pytest.mark.parametrize("tenths", range(1, 400, 57))
def test_a_power_cut_kills_the_process_and_the_next_one_boots_over_the_same_chip(tenths: int) -> None:
    device = compare(Fault.parse(f"power_cut+{tenths / 10}"))
    assert [name for name, _ in device.reports].count("self_tested") >= 4


@pytest.mark.parametrize("steps", [0, 7, 123, 400, 777, 1100])
def test_a_cut_in_the_midst_of_a_record(steps: int) -> None:
    device = compare(cut_after=steps)
    assert [name for name, _ in device.reports].count("self_tested") >= 4


@pytest.mark.parametrize("seed", range(3))
def test_random_faults(seed: int) -> None:
    """A little of ``make soak``."""

    def some() -> None:
        found = soak.Findings()
        for number in range(2):
            soak.SoakTable(seed * 1_000_003 + number, found).play()
        assert not found.wrong

    on_both(soak, some)


# -- the heap -----------------------------------------------------------------------------------------


def test_the_heap_is_flat_and_its_peak_is_known(record_property: Callable[[str, object], None]) -> None:
    random = Random(SEED)
    with Joined(Machine(random), random.randrange) as device:
        dealer = Dealer(device)
        assert dealer.open_table()
        assert dealer.play_round()
        assert dealer.play_round()
        early, _, size = device.heap()
        for _ in range(4):
            assert dealer.play_round()
        late, most, _ = device.heap()
        assert late - early < 512
        assert most <= size <= HEAP_BYTES
    text = f"core on MicroPython, heap {HEAP}: {late} bytes in use after 6 rounds, {most} at most, of {size}"
    record_property("figure", text)


def test_a_heap_that_is_too_small_is_told() -> None:
    random = Random(SEED)
    with pytest.raises(FirmwareCrashed, match="memory allocation failed"):
        Joined(Machine(random), random.randrange, heap="64k")


# -- the two pipes ------------------------------------------------------------------------------------


def test_what_a_report_leads_to_is_asked_of_the_firmware_in_its_midst() -> None:
    random = Random(SEED)
    with Joined(Machine(random), random.randrange) as device:
        seen: list[tuple[int, int]] = []

        def look(name: str, values: tuple[int | str, ...]) -> None:
            if name == "shoe_changed":
                seen.append((int(values[0]), device.shoe_state))

        device.each_report = look
        assert Dealer(device).open_table()
        assert (shoe.LOADING, shoe.LOADING) in seen
        assert all(said == was for said, was in seen)


def test_a_firmware_that_fails_is_told_with_its_traceback_and_is_off_then() -> None:
    random = Random(SEED)
    with Joined(Machine(random), random.randrange) as device:
        with pytest.raises(FirmwareCrashed, match=r"line \d+, in serve"):
            device._do(board.EDGE)  # of which sensor?
        with pytest.raises(FirmwareCrashed, match="off"):
            device.view()
