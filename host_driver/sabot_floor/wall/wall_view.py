"""What the wall's pages show: JSON of what the model has judged. Each part is sent when it changes."""

from collections.abc import Callable
from typing import Any

from sabot_floor.names import CHAINS
from sabot_floor.wall.attention import (
    ARCHIVE_SILENT,
    FLOOR_BLIND,
    MACHINE_STOPPED,
    PERSON_NEEDED,
    PUBLISHER_BEHIND,
    TABLE_SILENT,
    fault_name,
    place_name,
    words_of,
)
from sabot_floor.wall.wall_model import Attention, Hearing, JudgedFloor, JudgedTable, Rank
from sabot_serve import phrases

Json = dict[str, Any]
Utc = Callable[[float], int]
"""UTC seconds of a time of the wall's monotonic clock."""
PART = "t."
"""What the name of a table's part begins with."""
VOIDED = "voided"
KINDS = {
    PERSON_NEEDED: "FLOOR NEEDED",
    MACHINE_STOPPED: "MACHINE STOPPED",
    TABLE_SILENT: "TABLE SILENT",
    PUBLISHER_BEHIND: "PUBLISHER BEHIND",
    FLOOR_BLIND: "FLOOR BLIND",
    ARCHIVE_SILENT: "ARCHIVE SILENT",
}
"""The word of an alarm; any other kind is shown by its name."""
TONES = {
    Rank.WAITS: "stop", Rank.TAKEN: "wait", Rank.LATER: "act", Rank.UNKNOWN: "unknown", Rank.FINE: "play",
    Rank.CLOSED: "closed",
}  # fmt: skip


def wall_view(floor: JudgedFloor, site: str, utc: Utc) -> Json:
    """The wall: the order of the tables, and a part for each."""
    return {
        "head": _head(floor, site, utc),
        "order": [each.name for each in floor.tables],
        **{PART + each.name: row_of(each, utc) for each in floor.tables},
    }


def table_view(floor: JudgedFloor, name: str, site: str, utc: Utc) -> Json:
    """One table's page."""
    found = next((each for each in floor.tables if each.name == name), None)
    return {
        "head": _head(floor, site, utc),
        "row": None if found is None else row_of(found, utc),
        "detail": None if found is None else _detail(found, utc),
    }


def _head(floor: JudgedFloor, site: str, utc: Utc) -> Json:
    ranks = [each.rank for each in floor.tables]
    blind = floor.blind
    return {
        "site": site,
        "connected": floor.connected,
        "blind": None if blind is None else {"words": blind.words, "since": utc(blind.since_s)},
        "tables": len(ranks),
        "counts": {str(rank): ranks.count(rank) for rank in Rank},
        "alarms": [_attention(each, utc) for each in floor.alarms],
        "emulated": any(each.state is not None and each.state.device.emulated for each in floor.tables),
    }


def row_of(table: JudgedTable, utc: Utc) -> Json:
    """A table in the wall's list."""
    state = table.state
    word, shown = _word(table)
    return {
        "name": table.name,
        "title": (state.name if state is not None else "") or table.name,
        "pit": "" if state is None else state.pit,
        "game": "" if state is None else state.game,
        "state": "" if state is None else state.state,
        "shown": shown,
        "word": word,
        "tone": _tone(table),
        "rank": str(table.rank),
        "hearing": str(table.hearing),
        "since": None if table.since_s is None else utc(table.since_s),
        "round": 0 if state is None else state.round,
        "dealer": "" if state is None else state.dealer or "",
        "attentions": [_attention(each, utc) for each in table.attentions],
    }


def _word(table: JudgedTable) -> tuple[str, str]:
    """The word of a table, and the word of its state alone."""
    state = table.state
    if state is None:
        shown = "NOT KNOWN"
    elif not state.state:
        shown = phrases.plain(state.device.shoe).upper()
    else:
        known = phrases.TABLE.get(state.state)
        shown = phrases.plain(state.state).upper() if known is None else known[0]
    if table.attentions:
        return kind_word(table.attentions[0].kind), shown
    if table.hearing is Hearing.OFF:
        return "OFF", "OFF"
    if table.hearing is Hearing.UNKNOWN:
        return "NOT HEARD", shown
    return shown, shown


def kind_word(kind: str) -> str:
    """The word of an alarm."""
    return KINDS.get(kind, phrases.plain(kind).upper())


def _tone(table: JudgedTable) -> str:
    if table.rank is Rank.WAITS and table.attentions[0].kind == PERSON_NEEDED:
        return "floor"
    if table.rank is Rank.FINE and table.state is not None and table.state.state == VOIDED:
        return "stop"  # as the table's own page shows it
    return TONES[table.rank]


def _attention(each: Attention, utc: Utc) -> Json:
    known = each.alarm
    return {
        "kind": each.kind,
        "word": kind_word(each.kind),
        "words": _sentence(each.words),
        "since": utc(each.since_s),
        "escalated": each.escalated,
        "table": None if known is None else known.alarm.table,
        "revision": None if known is None else known.revision,
        "taken_by": each.taken_by,
        "taken": None if known is None or known.taken_s is None else utc(known.taken_s),
    }


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _detail(table: JudgedTable, utc: Utc) -> Json:
    state, beat = table.state, table.beat
    return {
        "heard": None if table.heard_s is None else utc(table.heard_s),
        "told": None if state is None else state.at_s,
        "level": "" if state is None else str(state.level),
        "takes_notes": state is not None and state.takes_notes,
        "notes": 0 if state is None else state.notes,
        "rule_text": "" if state is None else state.rule_text,
        "ruleset": "" if state is None else state.ruleset,
        "needs": [] if state is None else [
            {"words": _sentence(words_of(each)), "clause": each.clause, "since": each.since_s}
            for each in state.needs
        ],
        "machine": None if state is None else {
            "serial": state.device.serial,
            "up": state.device.up,
            "shoe": phrases.plain(state.device.shoe),
            "shuffler": phrases.plain(state.device.shuffler),
            "faults": [
                {"words": _sentence(fault_name(each.fault)), "place": place_name(each.place),
                 "cards": each.cards}
                for each in state.device.faults
            ],
        },
        "packs": [] if state is None else [
            {"id": each.pack_id, "back": each.back, "state": phrases.plain(each.state),
             "must_leave": each.must_leave, "counted": each.counted, "until": each.until_s}
            for each in state.packs
        ],
        "last_round": 0 if state is None else state.last_round,
        "disputes": 0 if state is None else state.disputes,
        "countersign": 0 if state is None else state.countersign,
        "chains": [_chain(table, name) for name in CHAINS if beat is not None and name in beat.chains],
    }  # fmt: skip


def _chain(table: JudgedTable, name: str) -> Json:
    """How far a chain goes at the table, in the stream and in the archive."""
    assert table.beat is not None
    beat = table.beat.chains[name]  # type: ignore[index]
    archived = None if table.archived is None else table.archived.chains.get(name)  # type: ignore[call-overload]
    here = archived.n if archived is not None and archived.source == beat.source else 0
    return {
        "chain": name, "source": beat.source, "rows": beat.n, "published": beat.published, "archived": here,
        "waiting_s": beat.waiting_s,
    }  # fmt: skip
