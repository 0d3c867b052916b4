"""What faces show of a table: a snapshot as JSON, and the changes since an earlier one.

A card is in a snapshot only once the procedure knows it, and the procedure learns cards only after the dealer
exposed them. The format has a version; a face that knows another version says so and shows nothing.
"""

import json
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sabot_protocol.host.messages import Fault, Place, ShoeState, ShufflerState
from sabot_session.needs import Need
from sabot_session.offers import offers
from sabot_table.procedure.memory import PackState

if TYPE_CHECKING:
    from sabot_session.session import TableSession
    from sabot_session.session_step import SessionStep

VERSION = 1
MOST_CHANGES = 256  # that a reader may be behind; one who is further gets a full snapshot


def snapshot(session: "TableSession") -> dict[str, Any]:
    """The table as it stands. Each top-level part is replaced as a whole when it changes."""
    state, table = session.state, session.procedure.table
    dealer = state.dealer
    return {
        "version": VERSION,
        "table": {
            "name": session.name,
            "state": table.state,
            "rule_text": session.rules.text,
            "ruleset": session.rules.name,
            "dealer": None if dealer is None else dealer.person,
            "method": str(table.method),
            "coup": not table.three_card,
            "seated": list(table.memory.seated),
            "seats": list(session.rules.clockwise()),
            "wagers": list(session.rules.offered),
            "bets": {str(seat): dict(made) for seat, made in state.bets.items()},
            "bets_known": state.bets_known,
        },
        "needs": [_need(each) for each in session.needs()],
        "offers": [
            {"act": each.act, "roles": [str(role) for role in each.roles], "clause": each.clause}
            for each in offers(session)
        ],
        "device": _device(session),
        "packs": [_pack(session, each) for each in table.packs()],
        "round": round_snapshot(session),
        "last_round": state.last_round,
        "results": list(state.results.by_round.values()),
        "meters": _meters(session),
        "countersign": list(state.countersign),
        "disputes": [
            {"row": each.row, "round_id": each.round_id, "why": each.why} for each in state.disputes
        ],
        "corrections": [
            {"row": each.row, "round_id": each.round_id, "dealer": each.dealer} for each in state.corrections
        ],
        "called": state.called,
        "notes": [asdict(each) for each in state.notes],
        "announce": _announce(session),
        "notice": session.notice,
        "newest_row": state.rows,
    }


def _announce(session: "TableSession") -> str:
    """What the dealer says aloud now (MDM 8.D(3), 9.A); empty once the table went on."""
    said = session.state.announcement
    return said.text if said is not None and said.state == session.procedure.table.state else ""


def _meters(session: "TableSession") -> dict[str, int]:
    """The progressive meters in cents, by name; none where the rule set has no progressive wager."""
    meters = session.procedure.table.meters()
    return {} if meters is None else {name: each.cents for name, each in meters.by_name.items()}


def _need(need: Need) -> dict[str, Any]:
    return {
        "id": need.id,
        "kind": str(need.kind),
        "roles": [str(each) for each in need.roles],
        "words": need.words,
        "clause": need.clause,
        "acts": list(need.acts),
        "sensed": need.sensed,
        "since_s": need.since_s,
        "seen": need.seen,
        "details": dict(need.details),
    }


def _pack(session: "TableSession", pack: PackState) -> dict[str, Any]:
    hours, held = session.procedure.table.hours(), session.state.holds.get(pack.pack_id)
    return {
        "pack_id": pack.pack_id,
        "back": pack.back,
        "state": pack.state,
        "must_leave": pack.must_leave,
        "cards": session.procedure.table.pack_cards,
        "counted": pack.counted,
        "until_s": None if hours is None else pack.opened_s + hours * 3600,
        "hours_warned": session.state.warned.get(pack.pack_id),
        "held": "" if held is None else held.why,
        "held_round": None if held is None else held.round_id,
    }


def _device(session: "TableSession") -> dict[str, Any]:
    device = session.state.device
    return {
        "serial": device.serial,
        "up": device.up,
        "busy": session.awaits_device(),
        "shoe": ShoeState(device.shoe).name.lower(),
        "shuffler": ShufflerState(device.shuffler).name.lower(),
        "in_shoe": device.in_shoe,
        "in_shuffler": device.in_shuffler,
        "faults": [
            {
                "fault": Fault(each.fault).name.lower(),
                "place": Place(each.place).name.lower(),
                "cards": each.cards,
                "steps": each.steps,
            }
            for each in device.faults
        ],
        "emulated": session.state.simulated_people,
    }


def round_snapshot(session: "SessionStep") -> dict[str, Any] | None:
    """The round in play; None between rounds."""
    playing, progress = session.procedure.table.memory.round, session.state.round
    if playing is None or progress is None:
        return None
    settled: Any = playing.settlement
    return {
        "round_id": playing.round_id,
        "pack_id": playing.pack_id,
        "wagers": {str(seat): dict(made) for seat, made in playing.wagers.items()},
        "stacks": list(playing.stacks),
        "count": progress.count,
        "stub": progress.stub,
        "exposed": progress.exposed_by is not None,
        "dealer": list(playing.dealer) or None,
        "hands": {str(seat): list(hand) for seat, hand in playing.hands.items()} or None,
        "player": list(playing.player) or None,
        "banker": list(playing.banker) or None,
        "simulated": playing.simulated,
        "source": playing.source,
        "void_clause": playing.void_clause,
        "void_why": playing.void_why,
        "settlement": None if settled is None else settled["settlement"],
        "due": session.procedure.round_end.due(),
        "wagers_known": playing.wagers_known,
        "cards_known": playing.cards_known,
        "held": session.state.holds[playing.pack_id].why if playing.pack_id in session.state.holds else "",
    }


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since a cursor: the parts of the snapshot that differ, or all of it (``full``)."""

    cursor: str
    full: bool
    parts: Mapping[str, Any]


class ChangeStream:
    """Keeps the last changes of a snapshot in bounded memory. Cursors of another run get a full snapshot."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._number = 0
        self._newest: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._kept: deque[tuple[int, tuple[str, ...]]] = deque(maxlen=MOST_CHANGES)

    @property
    def cursor(self) -> str:
        """The newest state."""
        return f"{self._run}.{self._number}"

    def publish(self, newest: dict[str, Any]) -> bool:
        """Take the newest snapshot; whether anything differs."""
        texts = {name: json.dumps(part, sort_keys=True) for name, part in newest.items()}
        changed = tuple(name for name, text in texts.items() if self._texts.get(name) != text)
        if not changed:
            return False
        self._newest, self._texts = newest, texts
        self._number += 1
        self._kept.append((self._number, changed))
        return True

    def changes(self, after: str | None) -> Changes | None:
        """What changed since a cursor; None if nothing did. Without a cursor, or after a gap, everything."""
        number = self._number_of(after)
        if number == self._number:
            return None
        if number is None or not self._kept or self._kept[0][0] > number + 1:
            return Changes(self.cursor, True, self._newest)
        names = {name for at, some in self._kept if at > number for name in some}
        return Changes(self.cursor, False, {name: self._newest[name] for name in sorted(names)})

    def _number_of(self, cursor: str | None) -> int | None:
        run, _, number = (cursor or "").partition(".")
        if run != self._run or not (number.isascii() and number.isdigit()) or len(number) > 18:
            return None
        return int(number) if int(number) <= self._number else None
