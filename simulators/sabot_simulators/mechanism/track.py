"""A track: cards moved along a line by rollers, past sensors.

A body (a card, or several that stick together) is where its leading edge is. It moves with the foremost
turning roller that holds it; what has left the last roller flies on to the end. Only moments at which
something changes are looked at: an edge at a sensor, another speed, room for the next card, the end.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from sabot_firmware import machine_constants
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.mechanism.physical_cards import PhysicalCard

NEVER = -1


@dataclass(slots=True)
class Roller:
    """A roller's real speed and what it has been told."""

    speed_um_ms: int
    direction: int = 0
    stalled: bool = False
    velocity_um_ms: int = 0
    travelled_um: int = 0
    since_us: int = 0

    def now_um(self, now_us: int) -> int:
        """How far its surface has gone by now."""
        return self.travelled_um + self.velocity_um_ms * (now_us - self.since_us) // 1000

    def turn(self, direction: int, now_us: int) -> None:
        """Change its direction; a stalled one stands still all the same."""
        if self.velocity_um_ms:
            self.travelled_um += self.velocity_um_ms * (now_us - self.since_us) // 1000
        self.since_us = now_us
        self.direction = direction
        self.velocity_um_ms = 0 if self.stalled else direction * self.speed_um_ms


@dataclass(slots=True)
class Course:
    """The way of every body of one length and drag: points on it, and stretches that begin at them."""

    points: list[int]
    """Where the leading edge is when something changes, from 0 to the end."""
    held: list[list[Roller]]
    """The rollers that hold the body along a stretch, the foremost first."""
    covers: list[tuple[int, ...]]
    """The sensors it covers along a stretch."""
    edges: list[tuple[tuple[int, int], ...]]
    """What changes at a point, going forward: a sensor, and 1 or -1."""
    looks: list[bool]
    """Whether something happens at a point whatever the rollers do."""
    loose: int
    """The first stretch along which no roller reaches it any more."""
    gap: int
    """The point that leaves room for the next card."""
    stuck: int
    """The stretch on which it sticks, past the last one if nowhere."""
    last: int
    """The point at the end."""
    drag_percent: int
    """How fast it goes, of a roller's speed."""
    moves: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By how the rollers turn: along each stretch its speed, the next point where something changes for it,
    and how long it takes to there from the stretch's beginning if it goes forward."""


