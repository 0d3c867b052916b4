"""Rounds as the record tells them: every round is reconstructed from its rows alone (MD3 11.C).

Cards and wagers may be *not known* (chips on the layout, a hand that nobody typed). Such a round is complete
and names what is not known. A correction does not hide what it replaces: the older version stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol

from sabot_driver.errors import SabotError
from sabot_session import row_data as d
from sabot_session.row_kinds import data_of
from sabot_session.rows import Actor, NumberedRow
from sabot_table.cards import card
from sabot_table.coup import points
from sabot_table.procedure.vocabulary import Verdict
from sabot_table.settlement import CardSource

NOT_COUNTED = "not_counted"


class RoundUnknown(SabotError, LookupError):
    """The record has no round of this number."""

    advice = "'sabot rounds' lists the rounds of a day."


class RoundEnd(StrEnum):
    """How a round ended, as far as the record tells."""

    OPEN = "open"  # it goes on, or the record ends here
    SETTLED = "settled"
    VOID = "void"
    RETURNED = "returned"  # all wagers went back before the deal
    SIMULATED = "simulated"  # it had no wagers (MDM 13.D)


@dataclass(frozen=True, slots=True)
class Done:
    """Who did what: one row of the round."""

    number: int
    kind: str
    at_s: int
    actor: Actor
    clause: str


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What a correction can replace. None: no row tells it (yet)."""

    bets: d.Bets | None = None
    exposed: d.Exposed | None = None
    settled: d.Settled | None = None
    counted: d.StubCounted | None = None


@dataclass(frozen=True, slots=True)
class Replaced:
    """An older version of a round, and the row that replaced it."""

    number: int
    at_s: int
    floor: str
    dealer: str  # "" where the floor alone had cards typed again
    why: str
    before: RoundFacts


@dataclass(frozen=True, slots=True)
class Proposed:
    """A correction that a dealer proposed and the floor has neither confirmed nor declined."""

    number: int
    dealer: str
    told: d.CorrectionProposed

    def is_confirmed_by(self, correction: d.Correction) -> bool:
        """Whether a correction is this one: the row of a correction does not name the row of its proposal."""
        told = self.told
        mine = (self.dealer, told.why, told.bets, told.exposed, told.settled)
        theirs = (correction.dealer, correction.why, correction.bets, correction.exposed, correction.settled)
        return mine == theirs


@dataclass(frozen=True, slots=True)
class VoidReason:
    """Why a round is void and what goes back; ``give_back`` None: the wagers are not known."""

    clause: str
    why: str
    give_back: tuple[d.Wager, ...] | None
    at_s: int
    actor: Actor


@dataclass(frozen=True, slots=True)
class Dispute:
    """A dispute about a round; ``decision`` is "" while it is open."""

    number: int
    why: str
    serial: str
    surveillance: str = ""
    decision: str = ""
    machine_wrong: bool | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round, as its rows tell it."""

    round_id: int
    opened_s: int | None = None
    ended_s: int | None = None
    dealer: str = ""
    method: str = ""
    pack_id: int = 0
    serial: str = ""
    simulated: bool = False
    facts: RoundFacts = RoundFacts()
    void: VoidReason | None = None
    returned: bool = False
    older: tuple[Replaced, ...] = ()
    held: tuple[int, ...] = ()
    """Rows that hold the round's cards and are not released."""
    disputes: tuple[Dispute, ...] = ()
    to_countersign: tuple[int, ...] = ()
    """Rows that the floor has not countersigned."""
    proposed: tuple[Proposed, ...] = ()
    """Corrections that wait for the floor."""
    wagers_made: tuple[tuple[int, str, d.Wager], ...] = ()
    """Wagers as they were placed and withdrawn: row, kind, wager."""
    done: tuple[Done, ...] = ()

    @property
    def end(self) -> RoundEnd:
        """How the round ended."""
        if self.void is not None:
            return RoundEnd.VOID
        if self.returned:
            return RoundEnd.RETURNED
        if self.ended_s is None:
            return RoundEnd.OPEN
        return RoundEnd.SIMULATED if self.simulated else RoundEnd.SETTLED

    @property
    def verdict(self) -> Verdict | None:
        """What the count of the round's cards says; None if they were not counted or not judged."""
        return None if self.facts.counted is None else self.facts.counted.verdict

    @property
    def lines(self) -> tuple[d.ResultLine, ...]:
        """Each wager's result, as far as it is known."""
        return () if self.facts.settled is None else self.facts.settled.lines or ()

    @property
    def hands(self) -> tuple[d.Hand, ...]:
        """The hands that were exposed, with their points where the cards are known."""
        return () if self.facts.exposed is None else tuple(map(_with_points, self.facts.exposed.hands))

    @property
    def source(self) -> CardSource | None:
        """Who told the cards."""
        return None if self.facts.exposed is None else self.facts.exposed.source

    @property
    def not_known(self) -> tuple[str, ...]:
        """What people saw and the record does not know: "wagers", "cards", "results"."""
        bets, exposed, settled = self.facts.bets, self.facts.exposed, self.facts.settled
        found = {
            "wagers": bets is not None and bets.wagers is None,
            "cards": exposed is not None and any(each.cards is None for each in exposed.hands),
            "results": settled is not None and settled.lines is None,
        }
        return tuple(name for name, unknown in found.items() if unknown)

    @property
    def missing(self) -> tuple[str, ...]:
        """Rows that a finished round has and this one has not. Empty: the round is complete."""
        facts = self.facts
        needed = {"opening": self.opened_s is None, "end": self.ended_s is None}
        if self.end in (RoundEnd.SETTLED, RoundEnd.OPEN):
            needed |= {"bets": facts.bets is None, "settlement": facts.settled is None}
        if self.end not in (RoundEnd.VOID, RoundEnd.RETURNED):
            needed |= {"hands": facts.exposed is None}
        return tuple(name for name, lacks in needed.items() if lacks)

    @property
    def complete(self) -> bool:
        """Whether the record tells all of the round, the things that are *not known* named as such."""
        return not self.missing


