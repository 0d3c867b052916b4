"""How an emulated device is set up: the query of ``sim://``, the options of ``sabot simulate``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from sabot_driver.serial_numbers import parse_serial
from sabot_simulators.mechanism.faults import BOARD_KINDS, PlannedFault, UnknownFault

UNLIMITED_SPEED = 0.0
FIRMWARE = ("python", "micropython", "rp2040")
"""What the firmware can run on: this Python, a MicroPython of its own, or an emulated Raspberry Pi Pico."""
BOARD = FIRMWARE[2]


class BadSetting(ValueError):
    """A setting that no emulated device has, or a value it cannot take; the text says what there is."""


@dataclass(frozen=True)
class DeviceSettings:
    """What an emulated device is made with."""

    seed: int | None = None
    """Makes a run repeatable, its shuffles included: the device then says that it can be foretold."""
    speed: float = UNLIMITED_SPEED
    """Machine seconds a second; 0 is as fast as the computer can."""
    faults: tuple[PlannedFault, ...] = ()
    """What goes wrong in the mechanism, each once."""
    dealer: bool = True
    """Whether somebody stands there who takes the stacks, feeds the tray and clears jams."""
    dealer_ms: int = 400
    """How long that person takes for each thing, in machine time."""
    capacity: str = "deck"
    """How much its chamber and shoe hold: a ``deck``, or a ``batch`` of up to eight."""
    reader: bool = True
    """Whether it has a card reader at the exit."""
    serial: bytes = b"SIM00001"
    events_kept: int = 64
    """How many events the device keeps."""
    firmware: str = "python"
    """What it runs on: a name of ``FIRMWARE``."""
    drop: float = 0.0
    """Share of the pieces on the cable that are lost."""
    corrupt: float = 0.0
    """Share of the pieces on the cable in which a bit is turned."""

    @classmethod
    def from_url(cls, url: str) -> "tuple[str, DeviceSettings]":
        """The name and the settings in ``sim://NAME?seed=1&speed=max&fault=stuck@exit:30``."""
        parts = urlsplit(url)
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        return parts.netloc, cls.from_query(query)

    @classmethod
    def from_query(cls, query: Mapping[str, Sequence[str]]) -> "DeviceSettings":
        """Settings by name; BadSetting for what there is not."""
        values: dict[str, object] = {}
        for name, given in query.items():
            reader = _READERS.get(name)
            if reader is None:
                raise BadSetting(f"an emulated device has no setting '{name}'; it has {', '.join(_READERS)}")
            try:
                field, value = reader(given)
            except UnknownFault as error:
                raise BadSetting(str(error)) from None
            except ValueError:
                raise BadSetting(f"'{given[-1]}' is no value for '{name}'") from None
            values[field] = value
        settings = cls(**values)  # type: ignore[arg-type]
        if settings.firmware == BOARD and settings.speed > 1:
            raise BadSetting(
                "a board has one clock for machine and wire, and a host would be too slow for it: "
                "its speed is 1 at most, or 'max', which waits for the host"
            )
        for fault in settings.faults:
            if settings.firmware != FIRMWARE[0] and fault.kind in BOARD_KINDS:
                raise BadSetting(
                    f"'{fault.kind}' is a fault of the board's chip or clock; "
                    f"those are within reach with firmware={FIRMWARE[0]} only"
                )
        return settings


def _speed(given: Sequence[str]) -> tuple[str, object]:
    speed = UNLIMITED_SPEED if given[-1] == "max" else float(given[-1])
    if given[-1] != "max" and not 0 < speed < 1e9:
        raise ValueError
    return "speed", speed


def _dealer(given: Sequence[str]) -> tuple[str, object]:
    if given[-1] not in ("auto", "none"):
        raise ValueError
    return "dealer", given[-1] == "auto"


def _capacity(given: Sequence[str]) -> tuple[str, object]:
    if given[-1] not in ("deck", "batch"):
        raise ValueError
    return "capacity", given[-1]


def _reader(given: Sequence[str]) -> tuple[str, object]:
    if given[-1] not in ("exit", "none"):
        raise ValueError
    return "reader", given[-1] == "exit"


def _serial(given: Sequence[str]) -> tuple[str, object]:
    return "serial", parse_serial(given[-1])


def _firmware(given: Sequence[str]) -> tuple[str, object]:
    if given[-1] not in FIRMWARE:
        raise ValueError
    return "firmware", given[-1]


def _share(name: str, given: Sequence[str]) -> tuple[str, object]:
    share = float(given[-1])
    if not 0 <= share <= 1:
        raise ValueError
    return name, share


_READERS: "dict[str, Callable[[Sequence[str]], tuple[str, object]]]" = {
    "seed": lambda given: ("seed", int(given[-1])),
    "speed": _speed,
    "fault": lambda given: ("faults", tuple(PlannedFault.parse(each) for each in given)),
    "dealer": _dealer,
    "dealer_ms": lambda given: ("dealer_ms", int(given[-1])),
    "capacity": _capacity,
    "reader": _reader,
    "serial": _serial,
    "events": lambda given: ("events_kept", int(given[-1])),
    "firmware": _firmware,
    "drop": lambda given: _share("drop", given),
    "corrupt": lambda given: _share("corrupt", given),
}