@dataclass(eq=False, slots=True)
class CardGroup:
    """What moves as one piece."""

    cards: list[PhysicalCard]
    length_um: int
    lead_um: int
    since_us: int
    speed_um_ms: int = 0
    stuck_at_um: int | None = None
    snagged: bool = False
    """It comes free when a roller that holds it is backed up."""
    drag_percent: int = 100
    course: Course = field(init=False)
    stretch: int = 0
    goal: int = 0
    due_us: int = NEVER

    def stop_at(self, at_um: int) -> None:
        """It goes no further than this, if nothing holds it before."""
        if self.stuck_at_um is None or self.stuck_at_um > at_um:
            self.stuck_at_um, self.snagged = at_um, False

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
        take: Callable[[], CardGroup | None],
        deliver: Callable[[CardGroup], None],
        edge: Callable[[int, int], None],
    ) -> None:
        self._agenda = agenda
        self._rollers = rollers  # (roller, where it holds a card from)
        self._first = rollers[0][0]
        self._last = rollers[-1][0]
        self._sensors = sensors  # (sensor, where)
        self._where_um = dict(sensors)
        self._end_um = end_um
        self._take = take
        self._deliver = deliver
        self._edge = edge
        self.bodies: list[CardGroup] = []  # the foremost first
        self._courses: dict[tuple[int, int | None, int], Course] = {}
        self._turnings: dict[tuple[int, int, int, int], int] = {}  # each way the rollers ever turned
        self._turning = 0  # the one they turn in now
        self._covering = dict.fromkeys([sensor for sensor, _ in sensors], 0)  # how many bodies do

    def rollers_changed(self) -> None:
        """A roller of this track was told something: start or stop what it holds."""
        first, last = self._first, self._last
        turning = first.direction, first.velocity_um_ms, last.direction, last.velocity_um_ms
        self._turning = self._turnings.setdefault(turning, len(self._turnings) + 1)
        now = self._agenda.now_us
        for body in self.bodies:
            if body.stretch < body.course.loose:
                self._settle(body, now)
        if first.velocity_um_ms > 0:
            self.draw()

    def cards(self) -> list[PhysicalCard]:
        """All cards on the track, the foremost first."""
        return [card for body in self.bodies for card in body.cards]

    def flying(self) -> list[PhysicalCard]:
        """The cards that no roller holds any more and that have not landed."""
        return [card for body in self.bodies if body.stretch >= body.course.loose for card in body.cards]

    def unseen(self, dead: Callable[[int], bool] = lambda sensor: False) -> list[CardGroup]:
        """The bodies that cover no sensor of this track, or only dead ones."""
        now = self._agenda.now_us
        return [
            body
            for body in self.bodies
            if all(map(dead, body.course.covers[self._whereabouts(body, now)[0]]))
        ]

    def at(self, sensor: int) -> CardGroup | None:
        """The foremost body that covers a sensor, if any."""
        now = self._agenda.now_us
        where_um = self._where_um.get(sensor)
        if where_um is not None:
            for body in self.bodies:
                lead = body.lead_um + body.speed_um_ms * (now - body.since_us) // 1000
                if lead - body.length_um < where_um <= lead:
                    return body
        return None

    def clear(self) -> list[PhysicalCard]:
        """Take every card off the track by hand."""
        taken = self.cards()
        bodies, self.bodies = self.bodies, []
        for body in bodies:
            body.due_us = NEVER
            stretch, _ = self._whereabouts(body, self._agenda.now_us)
            for sensor in body.course.covers[stretch]:
                self._cover(sensor, -1)
        return taken

    def loosen(self) -> None:
        """Whatever sticks is pulled free by hand, and stays where it is."""
        now = self._agenda.now_us
        for body in self.bodies:
            if body.stuck_at_um is not None:
                _, lead = self._whereabouts(body, now)
                body.snagged, body.stuck_at_um = False, None
                body.course = self._course(body)
                self._go(body, bisect_right(body.course.points, lead) - 1, lead, now)

    def beyond(self, at_um: int) -> list[PhysicalCard]:
        """The cards whose leading edge has passed a place."""
        now = self._agenda.now_us
        return [card for body in self.bodies if body.lead_now(now) > at_um for card in body.cards]

    def bar(self, at_um: int, closed: bool) -> None:
        """Let no body go further than a place; or let those go on that have not yet come to it."""
        now = self._agenda.now_us
        for body in self.bodies:
            _, lead = self._whereabouts(body, now)
            if lead < at_um:
                if closed:
                    body.stop_at(at_um)
                elif body.stuck_at_um == at_um:
                    body.stuck_at_um = None
                body.course = self._course(body)
                body.goal = -1  # it is on its way to a point of another course
                self._go(body, bisect_right(body.course.points, lead) - 1, lead, now)

    def draw(self) -> None:
        """The first roller draws the next card if it turns and the one before is a gap ahead."""
        if self._first.velocity_um_ms <= 0:
            return
        now = self._agenda.now_us
        if self.bodies:
            last = self.bodies[-1]
            lead = last.lead_um + last.speed_um_ms * (now - last.since_us) // 1000
            if lead < last.length_um + machine_constants.GAP_UM:
                return
        body = self._take()
        if body is not None:
            body.course = self._course(body)
            self.bodies.append(body)
            self._go(body, 0, 0, now)

    # -- moving ---------------------------------------------------------------------------------

    def _settle(self, body: CardGroup, now_us: int) -> None:
        """A roller has changed: if that makes a difference to a body, let it go on anew from where it is."""
        stretch, lead = self._whereabouts(body, now_us)
        if body.snagged and stretch >= body.course.stuck and self._pull(body.course, stretch) < 0:
            body.snagged, body.stuck_at_um = False, None
            body.course = self._course(body)
            stretch = bisect_right(body.course.points, lead) - 1
        self._go(body, stretch, lead, now_us)

    def _whereabouts(self, body: CardGroup, now_us: int) -> tuple[int, int]:
        """On which stretch a body is by now, and where; a point it is about to reach it has not reached."""
        points, stretch, lead, speed = body.course.points, body.stretch, body.lead_um, body.speed_um_ms
        if speed:
            lead += speed * (now_us - body.since_us) // 1000
            end = points[body.goal]
            if speed > 0:
                if lead >= end:
                    lead = end - 1
                while points[stretch + 1] <= lead:
                    stretch += 1
            else:
                if lead < end:
                    lead = end
                while points[stretch] > lead:
                    stretch -= 1
        return stretch, lead

    def _pull(self, course: Course, stretch: int) -> int:
        """How fast a body is moved along a stretch, if nothing keeps it."""
        for roller in course.held[stretch]:
            if roller.direction:
                speed = roller.velocity_um_ms
                return speed if course.drag_percent == 100 else speed * course.drag_percent // 100
        return self._last.speed_um_ms if stretch >= course.loose else 0  # nothing holds it: it flies on

    def _moves(self, course: Course) -> list[tuple[int, int, int]]:
        """What ``Course.moves`` is to say of a course, as the rollers turn now."""
        found = [self._move(course, stretch) for stretch in range(len(course.points))]
        course.moves[self._turning] = found
        return found

    def _move(self, course: Course, stretch: int) -> tuple[int, int, int]:
        """One stretch of it."""
        speed = self._pull(course, stretch) if stretch < course.stuck else 0
        goal, takes_us = stretch, 0
        if speed > 0 and stretch + 1 < len(course.points):
            goal += 1
            while not course.looks[goal] and self._pull(course, goal) == speed:
                goal += 1
            takes_us = -((course.points[stretch] - course.points[goal]) * 1000 // speed)
        elif speed < 0:
            while goal and not course.edges[goal] and self._pull(course, goal - 1) == speed:
                goal -= 1
        return speed, goal, takes_us

    def _go(self, body: CardGroup, stretch: int, lead: int, now_us: int) -> None:
        """From where a body is: how fast it goes, and when something changes for it."""
        course = body.course
        speed, goal, _ = (course.moves.get(self._turning) or self._moves(course))[stretch]
        if speed > 0:
            if speed == body.speed_um_ms and goal == body.goal:
                return  # it is on its way there already
            due_us = now_us - (lead - course.points[goal]) * 1000 // speed
        elif speed and lead > 0:
            if speed == body.speed_um_ms and goal == body.goal:
                return
            to_um = course.points[goal] - 1 if goal else 0  # just behind it: a sensor there is free
            due_us = now_us - (to_um - lead) * 1000 // -speed
        else:
            goal, speed, due_us = 0, 0, NEVER
        body.stretch, body.lead_um, body.since_us = stretch, lead, now_us
        body.speed_um_ms, body.goal, body.due_us = speed, goal, due_us
        if speed:
            self._agenda.at(due_us, self._reached, body)

    def _reached(self, body: CardGroup) -> None:
        now = self._agenda.now_us
        if body.due_us != now:
            return  # something else has happened to it meanwhile
        course, goal = body.course, body.goal
        if body.speed_um_ms < 0:
            if goal:
                self._go(body, goal - 1, course.points[goal] - 1, now)
            else:
                self._go(body, 0, 0, now)
            for sensor, change in course.edges[goal]:
                self._cover(sensor, -change)
        elif goal == course.last:
            body.due_us = NEVER
            self.bodies.remove(body)
            for sensor in course.covers[goal - 1]:
                self._cover(sensor, -1)
            self._deliver(body)
            self.draw()
        else:
            speed, next_goal, takes_us = (course.moves.get(self._turning) or self._moves(course))[goal]
            if speed > 0:  # as ``_go`` does, which is for bodies that are anywhere
                body.stretch, body.lead_um, body.since_us = goal, course.points[goal], now
                body.speed_um_ms, body.goal, body.due_us = speed, next_goal, now + takes_us
                self._agenda.after(takes_us, self._reached, body)
            else:
                self._go(body, goal, course.points[goal], now)
            for sensor, change in course.edges[goal]:  # as ``_cover`` does
                covering = self._covering[sensor] = self._covering[sensor] + change
                if covering == (change > 0):
                    self._edge(sensor, covering)
            if goal == course.gap and self._first.velocity_um_ms > 0:
                self.draw()

    def _cover(self, sensor: int, change: int) -> None:
        """One body more or less covers a sensor."""
        covering = self._covering[sensor] = self._covering[sensor] + change
        if covering == (change > 0):
            self._edge(sensor, covering)

    def _course(self, body: CardGroup) -> Course:
        key = body.length_um, body.stuck_at_um, body.drag_percent
        course = self._courses.get(key)
        if course is None:
            course = self._courses[key] = self._lay(*key)
        return course

    def _lay(self, length_um: int, stuck_at_um: int | None, drag_percent: int) -> Course:
        """The course of a body of a length that sticks somewhere or nowhere."""
        loose_um = self._rollers[-1][1] + length_um
        gap_um = length_um + machine_constants.GAP_UM
        found = {0, self._end_um, gap_um}
        for _, where_um in self._sensors + self._rollers:
            found |= {where_um, where_um + length_um}
        stuck_um = NEVER if stuck_at_um is None else stuck_at_um
        found.add(stuck_um)
        points = sorted(each for each in found if 0 <= each <= self._end_um)
        covers = [
            tuple(sensor for sensor, where_um in self._sensors if where_um <= lead < where_um + length_um)
            for lead in points
        ]
        edges: list[tuple[tuple[int, int], ...]] = [()]
        for before, after in pairwise(covers):
            freed = [(sensor, -1) for sensor in before if sensor not in after]
            edges.append((*freed, *((sensor, 1) for sensor in after if sensor not in before)))
        looked_at = {gap_um, stuck_um, self._end_um}
        return Course(
            points,
            [
                [roller for roller, nip_um in reversed(self._rollers) if nip_um <= lead < nip_um + length_um]
                for lead in points
            ],
            covers,
            edges,
            [bool(edge) or point in looked_at for edge, point in zip(edges, points, strict=True)],
            bisect_right(points, loose_um - 1),
            points.index(gap_um) if gap_um in points else len(points),
            points.index(stuck_um) if stuck_um in points else len(points),
            len(points) - 1,
            drag_percent,
        )
