"""Planted biases by name. The tests must find each one; otherwise a run without findings proves nothing.

Most are wrong generators: their slots go through the real firmware and mechanism. One is a wrong calibration
with the checks switched off that would have found it.
"""

from collections.abc import Callable
from random import Random

from sabot_firmware import machine_constants
from sabot_firmware.height_model import HeightModel
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_firmware.rng.draws import Slots
from sabot_simulators.python_device import PythonDevice

SHELVES = 10
STUCK_SLOT = 20
SHUFFLES_A_SEED = 16  # of a machine that forgets to reseed
JAMS = 0.5  # how often a card jams in the lower quarter of the stack, where retries redraw


class BlindStack(HeightModel):
    """A height model that accepts every height and learns nothing."""

    def fits(self, below: int, height_um: int) -> bool:
        """Accept every height."""
        return True

    def grows(self, height_um: int) -> bool:
        """Accept every height."""
        return True

    def learn(self, below: int, gap_um: int, height_um: int) -> None:
        """Ignore the height."""


class BiasedSlots(Slots):
    """Given slots, one for each card."""

    def __init__(self, slots: list[int]) -> None:
        super().__init__(0)
        self._planted = slots

    def draw(self, bound: int) -> int:
        """The slot of the card that makes the stack so high."""
        return self._planted[bound - 1]


class BiasedRng(DeviceRng):
    """A generator with a bias: ``make`` gives the slots of one shuffle of so many cards."""

    test = True

    def __init__(self, make: Callable[[int], list[int]]) -> None:
        super().__init__(bytes)
        self._make = make

    def start(self) -> None:
        """Run no tests."""

    def fresh_seed(self) -> bytearray:
        """A seed of zeros: it is not used."""
        return bytearray(32)

    def slots(self, cards: int, seed: bytes | bytearray, nonce: bytes, about: bytes) -> Slots:
        """The biased slots."""
        return BiasedSlots(self._make(cards))


def slots_of(order: list[int]) -> list[int]:
    """The slots that bring cards 0, 1, 2, ... into an order, given from the top."""
    place = {card: at for at, card in enumerate(order)}
    return [sum(place[above] < place[card] for above in range(card)) for card in range(len(order))]


def ten_shelves(random: Random) -> Callable[[int], list[int]]:
    """A shelf shuffler: each card goes onto or under one of ten stacks (Diaconis, Fulman, Holmes 2013)."""

    def make(cards: int) -> list[int]:
        cards -= 2  # the room for cards that should not be there
        shelves: list[list[int]] = [[] for _ in range(SHELVES)]
        for card in range(cards):
            shelf = random.choice(shelves)
            shelf.insert(0 if random.random() < 0.5 else len(shelf), card)
        random.shuffle(shelves)
        return [*slots_of([card for shelf in shelves for card in shelf]), 0, 0]

    return make


def modulo_bias(random: Random) -> Callable[[int], list[int]]:
    """One byte modulo the number of slots (two for more than 256): the low slots come oftener."""

    def make(cards: int) -> list[int]:
        size = 8 if cards <= 256 else 10
        return [random.getrandbits(size) % (card + 1) for card in range(cards)]

    return make


def retry_redraws(random: Random) -> Callable[[int], list[int]]:
    """Cards jam more in the lower quarter of the stack, and a retry draws another slot."""

    def slot(bound: int) -> int:
        drawn = random.randrange(bound)
        while 4 * drawn >= 3 * bound and random.random() < JAMS:
            drawn = random.randrange(bound)
        return drawn

    return lambda cards: [slot(card + 1) for card in range(cards)]


def lcg32(random: Random) -> Callable[[int], list[int]]:
    """A linear congruential generator of 32 bits, its state modulo the number of slots."""
    state = random.getrandbits(32)

    def make(cards: int) -> list[int]:
        nonlocal state
        slots = []
        for card in range(cards):
            state = (1664525 * state + 1013904223) & 0xFFFFFFFF
            slots.append(state % (card + 1))
        return slots

    return make


def stuck_slot(random: Random) -> Callable[[int], list[int]]:
    """One slot that the elevator does not find: cards meant for it go into the next."""

    def slot(bound: int) -> int:
        drawn = random.randrange(bound)
        return drawn + 1 if drawn == STUCK_SLOT and drawn + 1 < bound else drawn

    return lambda cards: [slot(card + 1) for card in range(cards)]


def no_reseed(random: Random) -> Callable[[int], list[int]]:
    """A generator that starts from the same state every sixteen shuffles."""
    state, made = random.getstate(), 0

    def make(cards: int) -> list[int]:
        nonlocal made
        if made % SHUFFLES_A_SEED == 0:
            random.setstate(state)
        made += 1
        return [random.randrange(card + 1) for card in range(cards)]

    return make


def grip_off_by_one(device: PythonDevice) -> None:
    """The blades are one card too low, and no height is checked."""
    half = device.controller.shuffler
    half._stack = BlindStack()
    batch = device.machine.capacity > machine_constants.DECK_CAPACITY
    travel_um = (
        machine_constants.ELEVATOR_TRAVEL_BATCH_UM if batch else machine_constants.ELEVATOR_TRAVEL_DECK_UM
    )
    half.configure(half.blade_um - machine_constants.CARD_THICKNESS_UM, half.card_um, travel_um)


GENERATORS: dict[str, Callable[[Random], Callable[[int], list[int]]]] = {
    "ten-shelves": ten_shelves,
    "modulo-bias": modulo_bias,
    "retry-redraws": retry_redraws,
    "lcg32": lcg32,
    "stuck-slot": stuck_slot,
    "no-reseed": no_reseed,
}
CALIBRATIONS: dict[str, Callable[[PythonDevice], None]] = {"grip-off-by-one": grip_off_by_one}
PLANTS = (*GENERATORS, *CALIBRATIONS)
