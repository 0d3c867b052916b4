"""What the technician's page shows beyond the session: sensors, wear, calibration, and the journal's history.

The device is asked only while somebody looks.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from sabot_driver.calibration import NoEarlierValue, read_calibration, value_before
from sabot_driver.client import Client
from sabot_driver.device_values import SensorReadings, meaning_of, name_of, parse_wear
from sabot_driver.errors import SabotError
from sabot_driver.jogging import read_sensors
from sabot_driver.journal import JournalEntry
from sabot_driver.received_events import ReceivedEvent, parse_entry
from sabot_driver.roller_trends import RollerTrend, trends
from sabot_protocol.host.messages import (
    Calibration,
    FaultCleared,
    FaultRaised,
    Part,
    RollerTimes,
    SelfTested,
    Wear,
)

log = logging.getLogger("sabot.serve")
PART = "machine"
"""The name beside the session's snapshot under which it stands."""
LOOK_S = 0.2  # between two readings of the sensors
SLOW_S = 3.0  # between two readings of what changes seldom
ASK_S = 2.0
MOST_FAULTS = 50
MOST_SHUFFLES = 400
SHOWN_SHUFFLES = 60


class MachineWatch:
    """Reads a device for the technician's page."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._at = 0
        self._faults: deque[dict[str, Any]] = deque(maxlen=MOST_FAULTS)
        self._tested: dict[str, Any] = {}
        self._times: deque[JournalEntry] = deque(maxlen=MOST_SHUFFLES)
        self._before: dict[str, tuple[tuple[int, object], int | None]] = {}
        self._slow: dict[str, Any] = {}
        self._slow_s = 0.0

    async def run(
        self, wanted: Callable[[], bool], publish: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        """Read again and again while somebody wants it, until this task is cancelled."""
        while True:
            if wanted():
                publish(PART, await asyncio.to_thread(self.read))
            await asyncio.sleep(LOOK_S)

    def read(self) -> dict[str, Any]:
        """Everything now. What the device does not answer is left out, and ``error`` says why."""
        found: dict[str, Any] = {"error": ""}
        try:
            found |= _sensors(read_sensors(self._client, ASK_S))
            if time.monotonic() - self._slow_s > SLOW_S:
                self._slow, self._slow_s = self._read_slow(), time.monotonic()
        except SabotError as error:
            found["error"] = str(error)
        self._read_journal()
        history = {"faults": list(reversed(self._faults)), "tested": self._tested}
        return {**self._slow, **history, "trends": _trends(trends(self._times)), **found}

    def _read_slow(self) -> dict[str, Any]:
        wear = parse_wear(self._client.ask(Wear(), ASK_S))
        return {
            "wear": [
                {
                    "name": each.name,
                    "value": each.value,
                    "meaning": each.meaning,
                    "unit": each.unit,
                    "limit": each.limit,
                    "drift": each.drift_permille,
                    "ok": each.within_limit,
                }
                for each in wear
            ],
            "calibration": [self._calibration(each) for each in Calibration],
        }

    def _calibration(self, what: Calibration) -> dict[str, Any]:
        now = read_calibration(self._client, what, ASK_S)
        key = now.value, now.at
        if self._before.get(name_of(what), (None, None))[0] != key:
            try:
                before: int | None = value_before(self._client, now, ASK_S) if now.at is not None else None
            except NoEarlierValue:
                before = None
            self._before[name_of(what)] = key, before
        set_s = None if now.at is None else int(now.at.timestamp())
        return {
            "name": name_of(what),
            "meaning": meaning_of(what),
            "value": now.value,
            "set_s": set_s,
            "before": self._before[name_of(what)][1],
        }

    def _read_journal(self) -> None:
        while page := self._client.journal.after(self._at):
            for entry in page:
                self._take(entry)
            self._at = page[-1].id

    def _take(self, entry: JournalEntry) -> None:
        event = parse_entry(entry)
        if not isinstance(event, ReceivedEvent):
            return
        told, at_s = event.message, int(event.received.timestamp())
        if isinstance(told, RollerTimes):
            self._times.append(entry)
        elif isinstance(told, FaultRaised):
            self._faults.append(
                {
                    "at_s": at_s,
                    "fault": name_of(told.fault),
                    "place": name_of(told.place),
                    "cards": told.cards,
                    "cleared_s": None,
                }
            )
        elif isinstance(told, FaultCleared):
            for each in self._faults:
                if each["fault"] == name_of(told.fault) and each["cleared_s"] is None:
                    each["cleared_s"] = at_s
        elif isinstance(told, SelfTested):
            self._tested = {**self._tested, name_of(told.half): bool(told.passed), "at_s": at_s}


def _sensors(read: SensorReadings) -> dict[str, Any]:
    return {
        "sensors": [
            {"name": each.name, "meaning": each.meaning, "level": each.level, "at_rest": each.is_at_rest}
            for each in read.sensors
        ],
        "height_um": read.height_um,
        "rollers_um": list(read.rollers_um),
    }


def _trends(found: tuple[RollerTrend, ...]) -> list[dict[str, Any]]:
    return [
        {
            "roller": each.roller,
            "shuffles": len(each.timings),
            "points": [
                [round(one.mean_ms, 2), None if one.deviation_ms is None else round(one.deviation_ms, 3)]
                for one in each.timings[-SHOWN_SHUFFLES:]
                if one.mean_ms is not None
            ],
            "change_percent": None if each.change_percent is None else round(each.change_percent, 2),
            "rounds_left": each.rounds_left,
        }
        for each in found
    ]


PARTS = {name_of(each): each for each in Part}
"""The parts that can be jogged, by name."""
