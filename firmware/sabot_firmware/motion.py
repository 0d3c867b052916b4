"""Motions: generators that yield what they wait for, and a scheduler that resumes them.

A motion reads top to bottom like the machine's description. To wait, it yields its ``Wait``, set to an edge
in a window, a time, or a signal of another motion. The scheduler resumes it with True if the window closed
before the edge came: ``late = yield wait.edge(...)``. A running motion allocates no memory.
"""

from sabot_protocol.ticks import HALF, MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    Steps = Generator["Wait", bool, None]

ANY = -1


class Wait:
    """What one motion waits for, and when that came."""

    def __init__(self) -> None:
        self.now_us = 0
        self.sensor = ANY  # the edge it waits for, if any
        self.level = 0
        self.until_us = 0  # the end of its window
        self.timed = False  # whether it has one
        self.signalled = False  # whether it waits for a signal of another motion
        self.paused = False  # whether nothing of its half moves meanwhile: a pause
        self.at_us = 0  # when the edge came

    def edge(self, sensor: int, level: int, within_us: int) -> "Wait":
        """Until an edge to this level comes, at most ``within_us``; a level already there does not count."""
        self.sensor = sensor
        self.level = level
        self.until_us = (self.now_us + within_us) & MASK
        self.timed = True
        self.signalled = self.paused = False
        return self

    def time(self, us: int) -> "Wait":
        """For so many microseconds."""
        return self.edge(ANY, 0, us)

    def signal(self) -> "Wait":
        """Until another motion signals, without a limit."""
        self.sensor = ANY
        self.timed = False
        self.signalled = True
        self.paused = False
        return self

    def pause(self) -> "Wait":
        """Until the board ends the pause or another motion signals. Nothing of the half moves meanwhile."""
        self.signal()
        self.paused = True
        return self

    def pause_for(self, us: int) -> "Wait":
        """For so many microseconds in which nothing of the half moves."""
        self.time(us)
        self.paused = True
        return self


class Motion:
    """A generator that runs, with its wait."""

    def __init__(self, steps: "Steps", wait: Wait) -> None:
        self.steps = steps
        self.wait = wait
        self.done = False

    def begin(self, now_us: int) -> None:
        """Run up to the first wait."""
        self.wait.now_us = now_us
        try:
            next(self.steps)
        except StopIteration:
            self.done = True

    def resume(self, now_us: int, at_us: int, late: bool) -> None:
        """Run on to the next wait or the end; ``late`` says that the window closed first."""
        wait = self.wait
        wait.now_us = now_us
        wait.at_us = at_us
        try:
            self.steps.send(late)
        except StopIteration:
            self.done = True


class Scheduler:
    """Runs the motions of one half of the machine."""

    def __init__(self) -> None:
        self.motions: list[Motion] = []  # those that run
        self._signalled = False
        self.now_us = 0

    def start(self, steps: "Steps", wait: Wait, now_us: int) -> Motion:
        """Start a motion, which runs up to its first wait at once."""
        self.now_us = now_us
        motion = Motion(steps, wait)
        self.motions.append(motion)
        motion.begin(now_us)
        self._after(now_us)
        return motion

    def stop_all(self) -> None:
        """Drop every motion. The caller stops the motors that they started."""
        self.motions = []

    def signal(self) -> None:
        """Resume the motions that wait for a signal, as soon as the calling motion waits again."""
        self._signalled = True

    def wake(self, now_us: int) -> None:
        """Resume the motions that wait for a signal, called from outside a motion."""
        self.now_us = now_us
        self._signalled = True
        self._after(now_us)

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> bool:
        """Resume the motions that wait for this edge; return whether there was one."""
        taken = ended = False
        self.now_us = now_us
        for motion in self.motions:
            wait = motion.wait
            if wait.sensor == sensor and wait.level == level and not motion.done:
                wait.now_us = now_us
                wait.at_us = at_us
                try:  # as ``Motion.resume`` does: every edge of a card comes here
                    motion.steps.send(False)
                except StopIteration:
                    motion.done = ended = True
                taken = True
        if ended or self._signalled:
            self._after(now_us)
        return taken

    def step(self, now_us: int) -> int | None:
        """Resume motions whose window is over; microseconds until the next window ends, or None."""
        self.now_us = now_us
        while self.motions:
            soonest: int | None = None
            woken = False
            for motion in self.motions:
                wait = motion.wait
                if not wait.timed:
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
        """Resume motions that were signalled, and remove those that ended."""
        while self._signalled:
            self._signalled = False
            for motion in self.motions:
                if motion.wait.signalled and not motion.done:
                    motion.resume(now_us, now_us, False)
        for motion in self.motions:
            if motion.done:
                self.motions = [each for each in self.motions if not each.done]
                return
