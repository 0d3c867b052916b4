"""Settings of an emulated device: the query of ``sim://``, the options of ``sabot simulate``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from sabot_simulators.mechanism.faults import BOARD_KINDS, PlannedFault, UnknownFault

UNLIMITED_SPEED = 0.0
FIRMWARE = ("python", "micropython", "rp2040")
"""What the firmware can run on: this Python, a MicroPython of its own, or an emulated Raspberry Pi Pico."""
BOARD = FIRMWARE[2]


class BadSetting(ValueError):
    """There is no such setting, or it cannot have this value; the text says what is possible."""


@dataclass(frozen=True)
class DeviceSettings:
    """Settings of one emulated device."""

    seed: int | None = None
    """Makes a run repeatable, its shuffles included; the identity then has the flag ``test_rng``."""
    speed: float = UNLIMITED_SPEED
    """Machine seconds per second; 0 is as fast as the computer can."""
    faults: tuple[PlannedFault, ...] = ()
    """The faults that will happen in the machine, each once."""
    dealer: bool = True
    """Whether simulated people take the stacks, feed the tray and clear jams."""
    dealer_ms: int = 400
    """How long they take for each act, in machine time."""
    capacity: str = "deck"
    """How much its chamber and shoe hold: a ``deck``, or a ``batch`` of up to eight."""
    reader: bool = True
    """Whether it has a card reader at the exit."""
    serial: bytes = b"SIM00001"
    events_kept: int = 64
    """How many events the device keeps."""
    firmware: str = "python"
    """The kind of firmware: a name of ``FIRMWARE``."""
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
        """Settings by name, each with its values; BadSetting if a name or value does not exist."""
        values: dict[str, object] = {}
        for name, given in query.items():
            reader = _READERS.get(name)
            if reader is None:
                raise BadSetting(f"an emulated device has no setting '{name}'; it has {', '.join(_READERS)}")
            field, read = reader
            try:
                value = tuple(map(read, given)) if name == "fault" else read(given[-1])
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


def _speed(text: str) -> float:
    speed = UNLIMITED_SPEED if text == "max" else float(text)
    if text != "max" and not 0 < speed < 1e9:
        raise ValueError
    return speed


def _serial(text: str) -> bytes:
    from sabot_driver.serial_numbers import parse_serial  # here, because it loads the whole driver

    return parse_serial(text)


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError
    return share


def _one_of(*choices: str) -> "Callable[[str], str]":
    def chosen(text: str) -> str:
        if text not in choices:
            raise ValueError
        return text

    return chosen


def _yes_or_none(yes: str) -> "Callable[[str], bool]":
    """Reads ``yes`` as True and ``none`` as False."""
    choice = _one_of(yes, "none")
    return lambda text: choice(text) == yes


_READERS: "dict[str, tuple[str, Callable[[str], object]]]" = {
    "seed": ("seed", int),
    "speed": ("speed", _speed),
    "fault": ("faults", PlannedFault.parse),
    "dealer": ("dealer", _yes_or_none("auto")),
    "dealer_ms": ("dealer_ms", int),
    "capacity": ("capacity", _one_of("deck", "batch")),
    "reader": ("reader", _yes_or_none("exit")),
    "serial": ("serial", _serial),
    "events": ("events_kept", int),
    "firmware": ("firmware", _one_of(*FIRMWARE)),
    "drop": ("drop", _share),
    "corrupt": ("corrupt", _share),
}
"""By the name in a URL: the field, and what reads its value. Only ``fault`` may be repeated."""
