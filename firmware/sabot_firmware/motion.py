"""Motions: generators that say what they wait for, and a scheduler that wakes them.

A motion reads top to bottom like the machine's description. Where it must wait it yields its ``Wait``, set
to an edge in a window, a time, or a signal of another motion. It is resumed when that has come, and told
whether it came too late: ``late = yield wait.edge(...)``. Nothing allocates memory once a motion runs.
"""

from sabot_protocol.ticks import HALF, MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    Steps = Generator["Wait", bool, None]

ANY = -1


class Wait:
    """What one motion waits for, and what came of it."""

    def __init__(self) -> None:
        self.now_us = 0
        self.sensor = ANY  # the edge it waits for, if any
        self.level = 0
        self.until_us = 0  # the end of its window
        self.timed = False  # whether it has one
        self.signalled = False  # whether it waits for another motion
        self.paused = False  # whether nothing of its half moves meanwhile
        self.at_us = 0  # when it came

    def edge(self, sensor: int, level: int, within_us: int) -> "Wait":
        """Until a sensor has this level, at most this long."""
        self.sensor = sensor
        self.level = level
        self.until_us = (self.now_us + within_us) & MASK
        self.timed = True
        self.signalled = self.paused = False
        return self

    def time(self, us: int) -> "Wait":
        """For a time."""
        return self.edge(ANY, 0, us)

    def signal(self) -> "Wait":
        """Until another motion signals; as long as it takes."""
        self.sensor = ANY
        self.timed = False
        self.signalled = True
        self.paused = False
        return self

    def pause(self) -> "Wait":
        """Until the board has had its rest, or another motion signals: nothing of the half moves."""
        self.signal()
        self.paused = True
        return self

    def pause_for(self, us: int) -> "Wait":
        """For a time in which nothing of the half moves."""
        self.time(us)
        self.paused = True
        return self


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

    def wake(self, now_us: int) -> None:
        """Wake them now, from outside."""
        self.now_us = now_us
        self._signalled = True
        self._after(now_us)

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> bool:
        """Give an edge to the motions that wait for it; whether any did."""
        taken = ended = False
        self.now_us = now_us
        for motion in self._motions:
            wait = motion.wait
            if wait.sensor == sensor and wait.level == level and not motion.done:
                motion.resume(now_us, at_us, False)
                taken = True
                ended = ended or motion.done
        if ended or self._signalled:
            self._after(now_us)
        return taken

    def step(self, now_us: int) -> int | None:
        """Wake what is overdue; return how long until the next window is over, or None."""
        self.now_us = now_us
        while self._motions:
            soonest: int | None = None
            woken = False
            for motion in self._motions:
                wait = motion.wait
                if not wait.timed or motion.done:
                    continue
                due = ((wait.until_us - now_us + HALF) & MASK) - HALF
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
        """What follows when motions have run: those they signalled run too, those that ended go."""
        while self._signalled:
            self._signalled = False
            for motion in self._motions:
                if motion.wait.signalled and not motion.done:
                    motion.resume(now_us, now_us, False)
        for motion in self._motions:
            if motion.done:
                self._motions = [each for each in self._motions if not each.done]
                return
