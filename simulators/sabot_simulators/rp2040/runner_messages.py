"""What is said between Python and the emulated Pico: a line of JSON each way, every one typed here.

Python asks, the Pico answers; it moves only within ``run``. Times are microseconds of world time, which goes
on through resets and power cuts. A run ends at its time, or earlier, as soon as the firmware has done
something that the world must know of: ``Ran.why`` says which.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

# -- changes: what the world does to the board at the moment a run begins ------------------------------

Change = tuple[str | int | float | bool, ...]


def pin(number: int, level: int) -> Change:
    """A pin is driven to a level."""
    return ("pin", number, level)


def inputs(chip: int, word: int) -> Change:
    """The inputs of an expander, bit by bit as its pins see them."""
    return ("inputs", chip, word)


def sample(value: int) -> Change:
    """The answer to an analogue sample that was asked for: 0 to 4095."""
    return ("sample", value)


def noise(data: bytes) -> Change:
    """More bits of the ring oscillator, the first in the highest bit."""
    return ("noise", data.decode("latin-1"))


def noise_stuck(bit: int | None) -> Change:
    """The ring oscillator gives one bit for ever, or is well again."""
    return ("noise_stuck", -1 if bit is None else bit)


def encoder(number: int, at_us: float, count: float, per_us: float) -> Change:
    """From a time on an encoder gives so many pulses a microsecond, beginning with a count."""
    return ("encoder", number, at_us, count, per_us)


def face(card: int) -> Change:
    """What the card reader sees."""
    return ("face", card)


def stop_at(axis: int, *positions: int) -> Change:
    """A run shall stop when an axis has come to one of these positions."""
    return ("stop_at", axis, *positions)


def usb(data: bytes) -> Change:
    """Bytes of the USB host; they are lost without a cable."""
    return ("usb", data.decode("latin-1"))


def uart(data: bytes) -> Change:
    """Bytes of the host at the second cable; each arrives when its time has come."""
    return ("uart", data.decode("latin-1"))


def deaf(on: bool) -> Change:
    """The USB host stops reading, or reads again."""
    return ("deaf", on)


def cable(there: bool) -> Change:
    """The USB cable is put in or pulled out; what is on its way is lost."""
    return ("cable", there)


# -- what the firmware did -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PinSet:
    """An output has another level."""

    at_us: float
    pin: int
    level: int


@dataclass(frozen=True)
class OutputsSet:
    """An expander's outputs have changed."""

    at_us: float
    chip: int
    word: int


@dataclass(frozen=True)
class AxisMoves:
    """An axis begins to move, or turns round: the first step is done."""

    at_us: float
    axis: int
    direction: int


@dataclass(frozen=True)
class AxisReached:
    """An axis has come to the position it was to stop at."""

    at_us: float
    axis: int
    position: int


@dataclass(frozen=True)
class SampleWanted:
    """An analogue input is being read: the next run must bring its ``sample``."""

    at_us: float
    channel: int


@dataclass(frozen=True)
class NoiseWanted:
    """The ring oscillator's bits come to an end: one of the next runs must bring more ``noise``."""

    at_us: float


@dataclass(frozen=True)
class Shown:
    """The display shows something else."""

    at_us: float
    first: str
    second: str


@dataclass(frozen=True)
class Called:
    """A watched function begins."""

    at_us: float
    function: int
    first: int
    """Its first argument, as a word."""


@dataclass(frozen=True)
class Returned:
    """A watched function has ended."""

    at_us: float
    function: int


BoardReport = (
    PinSet | OutputsSet | AxisMoves | AxisReached | SampleWanted | NoiseWanted | Shown | Called | Returned
)
_KINDS: dict[str, type[BoardReport]] = {
    "pin": PinSet,
    "outputs": OutputsSet,
    "axis": AxisMoves,
    "reached": AxisReached,
    "sample": SampleWanted,
    "noise": NoiseWanted,
    "display": Shown,
    "called": Called,
    "returned": Returned,
}

