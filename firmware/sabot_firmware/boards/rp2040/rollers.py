"""The rollers: a pin drives each, an expander output reverses it, an encoder measures it."""

from machine import PWM, Pin

from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.boards.rp2040.board_clock import now_us
from sabot_firmware.boards.rp2040.expander import Expanders, output
from sabot_firmware.boards.rp2040.registers import PwmSlice
from sabot_protocol import ticks

_BACK_BITS = (output(pins.FEED_BACK_BIT), output(pins.INSERT_BACK_BIT), output(pins.DEAL_BACK_BIT))


class Rollers:
    """All three. The encoders have no direction: pulses count in the driven direction."""

    def __init__(self, expanders: Expanders) -> None:
        self._expanders = expanders
        self._drives = [Pin(drive, Pin.OUT, value=0) for _, drive, _ in pins.ROLLERS]
        self._inputs = [PWM(Pin(encoder)) for _, _, encoder in pins.ROLLERS]
        self._slices = [PwmSlice(encoder) for _, _, encoder in pins.ROLLERS]
        for each in self._slices:
            each.count_pulses()
        self._directions = [0, 0, 0]
        self._since_us = [0, 0, 0]  # when each began to turn
        self._um = [0, 0, 0]  # forward less back; wraps as ticks do, so it stays a small integer for ever
        self._counted = [each.counted() for each in self._slices]  # the counters when they were read last

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        before = self._directions[roller]
        if direction == before:
            return
        if not direction:
            self._drives[roller].value(0)  # first: a card waits for it
            self.refresh(roller)
            self._directions[roller] = 0
            return
        self.refresh(roller)
        bit = _BACK_BITS[roller]
        outputs = self._expanders.outputs & ~bit
        if direction < 0:
            outputs |= bit
        if outputs != self._expanders.outputs:
            self._drives[roller].value(0)
            self._expanders.drive(outputs)
        self._drives[roller].value(1)
        self._directions[roller] = direction
        self._since_us[roller] = now_us()

    def stop_all(self) -> None:
        """Stop all rollers, by the pins alone."""
        for drive in self._drives:
            drive.value(0)
        for roller in range(3):
            self._directions[roller] = 0

    def refresh(self, roller: int) -> None:
        """Read an encoder's counter; at least every six seconds, before it wraps."""
        counted = self._slices[roller].counted()
        pulses = (counted - self._counted[roller]) & 0xFFFF
        self._counted[roller] = counted
        if self._directions[roller] < 0:
            pulses = -pulses
        self._um[roller] = ticks.add(self._um[roller], pulses * pins.ENCODER_UM)

    def travelled_um(self, roller: int, at_us: int) -> int:
        """Surface distance since power-up, forward less back, at a moment just past; wraps as ticks do."""
        self.refresh(roller)
        now = now_us()
        gone_um = min(ticks.diff(now, at_us), ticks.diff(now, self._since_us[roller]))  # one a microsecond
        return ticks.add(self._um[roller], -self._directions[roller] * gone_um)
