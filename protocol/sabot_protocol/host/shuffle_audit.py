"""Audit of a shuffle after its reveal: that it is the one the device was bound to, card by card.

Written from ``docs/shuffling.md`` and ``docs/commit-reveal.md``, not from the firmware, with Python's own
``hmac``: the two must agree.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NO_NONCE = bytes(32)


@dataclass(frozen=True)
class RevealedShuffle:
    """What the host has of one shuffle once it is revealed."""

    device: bytes
    """The serial number of the device, eight bytes, as the host knows it."""
    deck_id: int
    shuffle_id: int
    cards: int
    commitment: bytes
    """As the device gave it before the host's nonce."""
    nonce: bytes
    """What the host gave; zeros if nothing."""
    seed: bytes
    """As the device revealed it."""
    placed: tuple[int, ...]
    """Where each card went, as the device measured it."""
    fed: tuple[int, ...] | None = None
    """The cards as they lay in the tray, top first, where that is known."""
    came_out: tuple[int, ...] | None = None
    """The cards as they came out, top first, where they were seen and not cut; may end early."""


def audit(shuffle: RevealedShuffle) -> list[str]:
    """What does not fit, a sentence each; nothing if all of it does."""
    wrong = []
    if commitment(shuffle) != shuffle.commitment:
        wrong.append("the seed is not the one that device, deck and shuffle were bound to")
    if shuffle.nonce == NO_NONCE:
        wrong.append("the host gave no nonce: the device alone chose the order")
    slots = tuple(slots_of(shuffle))
    if len(shuffle.placed) != shuffle.cards:
        wrong.append(f"{len(shuffle.placed)} of {shuffle.cards} cards were reported")
    for card, (drawn, placed) in enumerate(zip(slots, shuffle.placed, strict=False)):
        if drawn != placed:
            wrong.append(f"card {card} was to go under {drawn} cards and went under {placed}")
            break
    if shuffle.fed is not None and len(shuffle.fed) != shuffle.cards:
        wrong.append(f"{len(shuffle.fed)} cards were fed and {shuffle.cards} shuffled")
    elif shuffle.fed is not None and shuffle.came_out is not None:
        expected = order_of(slots, shuffle.fed)
        for at, (card, seen) in enumerate(zip(expected, shuffle.came_out, strict=False)):
            if card != seen:
                wrong.append(f"card {at} from the top was to be {card} and is {seen}")
                break
    return wrong


def about(shuffle: RevealedShuffle) -> bytes:
    """What the shuffle is, as seed and slots are bound to it."""
    numbers = struct.pack("<IIH", shuffle.deck_id, shuffle.shuffle_id, shuffle.cards)
    return b"sabot shuffle 1" + shuffle.device + numbers


def commitment(shuffle: RevealedShuffle) -> bytes:
    """What the device must have given before the host's nonce, if it had this seed."""
    return hashlib.sha256(about(shuffle) + shuffle.seed).digest()


def slots_of(shuffle: RevealedShuffle) -> Iterator[int]:
    """For each card, in the order fed, how many cards were to lie above it."""
    numbers = _numbers(_Drbg(shuffle.seed + shuffle.nonce + about(shuffle)))
    for card in range(shuffle.cards):
        bound = card + 1
        number = next(numbers)
        while number >= 65536 // bound * bound:
            number = next(numbers)
        yield number % bound


def order_of(slots: Sequence[int], fed: Sequence[int]) -> list[int]:
    """The order, top first, that comes of cards fed in this order."""
    order: list[int] = []
    for card, slot in zip(fed, slots, strict=True):
        order.insert(slot, card)
    return order


class _Drbg:
    """HMAC-DRBG with SHA-256, as far as it is needed here: instantiate, and generate without more input."""

    def __init__(self, seed: bytes) -> None:
        self._key, self._value = bytes(32), b"\x01" * 32
        self._update(seed)

    def _hmac(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")

    def _update(self, data: bytes) -> None:
        self._key = self._hmac(self._value + b"\x00" + data)
        self._value = self._hmac(self._value)
        if data:
            self._key = self._hmac(self._value + b"\x01" + data)
            self._value = self._hmac(self._value)

    def generate(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            self._value = self._hmac(self._value)
            out += self._value
        self._update(b"")
        return out[:count]


def _numbers(drbg: _Drbg) -> Iterator[int]:
    """Numbers of two bytes, from 64 bytes of the generator at a time."""
    while True:
        yield from (number for (number,) in struct.iter_unpack(">H", drbg.generate(64)))