UNTIL = "until"  # the time has come
TOLD = "told"  # ``told`` is not empty
SAID = "said"  # ``usb`` or ``uart`` is not empty
RESET = "reset"  # the watchdog, or the firmware itself; it has booted again
LOADER = "loader"  # the firmware has started the boot loader: the board is a drive now
WHYS = (UNTIL, TOLD, SAID, RESET, LOADER, "booted", "off", "restored")


@dataclass(frozen=True)
class RunResult:
    """How things are after a run."""

    now_us: float
    why: str
    told: tuple[BoardReport, ...]
    usb: bytes
    uart: bytes
    axes: tuple[int, ...]
    """The position of each axis, in steps since the beginning."""
    accepted: tuple[float, ...] = ()
    """When the board took packets of its USB host."""
    uart_at_us: float = 0.0
    """When the first of the bytes in ``uart`` came."""
    untaken: tuple[int, ...] = (0, 0)
    """Bytes of the hosts at USB and UART that still wait for the board."""


@dataclass(frozen=True)
class EmulatorCounters:
    """What has been counted since the beginning."""

    cycles: int
    boots: int
    flash_operations: int
    fram_writes: int


# -- the board's wiring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AxisPins:
    """A stepped axis: its step pin, and a pin or an expander's output for its direction."""

    step_pin: int
    direction_pin: int | None
    direction_chip: int = 0
    direction_bit: int = 0


@dataclass(frozen=True)
class EncoderPins:
    """An encoder: the PWM slice that counts it."""

    slice: int


@dataclass(frozen=True)
class BoardWiring:
    """What is on which pin, as far as the emulator must know."""

    outputs: tuple[int, ...]
    axes: tuple[AxisPins, ...]
    encoders: tuple[EncoderPins, ...]
    i2c: int
    expanders: tuple[int, ...]
    expander_interrupt: int
    display: int
    card_reader: int
    fram_spi: int
    fram_select: int
    uart: int


# -- lines -----------------------------------------------------------------------------------------------


class RunnerFailed(Exception):
    """The emulator has failed, or said what it never should; says what."""


def request(what: str, **values: Any) -> bytes:
    """One request as a line."""
    return json.dumps({"request": what, **values}, separators=(",", ":")).encode() + b"\n"


def wiring_values(wiring: BoardWiring) -> dict[str, Any]:
    """The wiring as a request carries it."""
    return asdict(wiring)


def answer(line: bytes) -> dict[str, Any]:
    """One answer; RunnerFailed if it says so or is none."""
    if not line:
        raise RunnerFailed("the emulator is gone")
    try:
        said = json.loads(line)
    except ValueError:
        raise RunnerFailed(f"not an answer: {line[:200]!r}") from None
    if not isinstance(said, dict):
        raise RunnerFailed(f"not an answer: {line[:200]!r}")
    if "failed" in said:
        raise RunnerFailed(said["failed"])
    return said


def ran(said: dict[str, Any]) -> RunResult:
    """The answer to a run; RunnerFailed if it is none."""
    try:
        if said["why"] not in WHYS:
            raise RunnerFailed(f"no reason to stop: {said['why']}")
        told = tuple(_told(each) for each in said["told"])
        return RunResult(
            float(said["now_us"]),
            said["why"],
            told,
            said["usb"].encode("latin-1"),
            said["uart"].encode("latin-1"),
            tuple(said["axes"]),
            tuple(said["accepted"]),
            float(said["uart_at_us"]),
            tuple(said["untaken"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise RunnerFailed(f"not the answer to a run: {said!r:.200}") from error


def _told(values: Sequence[Any]) -> BoardReport:
    kind = _KINDS.get(values[0])
    if kind is None:
        raise RunnerFailed(f"nothing of this kind is ever told: {values[0]}")
    return kind(*values[1:])
