"""The table PC's time counts: a device whose clock was lost or moved is told the time again."""

import threading
import time

from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.output import Output
from sabot_driver import Client, LostEvents, ReceivedEvent
from sabot_driver.errors import SabotError
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import ClockChanged, SetClock

TOLERANCE_S = 5


class DeviceClock:
    """Watches a device's clock while a table is played."""

    def __init__(self, client: Client, output: Output, printer: LinesPrinter, timeout: float) -> None:
        self._client = client
        self._output = output
        self._printer = printer
        self._timeout = timeout
        self._changed = threading.Event()
        client.on_event(self._event)

    def _event(self, event: ReceivedEvent | LostEvents) -> None:
        if isinstance(event, ReceivedEvent) and isinstance(event.message, ClockChanged):
            self._changed.set()

    def look(self) -> None:
        """Set the clock if it was changed and is wrong."""
        if not self._changed.is_set():
            return
        self._changed.clear()
        try:
            was_s, now_s = self._client.status(self._timeout).utc_s, int(time.time())
            if abs(was_s - now_s) <= TOLERANCE_S:
                return
            self._client.ask(SetClock(now_s, 0), self._timeout)
        except SabotError:
            self._changed.set()  # not now: the next look tries again
            return
        except FieldError:  # the message takes no time before 2026 or after 2106
            words = (
                "the machine's clock is not set: this computer's is wrong. Set this computer's date and time."
            )
            self._printer.print(words, "yellow")
            return
        self._printer.print("the machine's clock was not right and has been set", "yellow")
        self._output.tell("clock_set", was_utc_s=was_s, utc_s=now_s)
