"""Motions: generators that say what they wait for, and a scheduler that wakes them.

A motion reads top to bottom like the machine's description. Where it must wait it yields its ``Wait``, set
to an edge in a window, a time, or a signal of another motion. It is resumed when that has come, and told
whether it came too late: ``late = yield wait.edge(...)``. Nothing allocates memory once a motion runs.
"""

from sabot_protocol import ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    Steps = Generator["Wait", bool, None]

ANY = -1


class Wait:
    """What one motion waits for, and what came of it."""

    def __init__(self) -> None:
        self.now_us = 0
        self._sensor = ANY
        self._level = 0
        self._until_us = 0
        self._timed = False
        self._signal = False
        self.at_us = 0  # when it came

    def edge(self, sensor: int, level: int, within_us: int) -> "Wait":
        """Until a sensor has this level, at most this long."""
        self._sensor = sensor
        self._level = level
        return self._for(within_us)

    def time(self, us: int) -> "Wait":
        """For a time."""
        self._sensor = ANY
        return self._for(us)

    def signal(self) -> "Wait":
        """Until another motion signals; as long as it takes."""
        self._sensor = ANY
        self._timed = False
        self._signal = True
        return self

    def _for(self, us: int) -> "Wait":
        self._until_us = ticks.add(self.now_us, us)
        self._timed = True
        self._signal = False
        return self

    def wants(self, sensor: int, level: int) -> bool:
        """Whether this edge is what it waits for."""
        return self._sensor == sensor and self._level == level

    def wants_signal(self) -> bool:
        """Whether it waits for another motion."""
        return self._signal

    def due_in_us(self, now_us: int) -> int | None:
        """How long until its window is over; None if it has none."""
        if not self._timed:
            return None
        return ((self._until_us - now_us + ticks.HALF) & ticks.MASK) - ticks.HALF


class Motion:
    """A running generator with its wait."""

    def __init__(self, steps: "Steps", wait: Wait) -> None:
        self._steps = steps
        self.wait = wait
        self.done = False

    def begin(self, now_us: int) -> None:
        """Run up to the first wait."""
        self.wait.now_us = now_us
        try:
            next(self._steps)
        except StopIteration:
            self.done = True

    def resume(self, now_us: int, at_us: int, late: bool) -> None:
        """Go on to the next wait, or to the end."""
        wait = self.wait
        wait.now_us = now_us
        wait.at_us = at_us
        try:
            self._steps.send(late)
        except StopIteration:
            self.done = True


class Scheduler:
    """The motions of one half of the machine."""

    def __init__(self) -> None:
        self._motions: list[Motion] = []
        self._signalled = False
        self.now_us = 0

    def busy(self) -> bool:
        """Whether any motion runs."""
        return bool(self._motions)

    def start(self, steps: "Steps", wait: Wait, now_us: int) -> Motion:
        """Begin a motion; it runs up to its first wait at once."""
        self.now_us = now_us
        motion = Motion(steps, wait)
        self._motions.append(motion)
        motion.begin(now_us)
        self._after(now_us)
        return motion

    def stop_all(self) -> None:
        """Forget every motion; what they had ordered is the caller's to stop."""
        self._motions = []

    def signal(self) -> None:
        """Wake the motions that wait for another one, as soon as this one waits again."""
        self._signalled = True

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> bool:
        """Give an edge to the motions that wait for it; whether any did."""
        taken = False
        self.now_us = now_us
        for motion in self._motions:
            if not motion.done and motion.wait.wants(sensor, level):
                motion.resume(now_us, at_us, False)
                taken = True
        self._after(now_us)
        return taken

    def step(self, now_us: int) -> int | None:
        """Wake what is overdue; return how long until the next window is over, or None."""
        self.now_us = now_us
        while self._motions:
            soonest: int | None = None
            woken = False
            for motion in self._motions:
                due = motion.wait.due_in_us(now_us)
                if due is None or motion.done:
                    continue
                if due <= 0:
                    motion.resume(now_us, now_us, True)
                    woken = True
                elif soonest is None or due < soonest:
                    soonest = due
            if not woken:
                return soonest
            self._after(now_us)
        return None

    def _after(self, now_us: int) -> None:
        while self._signalled:
            self._signalled = False
            for motion in self._motions:
                if not motion.done and motion.wait.wants_signal():
                    motion.resume(now_us, now_us, False)
        for motion in self._motions:
            if motion.done:
                self._motions = [each for each in self._motions if not each.done]
                return
