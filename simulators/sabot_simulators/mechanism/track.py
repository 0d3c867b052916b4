"""A track: cards moved along a line by rollers, past sensors.

A body (a card, or several that stick together) is where its leading edge is. It moves with the foremost
turning roller that holds it; what has left the last roller flies on to the end. Only moments at which
something changes are looked at: an edge at a sensor, a roller that takes or lets go, the end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from sabot_firmware import figures
from sabot_simulators.mechanism.cards import Card
from sabot_simulators.mechanism.events import Agenda


@dataclass(slots=True)
class Roller:
    """A roller's real speed and what it has been told."""

    speed_um_ms: int
    direction: int = 0
    travelled_um: int = 0
    since_us: int = 0

    def now_um(self, now_us: int) -> int:
        """How far its surface has gone by now."""
        return self.travelled_um + self.direction * self.speed_um_ms * (now_us - self.since_us) // 1000

    def turn(self, direction: int, now_us: int) -> None:
        """Change its direction."""
        self.travelled_um = self.now_um(now_us)
        self.since_us = now_us
        self.direction = direction


@dataclass(eq=False, slots=True)
class Body:
    """What moves as one piece."""

    cards: list[Card]
    length_um: int
    lead_um: int
    since_us: int
    speed_um_ms: int = 0
    plan: int = 0
    stuck_at_um: int | None = None
    drag_percent: int = 100

    def lead_now(self, now_us: int) -> int:
        """Where its leading edge is by now."""
        return self.lead_um + self.speed_um_ms * (now_us - self.since_us) // 1000


class Track:
    """One line of rollers and sensors, from a source of cards to an end."""

    def __init__(
        self,
        agenda: Agenda,
        rollers: tuple[tuple[Roller, int], ...],
        sensors: tuple[tuple[int, int], ...],
        end_um: int,
        take: Callable[[], Body | None],
        deliver: Callable[[Body], None],
        edge: Callable[[int, int], None],
    ) -> None:
        self._agenda = agenda
        self._rollers = rollers  # (roller, where it holds a card from)
        self._sensors = sensors  # (sensor, where)
        self._end_um = end_um
        self._take = take
        self._deliver = deliver
        self._edge = edge
        self.bodies: list[Body] = []  # the foremost first
        self._plans: dict[int, Body] = {}
        self._points: dict[int, list[int]] = {}
        self._last_plan = 0
        self.covered = dict.fromkeys([sensor for sensor, _ in sensors], 0)

    def rollers_changed(self) -> None:
        """A roller of this track was told something: start or stop what it holds."""
        now = self._agenda.now_us
        for body in self.bodies:
            self._settle(body, now)
        self._start_next(now)

    def cards(self) -> list[Card]:
        """All cards on the track, the foremost first."""
        return [card for body in self.bodies for card in body.cards]

    def at(self, sensor: int) -> Body | None:
        """The body that covers a sensor, if any."""
        now = self._agenda.now_us
        for own, where_um in self._sensors:
            if own == sensor:
                for body in self.bodies:
                    lead = body.lead_now(now)
                    if lead - body.length_um < where_um <= lead:
                        return body
        return None

    def clear(self) -> list[Card]:
        """Take every card off the track by hand."""
        taken = self.cards()
        self.bodies = []
        self._plans = {}
        self._look(self._agenda.now_us)
        return taken

    # -- moving ---------------------------------------------------------------------------------

    def _settle(self, body: Body, now_us: int) -> None:
        """Note where a body is, decide how fast it goes from here, and when something changes."""
        body.lead_um = body.lead_now(now_us)
        body.since_us = now_us
        body.speed_um_ms = self._speed(body)
        self._plans.pop(body.plan, None)
        if body.speed_um_ms:
            self._plan(body, now_us)

    def _speed(self, body: Body) -> int:
        lead = body.lead_um
        if body.stuck_at_um is not None and lead >= body.stuck_at_um:
            return 0
        for roller, nip_um in reversed(self._rollers):
            if nip_um <= lead < nip_um + body.length_um and roller.direction:
                return roller.speed_um_ms * roller.direction * body.drag_percent // 100
        last_nip_um = self._rollers[-1][1]
        if lead >= last_nip_um + body.length_um:
            return self._rollers[-1][0].speed_um_ms  # nothing holds it any more: it flies on
        return 0

    def _plan(self, body: Body, now_us: int) -> None:
        points = self._points_of(body)
        lead, speed = body.lead_um, body.speed_um_ms
        if speed > 0:
            at = bisect_right(points, lead)
            if at == len(points):
                return
            wait = -(-(points[at] - lead) * 1000 // speed)
        else:
            at = bisect_left(points, lead) - 1
            if at < 0:
                return
            wait = -(-(lead - points[at]) * 1000 // -speed)
        self._last_plan += 1
        body.plan = self._last_plan
        self._plans[body.plan] = body
        self._agenda.at(now_us + wait, self._reached, body.plan)

    def _points_of(self, body: Body) -> list[int]:
        """Where a body's leading edge is when something changes for it."""
        key = body.length_um if body.stuck_at_um is None else -body.length_um * 1000 - body.stuck_at_um
        points = self._points.get(key)
        if points is None:
            found = {0, body.length_um + figures.GAP_UM, self._end_um}
            for _, where_um in self._sensors:
                found |= {where_um, where_um + body.length_um}
            for _, nip_um in self._rollers:
                found |= {nip_um, nip_um + body.length_um}
            if body.stuck_at_um is not None:
                found.add(body.stuck_at_um)
            points = self._points[key] = sorted(each for each in found if each <= self._end_um)
        return points

    def _reached(self, plan: int) -> None:
        body = self._plans.pop(plan, None)
        if body is None:
            return  # something else has happened to it meanwhile
        now = self._agenda.now_us
        backwards = body.speed_um_ms < 0
        # The wait was rounded up to a whole microsecond: put the body exactly onto its point.
        points = self._points_of(body)
        passed = body.lead_now(now)
        if backwards:
            lead = max(points[bisect_left(points, passed)] - 1, 0)  # just behind it: a sensor there is free
        else:
            lead = points[bisect_right(points, passed) - 1]
        body.lead_um, body.since_us = lead, now
        if lead >= self._end_um:
            self.bodies.remove(body)
            self._look(now)
            self._deliver(body)
        else:
            body.speed_um_ms = self._speed(body)
            if body.speed_um_ms:
                self._plan(body, now)
            self._look(now)
        if not backwards:
            self._start_next(now)

    def _start_next(self, now_us: int) -> None:
        """The first roller draws the next card once the one before is a gap ahead."""
        first = self._rollers[0][0]
        if first.direction <= 0:
            return
        if self.bodies:
            last = self.bodies[-1]
            if last.lead_now(now_us) < last.length_um + figures.GAP_UM:
                return
        body = self._take()
        if body is not None:
            body.since_us = now_us
            self.bodies.append(body)
            self._settle(body, now_us)

    def _look(self, now_us: int) -> None:
        """Report sensors whose level has changed."""
        for sensor, where_um in self._sensors:
            level = 0
            for body in self.bodies:
                lead = body.lead_now(now_us)
                if lead - body.length_um < where_um <= lead:
                    level = 1
                    break
            if level != self.covered[sensor]:
                self.covered[sensor] = level
                self._edge(sensor, level)