class RoundRows(Protocol):
    """Where rounds are read from; `RecordReader` is one."""

    def round_ids(self, from_s: int = 0, until_s: int = 2**53) -> Sequence[int]:
        """Rounds by the time of their opening."""

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """All rows of one round, oldest first."""


@dataclass(frozen=True, slots=True)
class RoundFilter:
    """Which rounds to list; what is left empty does not filter."""

    day: date | None = None
    dealer: str = ""
    verdict: str = ""
    """A `Verdict`, "void", or "not_counted"."""
    zone: tzinfo = field(default=UTC)

    def times(self) -> tuple[int, int]:
        """From when to before when rounds were opened."""
        if self.day is None:
            return 0, 2**53
        begin = datetime.combine(self.day, time(), self.zone)
        end = datetime.combine(self.day + timedelta(days=1), time(), self.zone)
        return int(begin.timestamp()), int(end.timestamp())

    def takes(self, each: Round) -> bool:
        """Whether a round is listed."""
        if self.dealer and self.dealer != each.dealer:
            return False
        if not self.verdict:
            return True
        if self.verdict == RoundEnd.VOID:
            return each.void is not None
        return self.verdict == (each.verdict or NOT_COUNTED)


def read_round(record: RoundRows, round_id: int) -> Round:
    """One round of a record; `RoundUnknown` if it has none of this number."""
    rows = record.round_rows(round_id)
    if not rows or round_id < 1:
        raise RoundUnknown(f"the record has no round {round_id}")
    return build_round(rows)


def list_rounds(record: RoundRows, wanted: RoundFilter | None = None) -> Iterator[Round]:
    """The rounds that a filter takes, in the order of their opening."""
    wanted = wanted or RoundFilter()
    for round_id in record.round_ids(*wanted.times()):
        found = build_round(record.round_rows(round_id))
        if wanted.takes(found):
            yield found


def rounds_of(rows: Iterable[NumberedRow]) -> Mapping[int, Round]:
    """Every round that some rows tell of, by its number."""
    by_round: dict[int, list[NumberedRow]] = {}
    for each in rows:
        if each.row.round_id:
            by_round.setdefault(each.row.round_id, []).append(each)
    return {round_id: build_round(found) for round_id, found in by_round.items()}


def build_round(rows: Sequence[NumberedRow]) -> Round:
    """A round out of all its rows, oldest first; `BadRow` for a row that no record takes."""
    found = Round(rows[0].row.round_id)
    for each in rows:
        found = _after(found, each)
        row = each.row
        done = Done(each.number, row.kind, row.at_s, row.actor, row.clause)
        found = replace(found, done=(*found.done, done))
    return found


