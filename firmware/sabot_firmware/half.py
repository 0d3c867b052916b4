"""What the two halves of the machine have in common: motions, a jam, and how one is cleared."""

from sabot_firmware.hardware import STOP, Hardware
from sabot_firmware.jam import Jam
from sabot_firmware.motion import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    ClearLevels = tuple[tuple[int, int, str], ...]


class Half:
    """One half: it works, or it has stopped for a jam and stands until that is cleared."""

    def __init__(
        self,
        hardware: Hardware,
        rollers: "tuple[int, ...]",
        clear_levels: "ClearLevels",
        rest: int,
        jammed: int,
    ) -> None:
        self._hardware = hardware
        self._rollers = rollers
        self._clear_levels = clear_levels  # what the sensors must say before it is believed to be empty
        self._rest = rest
        self._jammed = jammed
        self._scheduler = Scheduler()
        self.state = rest
        self.jam: Jam | None = None

    def step(self, now_us: int) -> int | None:
        """Let time pass; how long until something is due."""
        return self._scheduler.step(now_us)

    def door_opened(self, place: str, cards: int) -> None:
        """Hands may be inside: what was being done is over, and nothing of it is proved any more."""
        if self.state not in (self._rest, self._jammed):
            self._stop(place, "door_opened", cards)

    def refuse_clearing(self) -> str | None:
        """Which sensor does not agree that this half is empty and closed; None if all do."""
        for sensor, level, name in self._clear_levels:
            if self._hardware.level(sensor) != level:
                return name
        return None

    def clear(self) -> None:
        """The half is empty again."""
        self.jam = None
        self.state = self._rest

    def _stop(self, place: str, cause: str, cards: int) -> None:
        """Stop everything of this half where it is."""
        for roller in self._rollers:
            self._hardware.run(roller, STOP)
        self.jam = Jam(place, cause, cards)
        self.state = self._jammed
        self._scheduler.stop_all()
