"""Faults, power cuts and the heap, the firmware on MicroPython in 256 KB: each run as in one process."""

from collections.abc import Callable
from random import Random

import pytest
from tests.machine.both_kinds import HEAP_BYTES, on_both, run_of
from tests.sweeps import Amount

from sabot_firmware import shoe
from sabot_protocol.errors import Refusal
from sabot_simulators import chips, soak
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import SteppedDevice, WaitTimeout
from sabot_simulators.mechanism.faults import KINDS, PlannedFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_device import HEAP, FirmwareCrashed, MicroPythonDevice
from sabot_simulators.micropython_side import piped_board as board
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

pytestmark = [pytest.mark.usefixtures("micropython"), pytest.mark.slow]


# -- faults and power ---------------------------------------------------------------------------------

SEED = 5
ATTEMPTS = 8
NOT_MECHANICAL = ("torn_record", "corrupted_record", "wrong_clock", "unknown_clock", "power_cut")
FAULTS = sorted(f"{kind}@{place}" for kind in set(KINDS) - set(NOT_MECHANICAL) for place in KINDS[kind][1])


def planned(text: str) -> PlannedFault:
    """A fault in the second deck's first shuffle or the first round, whichever its place belongs to."""
    kind, _, place = text.partition("@")
    if place == "controller" or kind == "door_opened":
        return PlannedFault.parse(f"{text}+20")
    return PlannedFault.parse(
        f"{text}:{9 if place in ('shoe', 'deal', 'exit', 'exit_tray', 'pusher') else 70}"
    )


def play(device: SteppedDevice) -> None:
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
        except PowerCut:
            device.reboot()
            going_on = False
        except Refusal:
            going_on = False
        except (RecoveryFailed, WaitTimeout):
            break


def compare(*faults: PlannedFault, cut_after: int | None = None) -> MicroPythonDevice:
    """The same table here and on MicroPython, watched; the one on MicroPython, switched off."""
    runs = []
    for joined in (False, True):
        random, chip = Random(SEED), chips.SimFram()
        machine = SimulatedMachine(random, faults)
        device: SteppedDevice
        if joined:
            device = MicroPythonDevice(machine, random.randrange, chip)
        else:
            device = PythonDevice(machine, random.randrange, chip=chip)
        oracle = Oracle(device)
        try:
            cut_short(device, chip, cut_after)
            play(device)
            wrong = [(each.what, each.at_us, each.unseen) for each in oracle.wrong]
            runs.append((run_of(device, chip), oracle.claims, wrong, device.view()))
        finally:
            if isinstance(device, MicroPythonDevice):
                most = device.heap()[1] if device.board is not None else 0
                device.close()
    assert runs[1] == runs[0]
    assert 0 < most <= HEAP_BYTES
    assert isinstance(device, MicroPythonDevice)
    return device


def cut_short(device: SteppedDevice, chip: chips.SimFram, cut_after: int | None) -> None:
    """The chip's power will be cut after so many bytes, and come back with the next boot."""
    restore = device.reboot

    def reboot(now_ms: int | None = None) -> None:
        chip.power.restore()
        restore(now_ms)

    device.reboot = reboot  # type: ignore[method-assign]
    chip.power.cut_after(cut_after)


@pytest.mark.sweep(every=61, full=3)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_met_the_same_way(fault: str) -> None:
    compare(planned(fault))


@pytest.mark.parametrize("fault", ["stuck@exit", pytest.param("stuck@insertion", marks=pytest.mark.full)])
def test_a_jam_is_found_and_cleared_and_play_goes_on(fault: str) -> None:
    device = compare(planned(fault))
    names = [name for name, _ in device.reports]
    assert names.index("fault_raised") < names.index("fault_cleared")
    assert [values[1] for name, values in device.reports if name == "round_ended"]


@pytest.mark.sweep(every=7)
@pytest.mark.parametrize("tenths", range(3, 400, 57))
def test_a_power_cut_kills_the_process_and_the_next_one_boots_over_the_same_chip(tenths: int) -> None:
    device = compare(PlannedFault.parse(f"power_cut+{tenths / 10}"))
    assert [name for name, _ in device.reports].count("self_tested") >= 4


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize("steps", [123, 0, 7, 400, 777, 1100])
def test_a_cut_in_the_midst_of_a_record(steps: int) -> None:
    device = compare(cut_after=steps)
    assert [name for name, _ in device.reports].count("self_tested") >= 4


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("seed", range(3))
def test_random_faults(seed: int) -> None:
    """A little of ``make soak``."""

    def some() -> None:
        found = soak.SoakReport()
        for number in range(2):
            soak.SoakTable(seed * 1_000_003 + number, found).play()
        assert not found.wrong

    on_both(soak, some)


# -- the heap -----------------------------------------------------------------------------------------


def test_the_heap_is_flat_and_its_peak_is_known(
    record_property: Callable[[str, object], None], amount: Amount
) -> None:
    random = Random(SEED)
    with MicroPythonDevice(SimulatedMachine(random), random.randrange) as device:
        dealer = Dealer(device)
        assert dealer.open_table()
        assert dealer.play_round()
        assert dealer.play_round()
        early, _, size = device.heap()
        for _ in range(amount(2, full=4)):
            assert dealer.play_round()
        late, most, _ = device.heap()
        assert late - early < 512
        assert most <= size <= HEAP_BYTES
    text = f"core on MicroPython, heap {HEAP}: {late} bytes in use at last, {most} at most, of {size}"
    record_property("figure", text)


def test_a_heap_that_is_too_small_is_told() -> None:
    random = Random(SEED)
    with pytest.raises(FirmwareCrashed, match="memory allocation failed"):
        MicroPythonDevice(SimulatedMachine(random), random.randrange, heap="64k")


# -- the two pipes ------------------------------------------------------------------------------------


def test_what_a_report_leads_to_is_asked_of_the_firmware_in_its_midst() -> None:
    random = Random(SEED)
    with MicroPythonDevice(SimulatedMachine(random), random.randrange) as device:
        seen: list[tuple[int, int]] = []

        def look(name: str, values: tuple[int | str, ...]) -> None:
            if name == "shoe_changed":
                seen.append((int(values[0]), device.shoe_state))

        device.on_report = look
        assert Dealer(device).open_table()
        assert (shoe.LOADING, shoe.LOADING) in seen
        assert all(said == was for said, was in seen)


def test_a_firmware_that_fails_is_told_with_its_traceback_and_is_off_then() -> None:
    random = Random(SEED)
    with MicroPythonDevice(SimulatedMachine(random), random.randrange) as device:
        with pytest.raises(FirmwareCrashed, match=r"line \d+, in serve"):
            device._do(board.EDGE)  # of which sensor?
        with pytest.raises(FirmwareCrashed, match="off"):
            device.view()
