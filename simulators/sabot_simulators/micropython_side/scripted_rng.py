"""A generator for tests: slots come from a function that anybody can call. Not for play.

It belongs to emulated boards. The image of a real board has no ``boards`` but its own, so it cannot be
switched to this one; a device that uses it says so in its identity.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.rng.device_rng import DeviceRng
    from sabot_firmware.rng.draws import Slots
else:
    DeviceRng = Slots = object  # in their place; the generator itself is not even loaded


class ScriptedSlots(Slots):
    """Slots that are drawn when they are asked for."""

    def __init__(self, draw: "Callable[[int], int]") -> None:
        self._draw_now = draw

    def draw(self, bound: int) -> int:
        """Whatever the test says."""
        return self._draw_now(bound)

    def wipe(self) -> None:
        """There is nothing to wipe."""


class ScriptedRng(DeviceRng):
    """No noise, no seeds: what the test draws is what happens."""

    test = True

    def __init__(self, draw: "Callable[[int], int]") -> None:
        self._draw = draw

    def start(self) -> None:
        """There is nothing to test."""

    def take(self, entropy: bytes) -> None:
        """There is nothing to mix them into."""

    def fresh_seed(self) -> bytearray:
        """Zeros: a commitment to them hides nothing, and an audit of them fails."""
        return bytearray(32)

    def slots(self, cards: int, seed: bytes | bytearray, nonce: bytes, about: bytes) -> Slots:
        """Slots that the test draws."""
        return ScriptedSlots(self._draw)

    def random(self, count: int) -> bytes:
        """Zeros."""
        return bytes(count)
