"""A table that simulated people run through the session, and what its record must say at the end."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from sabot_driver import Credential
from sabot_driver.errors import SabotError
from sabot_driver.received_events import ReceivedEvent, parse_entry
from sabot_protocol.host.messages import ClearFault, Role, RoundEnded, RoundVoided
from sabot_session.outcomes import ActRefused
from sabot_session.record import RecordReader
from sabot_session.rows import Authentication, NumberedRow
from sabot_simulators.chips import PowerCut
from sabot_simulators.simulated_people import SimulatedPeople
from sabot_simulators.simulated_staff import SimulatedStaff
from sabot_simulators.whole_system.checks import note_sizes
from sabot_simulators.whole_system.session_program import SessionProgram
from sabot_simulators.whole_system.world import WholeSystem
from sabot_table.errors import RuleViolation
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

SECOND_US = 1_000_000
RULES = "md-three-card-baccarat"
SEATS = 3
PACE_US = (500_000, 4_000_000)
REACTION_MS = 700
STILL_US = 25 * 60 * SECOND_US  # without a row: people switch the machine off and on
GIVE_UPS = 3
PEOPLE_ACT = (Authentication.SIMULATED,)


class PeopleAtTheMachine(SimulatedPeople):
    """The simulated people's hands; they wait while the machine has no power."""

    def __init__(self, world: WholeSystem) -> None:
        super().__init__(world)
        self._world = world

    def _soon(self, action: Callable[[int], None], argument: int) -> None:
        self._world.machine.agenda.after(REACTION_MS * 1000, self._try, (action, argument))

    def look_again(self, refused: object) -> None:
        """The machine says that a fault is still there: look once more, and take out every card."""
        if isinstance(refused, ClearFault):
            self._soon(self._look, int(refused.fault))

    def _try(self, what: tuple[Callable[[int], None], int]) -> None:
        if self._world.machine.powered and self._world.truth.controller is not None:
            what[0](what[1])
        else:
            self._world.machine.agenda.after(SECOND_US, self._try, what)