def _after(found: Round, each: NumberedRow) -> Round:
    """The round with one more row."""
    row, data = each.row, data_of(each.row)
    if getattr(data, "countersign", False):
        found = replace(found, to_countersign=(*found.to_countersign, each.number))
    match data:
        case d.RoundOpened():
            return replace(
                found,
                opened_s=row.at_s,
                dealer=data.dealer,
                method=str(data.method),
                pack_id=data.pack_id,
                serial=data.serial,
                simulated=data.simulated or row.kind == "begin_simulated",
            )
        case d.Wager():
            return replace(found, wagers_made=(*found.wagers_made, (each.number, row.kind, data)))
        case d.Bets():
            return _with(found, bets=data)
        case d.Exposed():
            return _exposed(found, each, data)
        case d.StubCounted():
            return _with(found, counted=data)
        case d.VerdictGiven() if found.facts.counted is not None:
            judged = {"verdict": data.verdict, "advice": data.advice or found.facts.counted.advice}
            return _with(found, counted=found.facts.counted.model_copy(update=judged))
        case d.Settled():
            return _with(found, settled=_settled(found.facts.settled, data))
        case d.Voided():
            reason = VoidReason(row.clause, data.why, data.give_back, row.at_s, row.actor)
            return replace(found, void=found.void or reason)
        case d.Correction():
            facts = RoundFacts(
                data.bets or found.facts.bets,
                data.exposed or found.facts.exposed,
                data.settled or found.facts.settled,
                data.counted or found.facts.counted,
            )
            confirmed = next((it for it in found.proposed if it.is_confirmed_by(data)), None)
            found = replace(found, proposed=tuple(it for it in found.proposed if it is not confirmed))
            return _replaced(found, each, data.dealer, data.why, facts)
        case d.CorrectionProposed():
            proposed = Proposed(each.number, row.actor.person, data)
            return replace(found, proposed=(*found.proposed, proposed))
        case d.DisputeOpened():
            opened = Dispute(each.number, data.why, data.serial or found.serial)
            return replace(found, disputes=(*found.disputes, opened))
        case d.DisputeDecided():
            decided = tuple(_decided(it, data) if it.number == data.row else it for it in found.disputes)
            return replace(found, disputes=decided)
        case d.OfRow() if row.kind == "countersign":
            left = tuple(number for number in found.to_countersign if number != data.row)
            return replace(found, to_countersign=left)
        case d.OfRow() if row.kind == "decline_correction":
            waiting = tuple(it for it in found.proposed if it.number != data.row)
            return replace(found, proposed=waiting)
        case d.OfRow() if row.kind == "release":
            return replace(found, held=tuple(number for number in found.held if number != data.row))
    match row.kind:
        case "hold":
            return replace(found, held=(*found.held, each.number))
        case "collect":
            return replace(found, ended_s=row.at_s)
        case "return_bets":
            return replace(found, ended_s=row.at_s, returned=True)
    return found


def _with(found: Round, **facts: d.RowData) -> Round:
    return replace(found, facts=replace(found.facts, **facts))  # type: ignore[arg-type]


def _exposed(found: Round, each: NumberedRow, data: d.Exposed) -> Round:
    """Hands one by one add up; all hands at once, or typed again, replace what was told before."""
    before = found.facts.exposed
    if each.row.kind == "expose_hand" and before is not None:
        hands = {(it.of, it.seat): it for it in before.hands + data.hands}
        both = d.Exposed(hands=tuple(hands.values()), source=data.source or before.source)
        return _with(found, exposed=both)
    if each.row.kind == "retype" and before is not None:
        return _replaced(found, each, "", "typed again", replace(found.facts, exposed=data))
    return _with(found, exposed=data)


def _settled(before: d.Settled | None, data: d.Settled) -> d.Settled:
    """Seats that are settled one by one add up. One seat that is not known makes the whole not known."""
    if before is None:
        return data
    lines = None if before.lines is None or data.lines is None else before.lines + data.lines
    return d.Settled(lines=lines, meters=data.meters or before.meters)


def _replaced(found: Round, each: NumberedRow, dealer: str, why: str, facts: RoundFacts) -> Round:
    row = each.row
    older = Replaced(each.number, row.at_s, row.actor.person, dealer, why, found.facts)
    return replace(found, facts=facts, older=(*found.older, older))


def _decided(dispute: Dispute, data: d.DisputeDecided) -> Dispute:
    return replace(
        dispute, surveillance=data.surveillance, decision=data.decision, machine_wrong=data.machine_wrong
    )


def _with_points(hand: d.Hand) -> d.Hand:
    if hand.cards is None or hand.points is not None:
        return hand
    return hand.model_copy(update={"points": points(card(each) for each in hand.cards)})
