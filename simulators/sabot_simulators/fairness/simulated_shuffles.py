"""Shuffles by the real firmware on the simulated mechanism, in one process for each processor."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabot_firmware import hardware, machine_constants, shuffler
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_protocol.codec import enum_number
from sabot_simulators.emulated_device import OPENING_UTC_S
from sabot_simulators.fairness.seeded_biases import CALIBRATIONS, GENERATORS, BiasedRng
from sabot_simulators.mechanism.physical_cards import PhysicalCard, new_deck
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

Orders = NDArray[np.int16]
NO_LIMIT = 0xFFFF  # hours of a deck
HAND = enum_number("Method", "hand")
CARD_BY_CARD = enum_number("Method", "card_by_card")
AT_ONCE = {52: 100}  # shuffles that follow each other on one machine; fewer of larger decks
FEW_AT_ONCE = 20
DECK_ID = 1
MOST_STOPS = 3  # in a row; a machine that stops oftener is not fit for evidence


class ShuffleFailed(Exception):
    """The machine stopped three times in a row; the text is the fault."""


class ShuffledBatch(NamedTuple):
    """The result of a batch."""

    orders: Orders
    seconds: float
    """Of the processor."""
    stops: int
    """Shuffles that the machine stopped and that were begun anew with every card."""


@dataclass(frozen=True)
class ShuffleBatch:
    """Shuffles of one deck on one machine, one after the other."""

    seed: int
    cards: int
    shuffles: int
    plant: str | None = None

    def run(self) -> ShuffledBatch:
        """The orders, a row a shuffle: cards by their place in the tray, the top one first."""
        began = time.process_time()
        rig = _Rig(self)
        orders = rig.run()
        return ShuffledBatch(orders, time.process_time() - began, rig.stops)


class _Device(PythonDevice):
    """A device with its own generator, or a planted one."""

    def __init__(self, machine: SimulatedMachine, rng: DeviceRng) -> None:
        self._planted = rng
        super().__init__(machine, None)

    def _make_rng(self) -> DeviceRng:
        return self._planted


class _Rig:
    """A machine whose deck is taken from the shelf after each shuffle and fed again in its order."""

    def __init__(self, stretch: ShuffleBatch) -> None:
        random = Random(stretch.seed)
        batch = stretch.cards > machine_constants.DECK_CARDS
        self._stretch = stretch
        self.stops = 0
        self._machine = SimulatedMachine(random, capacity="batch" if batch else "deck")
        make = GENERATORS.get(stretch.plant or "")
        rng = DeviceRng(self._machine.noise) if make is None else BiasedRng(make(Random(random.random())))
        self._device = device = _Device(self._machine, rng)
        device.run_until_idle()
        method, decks = CARD_BY_CARD if batch else HAND, stretch.cards // machine_constants.DECK_CARDS
        device.command("set_game", "fairness", method, decks, 1, NO_LIMIT, role="floor")
        device.command("register_deck", DECK_ID, hardware.RED, OPENING_UTC_S, role="floor")
        if stretch.plant in CALIBRATIONS:
            CALIBRATIONS[stretch.plant](device)

    def run(self) -> Orders:
        stretch = self._stretch
        orders = np.empty((stretch.shuffles, stretch.cards), np.int16)
        deck = new_deck(hardware.RED, self._machine.random, stretch.cards)
        for row in range(stretch.shuffles):
            shuffled = self._shuffle(deck)
            place = {id(card): at for at, card in enumerate(deck)}
            orders[row] = [place[id(card)] for card in shuffled]
            deck = shuffled
        return orders

    def _shuffle(self, deck: list[PhysicalCard]) -> list[PhysicalCard]:
        why = ""
        for _ in range(MOST_STOPS):
            self._feed(deck)
            jam = self._device.controller.shuffler.jam
            if jam is None:
                return self._lift_off()
            self.stops += 1
            why = f"{jam.cause} at {jam.place}"
            self._clear(jam.cause)
        raise ShuffleFailed(why)

    def _feed(self, deck: list[PhysicalCard]) -> None:
        device, machine = self._device, self._machine
        machine.load(list(deck))
        device.run_until(lambda: True)
        device.clock_wrong_by_s = -machine.agenda.now_us // 1_000_000  # the deck's hours stand still
        device.command("shuffle", DECK_ID)
        device.run_until(lambda: device.shuffler_state in (shuffler.STORED, shuffler.JAMMED))

    def _clear(self, cause: str) -> None:
        """Take every card out through the door, as a dealer would."""
        device, machine = self._device, self._machine
        machine.open_door(hardware.SHUFFLER_DOOR)
        device.run_until(lambda: True)
        machine.empty_by_hand(hardware.SHUFFLER_DOOR)
        machine.take_tray()
        machine.close_door(hardware.SHUFFLER_DOOR)
        device.run_until(lambda: True)
        device.command("clear_fault", enum_number("Fault", cause), role="service")
        device.run_until_idle()

    def _lift_off(self) -> list[PhysicalCard]:
        device, machine = self._device, self._machine
        device.controller.shuffler.take_from_shelf()
        shuffled, machine.store = machine.store, []
        machine.presence()
        device.reports.clear()
        return shuffled


def shuffle_batches(shuffles: int, cards: int, seed: int, plant: str | None) -> list[ShuffleBatch]:
    """Batches of ``shuffles`` shuffles in all, for several processes."""
    most = AT_ONCE.get(cards, FEW_AT_ONCE)
    sizes = [most] * (shuffles // most) + ([shuffles % most] if shuffles % most else [])
    return [ShuffleBatch(seed * 1_000_003 + at, cards, size, plant) for at, size in enumerate(sizes)]


def run_all(work: list[ShuffleBatch], processes: int | None = None) -> Iterator[ShuffledBatch]:
    """The result of each batch, in order, computed in several processes."""
    count = min(processes or os.cpu_count() or 1, len(work))
    if count <= 1:
        yield from map(ShuffleBatch.run, work)
        return
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(ShuffleBatch.run, work)
