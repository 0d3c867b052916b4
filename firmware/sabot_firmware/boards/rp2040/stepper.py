"""A stepped axis: a PWM slice makes the pulses, and DMA feeds its periods from tables.

Every step comes in time, whatever the processor does. A move accelerates, may cruise, and brakes: three
tables of periods, one DMA channel each, chained. A fourth channel ends the pulses and raises an interrupt.
Nothing is allocated after construction.
"""

from array import array

import rp2
from machine import PWM, Pin
from uctypes import addressof

from sabot_firmware.boards.rp2040.registers import PwmSlice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TICKS_DIVIDER = 125  # of 125 MHz: a tick is a microsecond
PULSE_US = 5
_WORD = 4


def ramp_periods(step_um: int, acceleration_um_s2: int, speed_um_s: int) -> "array[int]":
    """The times between steps in microseconds, from rest to full speed; at least one."""
    periods = array("I")
    before = 0
    least = step_um * 1000000 // speed_um_s
    while True:
        after = int(1000000 * (2 * (len(periods) + 1) * step_um / acceleration_um_s2) ** 0.5 + 0.5)
        period = after - before
        before = after
        if period <= least and len(periods):
            return periods
        periods.append(period if period > least else least)


def _number(channel: rp2.DMA) -> int:
    return channel.channel  # type: ignore[attr-defined,no-any-return]


class Stepper:
    """One axis. ``position`` counts its steps from where it was constructed."""

    def __init__(self, pin: int, ramp: "array[int]", on_done: "Callable[[], None]") -> None:
        self._pwm = PWM(Pin(pin))
        self._slice = PwmSlice(pin)
        self._slice.stop()
        self._on_done = on_done
        self.position = 0
        self._direction = 0
        self._planned = 0
        self._counts = array("I", [0, 0, 0, 1])  # transfers planned for each stretch: one a step in all
        self.moving = False
        top = len(ramp)
        self._ramp_steps = top
        self._up = array("I", [each - 1 for each in ramp])  # a period is one more than the counter's top
        down = [each - 1 for each in ramp]
        down.reverse()
        self._down = array("I", down + [ramp[0] - 1])  # one more: the last step's own period is not counted
        self._cruise = array("I", [0])
        self._nothing = array("I", [0])
        self._up_at = addressof(self._up)
        self._down_at = addressof(self._down)
        speed_up, cruise, slow_down, end = [rp2.DMA() for _ in range(4)]
        self._channels = (speed_up, cruise, slow_down, end)
        request = self._slice.request
        self._speed_up_to = []  # how the first stretch goes on: with the second, or at once with the third
        for after in (cruise, slow_down):
            self._speed_up_to.append(
                speed_up.pack_ctrl(inc_write=False, treq_sel=request, chain_to=_number(after))
            )
        speed_up.config(write=self._slice.top, ctrl=self._speed_up_to[0])
        cruise.config(
            read=addressof(self._cruise),
            write=self._slice.top,
            ctrl=cruise.pack_ctrl(
                inc_read=False, inc_write=False, treq_sel=request, chain_to=_number(slow_down)
            ),
        )
        slow_down.config(
            write=self._slice.top,
            ctrl=slow_down.pack_ctrl(inc_write=False, treq_sel=request, chain_to=_number(end)),
        )
        end.config(
            read=addressof(self._nothing),
            write=self._slice.compare,
            count=1,
            ctrl=end.pack_ctrl(inc_read=False, inc_write=False, treq_sel=request, irq_quiet=False),
        )
        end.irq(self._ended, hard=True)

    def move(self, steps: int) -> None:
        """Begin a move of so many steps, negative for backwards. The axis must stand."""
        count = steps if steps >= 0 else -steps
        self._direction = 1 if steps >= 0 else -1
        self._planned = count
        self.moving = True
        # Half of the steps speed up, the others slow down; of an odd number, or a long way, some cruise.
        ramp = count >> 1
        if ramp > self._ramp_steps:
            ramp = self._ramp_steps
        cruising = count - 2 * ramp
        up = self._up
        peak = up[ramp - 1] if ramp else up[0]
        self._cruise[0] = peak
        # The first two periods are given to the slice itself; the tables hold the others, and one more.
        second = up[1] if ramp >= 2 else peak
        slow = ramp + 1
        if ramp < 2:  # all steps are alike
            slow = 1 if count > 1 else 0
            cruising = count - 2 if count > 2 else 0
        rising = ramp - 2 if ramp > 2 else 0
        counts = self._counts
        counts[0] = rising
        counts[1] = cruising
        counts[2] = slow
        speed_up, cruise, slow_down, end = self._channels
        first = end
        if slow:
            slow_down.config(read=self._down_at + (self._ramp_steps + 1 - slow) * _WORD, count=slow)
            first = slow_down
        if cruising:
            cruise.config(count=cruising)
            first = cruise
        if rising:
            after = self._speed_up_to[0 if cruising else 1]
            speed_up.config(read=self._up_at + 2 * _WORD, count=rising, ctrl=after)
            first = speed_up
        first.active(1)
        self._slice.start(TICKS_DIVIDER, PULSE_US, up[0] + 1, second + 1)

    def stop(self) -> None:
        """Stop at once; the position is that of the last step made."""
        if not self.moving:
            return
        self._slice.stop()
        left = 0
        running = False
        for number, channel in enumerate(self._channels):
            if running:
                left += self._counts[number]
            elif self._counts[number] and channel.active():
                running = True
                left = channel.count  # type: ignore[attr-defined]
        for channel in self._channels:
            channel.active(0)
        self.moving = False
        self.position += self._direction * (self._planned - left)

    def _ended(self, _: object) -> None:
        """The last step was made; runs in an interrupt."""
        self._slice.stop()
        self.moving = False
        self.position += self._direction * self._planned
        self._on_done()