class SessionTable:
    """One table from its opening to the end of the scenario's time, run by needs and acts."""

    def __init__(self, world: WholeSystem, folder: Path) -> None:
        self.world = world
        world.people = PeopleAtTheMachine(world)
        rules = load(RULES)
        self.path = folder / "table" / "record.db"
        self.program = SessionProgram(world, self.path, rules)
        self.program.on_refused = world.people.look_again
        key = world.person_key(Role.FLOOR), world.person_key(Role.SERVICE)
        wagers = {seat: made for seat, made in every_wager(rules).items() if seat <= SEATS}
        self._staff = SimulatedStaff(
            self.program,
            wagers,
            Credential(Role.FLOOR, key[0]),
            Credential(Role.SERVICE, key[1]),
            world.people.hands.__getitem__,
            method=DealingMethod.AUTOMATED_SHOE,
        )
        self._random = Random(f"{world.scenario.seed}/staff")
        self._act_us = 0
        self._rows = (0, 0)  # rows of the record, and since when there are so many
        self.rounds = 0
        self.stops = 0
        self.gave_up = 0

    def play(self) -> None:
        """Play until the time is over; half-way the device is left alone, if the scenario says so."""
        world = self.world
        ends_us = world.scenario.minutes * 60 * SECOND_US
        if world.scenario.days_alone:
            self._play_until(ends_us // 2)
            world.leave_alone(round(world.scenario.days_alone * 86_400))
            self._rows = (0, world.machine.agenda.now_us)
            ends_us += world.machine.agenda.now_us - ends_us // 2
        self._play_until(ends_us)

    def finish(self) -> None:
        """Let the session take in everything that the journal has."""
        needs = [f"{each.kind.value}: {each.words}" for each in self.program.needs()]
        self.world.note(f"needs at the end: {needs}; refused {self._staff.refused[-2:]}")
        for _ in range(60):
            self.program.step()
            self.world._pass(SECOND_US)

    def _play_until(self, ends_us: int) -> None:
        agenda = self.world.machine.agenda
        while agenda.now_us < ends_us:
            try:
                self.world.run_for(min(100_000, ends_us - agenda.now_us))
            except PowerCut:
                self.world.wait_for_power()
            self.program.step()
            if agenda.now_us >= self._act_us:
                self._act_us = agenda.now_us + self._random.randint(*PACE_US)
                self._meet_one()
            self._notice_standstill()

    def _meet_one(self) -> None:
        if not self.program.serves:
            return
        try:
            met = self._staff.meet_one()
        except (ActRefused, RuleViolation, SabotError) as error:
            self.world.note(f"people are refused: {type(error).__name__}")
            return
        if met is not None and met.kind.value == "bets":
            self.rounds += 1
            note_sizes(self.world)

    def _notice_standstill(self) -> None:
        """People who saw nothing happen for long switch the machine off and on; then they give up."""
        now_us, session = self.world.machine.agenda.now_us, self.program.session
        cursor = session.cursor if session is not None else self._rows[0]
        if cursor != self._rows[0]:
            self._rows = (cursor, now_us)
        elif now_us - self._rows[1] > STILL_US and self.gave_up < GIVE_UPS:
            self.gave_up += 1
            words = [each.words for each in self.program.needs()]
            self.world.note(f"people give up; needs {words}; refused {self._staff.refused[-2:]}")
            self._rows = (cursor, now_us)
            self.world.machine.repair()
            self.world.cut_power()
            self.world.wait_for_power()

    # -- checks ---------------------------------------------------------------------------------

    def check(self) -> None:
        """What the record must say: each act once, nothing that nobody did, the device's rounds."""
        world = self.world
        if not self.path.exists() and not self.program.taken:
            return
        with RecordReader(self.path) as record:
            rows = list(record.all_rows())
        if [each.number for each in rows] != list(range(1, len(rows) + 1)):
            world.problem("the numbers of the record's rows have a gap")
        self._check_acts(rows)
        self._check_rounds(rows)
        for each in rows:
            if each.row.kind == "unexplained":
                world.problem(f"the session could not explain: {each.row.data}")

    def _check_acts(self, rows: list[NumberedRow]) -> None:
        world, on_record = self.world, {each.row.act_id for each in rows if each.row.act_id}
        for act_id in sorted(on_record - set(self.program.given)):
            world.problem(f"the record has an act that nobody gave: {act_id}")
        for act_id in sorted(set(self.program.taken) - on_record):
            name = self.program.given[act_id]
            world.problem(f"act {name} was taken, and the record does not have it")
        acted: set[tuple[int, str]] = set()  # who gave an act in which round: what follows from it is theirs
        for each in rows:
            row, whose = each.row, (each.row.round_id, each.row.actor.person)
            if row.act_id or row.follows is not None:
                acted.add(whose)
            elif row.actor.how in PEOPLE_ACT and whose not in acted:
                world.problem(f"row {each.number} ({row.kind}) is a person's, without an act or a sensor")

    def _check_rounds(self, rows: list[NumberedRow]) -> None:
        """Each end of a round that the journal has is on record once, with the same outcome."""
        world, journal = self.world, self.world.pc.journal
        if journal is None:
            return
        told: Counter[tuple[str, int]] = Counter()
        for entry in journal.entries():
            event = parse_entry(entry)
            if isinstance(event, ReceivedEvent) and isinstance(event.message, RoundEnded | RoundVoided):
                what = "ended" if isinstance(event.message, RoundEnded) else "void"
                told[what, event.message.round_id] += 1
        opened = {each.row.round_id for each in rows if each.row.round_id}
        for (what, round_id), times in told.items():
            if round_id not in opened:
                world.problem(f"round {round_id} is {what} in the journal, and the record does not know it")
            if times > 1:
                world.problem(f"round {round_id} is {what} {times} times in the journal")


