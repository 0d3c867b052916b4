"""The same play on the firmware in this process and on MicroPython: both runs must be the same.

A run is everything that was reported, the place and order of every card, the bytes in critical memory, the
display, and the time it took the machine.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from sabot_simulators import chips
from sabot_simulators.emulated_device import SteppedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_device import HEAP, MicroPythonDevice
from sabot_simulators.python_device import PythonDevice

HEAP_BYTES = 384 * 1024
WITH_GENERATOR = "576k"  # the generator is compiled from its source too


def run_of(device: SteppedDevice, chip: chips.SimFram) -> dict[str, Any]:
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
        self._made: list[tuple[SteppedDevice, chips.SimFram]] = []
        self.most = 0  # bytes of the heap in use, the most there were

    def make(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        memory: None = None,
        chip: chips.SimFram | None = None,
    ) -> SteppedDevice:
        """A device like ``PythonDevice``."""
        chip = chip or chips.SimFram()
        device: SteppedDevice
        if self._joined:
            device = MicroPythonDevice(machine, draw, chip, HEAP if draw is not None else WITH_GENERATOR)
        else:
            device = PythonDevice(machine, draw, chip=chip)
        self._made.append((device, chip))
        return device

    def end(self) -> list[dict[str, Any]]:
        """Every run; the processes are ended."""
        runs = []
        for device, chip in self._made:
            runs.append(run_of(device, chip))
            if isinstance(device, MicroPythonDevice):
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
                patch.setattr(module, "PythonDevice", runs.make)
                play()
    return both[1].most
