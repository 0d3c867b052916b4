"""Every phase of a day, kept as the session saved it, and every event that a device could tell in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

from tests.session.acted_table import NOW_S, Register

from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Event
from sabot_session.record import SqliteRecord
from sabot_session.row_kinds import check_row
from sabot_session.rows import NumberedRow, Row, SavedSession
from sabot_session.session import TableSession
from sabot_session.session_state import SessionState, restore
from sabot_table.ruleset import load

EVENTS: list[Any] = [each for each in messages.BY_NAME.values() if issubclass(each, Event)]
NUMBERS = {
    "cards": (3, 0, 2, 52), "count": (52, 0, 51, 312), "expected": (52, 312), "stack": (1, 2, 9),
    "draw": (1, 2, 5), "stub": (40, 0), "shuffle_id": (1, 99), "stack_cards": (3, 1), "decks": (1, 8),
}  # fmt: skip
rules_of = cache(load)


@dataclass(frozen=True)
class Phase:
    """A moment of a day: the name of the rule set, and the state that a session saved."""

    rules: str
    saved: str

    def state(self) -> SessionState:
        """The saved state."""
        return restore(rules_of(self.rules), self.saved)


class PhaseRecord(SqliteRecord):
    """A record in memory that keeps one saved state of each phase of the day."""

    def __init__(self, rules: str) -> None:
        super().__init__(None)
        self.rules = rules
        self._phases: dict[tuple[object, ...], Phase] = {}

    @property
    def phases(self) -> list[Phase]:
        """What the day has been through, in its order."""
        return list(self._phases.values())

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """Keep the state, if the day has not been in this phase before."""
        phase = Phase(self.rules, saved.state)
        self._phases.setdefault(self._of(phase.state()), phase)
        return super().commit(rows, saved)

    @staticmethod
    def _of(state: SessionState) -> tuple[object, ...]:
        playing, progress, device = state.memory.round, state.round, state.device
        in_round: tuple[object, ...] = ()
        if playing is not None and progress is not None:
            asked = (progress.opened, progress.device_done, progress.exposed_by is None)
            in_round = (len(playing.stacks), playing.dealt, len(playing.player), asked)
        packs = tuple(each.state for each in state.memory.packs)
        request = state.outbox[0].name if state.outbox else ""
        return (state.memory.state, int(device.shoe), int(device.shuffler), request, packs, in_round)


class RowsInMemory:
    """The least record that a session needs."""

    record_id = "memory"

    def __init__(self, saved: str) -> None:
        self.saved = SavedSession(saved, 0)
        self.kept: list[Row] = []

    def load(self) -> SavedSession:
        """What was saved last."""
        return self.saved

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """Check the rows like a record on disk, and keep them."""
        self.kept += [check_row(each) for each in rows]
        self.saved = saved
        return len(self.kept)

    def act(self, act_id: str) -> NumberedRow | None:
        """No act is given twice here."""
        return None

    def rows(self, after: int = 0, most: int = 1000) -> Sequence[NumberedRow]:
        """The rows before the phase are not kept."""
        return []

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """The rows of a round since the phase."""
        return []


def session_in(phase: Phase) -> tuple[TableSession, RowsInMemory]:
    """A session in a phase, with its machine linked."""
    record = RowsInMemory(phase.saved)
    session = TableSession(rules_of(phase.rules), record, Register(), nonce=lambda _: bytes(32))
    session.state.device.up = True
    session.tick(NOW_S)
    return session, record


def events_in(phase: Phase) -> Iterator[Event]:
    """Every kind of event: with this table's round and packs and with others, every value of its enums."""
    state = phase.state()
    rounds = [state.memory.rounds, 0, state.memory.rounds + 1]
    decks = [*(each.pack_id for each in state.memory.packs), 0, 99]
    for kind in EVENTS:
        choices = {name: _values(name, hint, rounds, decks) for name, hint in _fields(kind)}
        usual = {name: values[0] for name, values in choices.items()}
        yield kind(**usual)
        for name, values in choices.items():
            for value in values[1:]:
                yield kind(**{**usual, name: value})


@cache
def _fields(kind: Any) -> list[tuple[str, Any]]:
    """Name and type of each field of an event."""
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


def _values(name: str, hint: Any, rounds: list[int], decks: list[int]) -> list[Any]:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    if name == "round_id":
        return rounds
    if name == "deck_id":
        return decks
    plain: dict[Any, list[Any]] = {int: list(NUMBERS.get(name, (1, 0))), str: ["x"], bytes: [bytes(32)]}
    return plain.get(hint, [()])
