"""Statements about shuffles with their sources: a journal, JSON lines of a command, the device itself.

A shuffle is not proved if two sources contradict each other, even if its numbers fit.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from sabot_driver.device_values import face_number
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import parse_serial
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import (
    Booted,
    DropReason,
    GapReason,
    ShuffleCommitted,
    ShuffleDropped,
    ShuffleRevealable,
    ShuffleRevealed,
    ShuffleWith,
)
from sabot_session import row_data as d
from sabot_session.record import RecordReader
from sabot_session.row_kinds import data_of

UNKNOWN_LIFE = b""
"""The life of a source that does not tell the memory id."""
LARGEST = {"deck": 0xFFFFFFFF, "cards": 0xFFFF}
"""The largest numbers that a device can tell."""
REVEAL = " (reveal)"  # marks what was told only once the order was no secret any more


class BadEvidence(SabotError):
    """A file that cannot be read as evidence of shuffles."""

    advice = "Give a journal, a table's record, or lines of 'sabot play --json' or 'sabot fairness --json'."


@dataclass
class ShuffleStatements:
    """All statements about one shuffle: for each subject, the value that each source gave."""

    shuffle_id: int
    memory_id: bytes = UNKNOWN_LIFE
    """The life of the device's memory that it belongs to."""
    statements: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, what: str, value: Any, source: str) -> None:
        """Add one statement of one source. A source that gives two values contradicts itself.

        `BadEvidence` for a number that no device tells.
        """
        most = LARGEST.get(what)
        if most is not None and not 0 <= value <= most:
            raise BadEvidence(f"{source}: shuffle {self.shuffle_id} cannot have the {what} {value}")
        by = self.statements.setdefault(what, {})
        if source in by and by[source] != value:
            source += " (again)"
        by[source] = value

    def value_of(self, what: str) -> Any:
        """The value of a subject from its first source; None if no source has it."""
        by = self.statements.get(what)
        return next(iter(by.values())) if by else None

    def value_before_reveal(self, what: str) -> Any:
        """The value from a source that had it before the reveal; None if there is none."""
        by = self.statements.get(what, {})
        return next((value for source, value in by.items() if not source.endswith(REVEAL)), None)

    def contradictions(self) -> list[str]:
        """One sentence for each subject on which two sources differ."""
        found = []
        for what, by in self.statements.items():
            sources = list(by)
            for other in sources[1:]:
                if by[other] != by[sources[0]]:
                    found.append(f"the {what} is not the same in {sources[0]} and {other}")
        return found


class ShuffleEvidence:
    """The statements about all shuffles of one device.

    A device that lost its memory, or an emulated one that was started anew, counts shuffles from 1 again. The
    memory id tells these lives apart: shuffle 1 of one life is not shuffle 1 of the next.
    """

    def __init__(self) -> None:
        self.shuffles: dict[tuple[bytes, int], ShuffleStatements] = {}
        self.lives: list[bytes] = []
        """Memory ids that sources tell, oldest first."""
        self.serials: dict[str, bytes] = {}
        self.device_of: dict[bytes, bytes] = {}
        """The serial number of the device that each life belongs to, where a table's record tells it."""
        self.complete: list[str] = []
        """Those who would know of every shuffle between the first and the last they name."""
        self.lost_events = 0

    def shuffle(self, shuffle_id: int, memory_id: bytes = UNKNOWN_LIFE) -> ShuffleStatements:
        """The statements about one shuffle of one life; `BadEvidence` for a number that no shuffle has."""
        if not 0 <= shuffle_id <= LARGEST["deck"]:
            raise BadEvidence(f"no shuffle has the number {shuffle_id}")
        if memory_id and memory_id not in self.lives:
            self.lives.append(memory_id)
        return self.shuffles.setdefault((memory_id, shuffle_id), ShuffleStatements(shuffle_id, memory_id))

    def ordered(self) -> list[ShuffleStatements]:
        """All shuffles, life by life, each life by number."""
        places = {memory_id: place for place, memory_id in enumerate([*self.lives, UNKNOWN_LIFE])}
        return [self.shuffles[key] for key in sorted(self.shuffles, key=lambda key: (places[key[0]], key[1]))]

    def missing(self) -> list[tuple[bytes, int, int]]:
        """Shuffles that no witness knows of, between the first and the last of a life: life, first, last.

        A forged number may leave out almost all numbers there are, so they are ranges.
        """
        if not self.complete:
            return []
        found = []
        for life in [*self.lives, UNKNOWN_LIFE]:
            known = sorted(number for memory_id, number in self.shuffles if memory_id == life)
            found += [(life, one + 1, next_ - 1) for one, next_ in pairwise(known) if next_ > one + 1]
        return found

    def join_lives(self) -> None:
        """Find the life of what sources without a memory id told.

        With one life there is no choice. With more, the commitment decides; a shuffle whose commitment no
        life has goes to the newest life that has its number, where the contradiction shows.
        """
        for key in [key for key in self.shuffles if key[0] == UNKNOWN_LIFE]:
            told = self.shuffles[key]
            having = [life for life in self.lives if (life, key[1]) in self.shuffles]
            if not having:
                if len(self.lives) != 1:
                    continue
                having = self.lives
            mine = told.value_of("commitment")
            fitting = [
                life
                for life in having
                if mine is not None
                and (life, key[1]) in self.shuffles
                and self.shuffles[life, key[1]].value_of("commitment") == mine
            ]
            home = self.shuffle(key[1], (fitting or having)[-1])
            for what, by in told.statements.items():
                for source, value in by.items():
                    home.add(what, value, source)
            del self.shuffles[key]

    # -- a journal ------------------------------------------------------------------------------

    def read_journal(self, path: Path) -> None:
        """Commitments and drops as the device told them, nonces as they were sent."""
        source = path.name
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
                meta = dict(db.execute("SELECT name, value FROM meta"))
                events = db.execute(
                    "SELECT memory_id, is_gap, message, body, gap_size FROM events ORDER BY id"
                ).fetchall()
                commands = db.execute(
                    "SELECT memory_id, message, body, outcome FROM commands ORDER BY number"
                ).fetchall()
        except sqlite3.Error as error:
            raise BadEvidence(f"{path}: {error}") from error
        try:
            if "serial" in meta:
                self.serials[source] = bytes(memoryview(meta["serial"]))
            for memory_id, is_gap, message, body, gap_size in events:
                if not is_gap:
                    self.add_event(message, body, source, bytes(memory_id))
                elif message != GapReason.MEMORY_LOST:  # that one lies between two lives
                    self.lost_events += gap_size or 1
            for memory_id, message, body, outcome in commands:
                if message == ShuffleWith.ID and outcome == "done":
                    begun = ShuffleWith.unpack(body)
                    self.shuffle(begun.shuffle_id, bytes(memory_id)).add("nonce", begun.nonce, source)
        except (FieldError, TypeError, ValueError) as error:
            raise BadEvidence(f"{path}: {error}") from error
        if not self.lost_events:
            self.complete.append(source)

    def read_record(self, path: Path) -> None:
        """What a table kept of its shuffles before each reveal, what was revealed, and the cards it saw."""
        source = path.name
        shuffle_of: dict[int, tuple[bytes, int]] = {}  # by pack
        played: dict[int, tuple[bytes, int]] = {}  # by round
        memory_id, serial = UNKNOWN_LIFE, b""
        with RecordReader(path) as record:
            for each in record.all_rows():
                data = data_of(each.row)
                match data:
                    case d.Identified():
                        self.serials[source] = serial = parse_serial(data.serial)
                    case d.MachineSwapped():
                        self.serials[source] = serial = parse_serial(data.after)
                    case d.ShuffleCommitted():
                        memory_id = bytes.fromhex(data.memory_id)
                        if serial:
                            self.device_of.setdefault(memory_id, serial)
                        told = self.shuffle(data.shuffle_id, memory_id)
                        told.add("deck", data.pack_id, source)
                        told.add("commitment", bytes.fromhex(data.commitment), source)
                    case d.ShuffleStarted() if data.shuffle_id is not None:
                        shuffle_of[data.pack_id] = (memory_id, data.shuffle_id)
                    case d.RoundOpened() if data.pack_id in shuffle_of:
                        played[each.row.round_id] = shuffle_of[data.pack_id]
                    case d.MachineStarted():
                        self._started_anew(memory_id, source)
                    case d.ShuffleRevealed():
                        self._add_revealed_row(data, source)
                    case d.Exposed() if each.row.kind == "cards_read" and each.row.round_id in played:
                        cards = [name for hand in data.hands for name in hand.cards or ()]
                        life, number = played[each.row.round_id]
                        came_out = cards_of(name.replace("10", "T") for name in cards)
                        self.shuffle(number, life).add("cards that came out", came_out, source)

    def _add_revealed_row(self, data: d.ShuffleRevealed, source: str) -> None:
        """A row of a reveal: commitment and nonce are what the table had kept before it."""
        told = self.shuffle(data.shuffle_id, bytes.fromhex(data.memory_id))
        told.add("deck", data.pack_id, source)
        told.add("cards", data.cards, source + REVEAL)
        told.add("commitment", bytes.fromhex(data.commitment), source)
        told.add("nonce", bytes.fromhex(data.nonce), source)
        told.add("seed", bytes.fromhex(data.seed), source + REVEAL)
        told.add("slots", tuple(data.slots), source + REVEAL)

    def add_event(self, message: int, body: bytes, source: str, memory_id: bytes) -> None:
        """An event of the device, as it came, in one life of its memory."""
        if message == ShuffleCommitted.ID:
            made = ShuffleCommitted.unpack(body)
            told = self.shuffle(made.shuffle_id, memory_id)
            told.add("deck", made.deck_id, source)
            told.add("commitment", made.commitment, source)
        elif message == ShuffleDropped.ID:
            gone = ShuffleDropped.unpack(body)
            told = self.shuffle(gone.shuffle_id, memory_id)
            told.add("drop", DropReason(gone.reason).name.lower(), source)
        elif message == ShuffleRevealable.ID:
            number = ShuffleRevealable.unpack(body).shuffle_id
            self.shuffle(number, memory_id).add("revealable", True, source)
        elif message == Booted.ID:
            self._started_anew(memory_id, source)

    def _started_anew(self, memory_id: bytes, source: str) -> None:
        """The device never stores a seed: what this source told of before is revealed now or never."""
        for told in self.shuffles.values():
            if told.memory_id == memory_id and source in told.statements.get("commitment", {}):
                told.add("started anew", True, source)

    # -- the device -----------------------------------------------------------------------------

    def add_reveal(
        self, shown: ShuffleRevealed, placed: Iterable[int], source: str, memory_id: bytes
    ) -> None:
        """What a device answered when it was asked to reveal a shuffle."""
        told, source = self.shuffle(shown.shuffle_id, memory_id), source + REVEAL
        for what, value in (
            ("deck", shown.deck_id), ("cards", shown.cards), ("commitment", shown.commitment),
            ("seed", shown.seed), ("nonce", shown.nonce), ("slots", tuple(placed)),
        ):  # fmt: skip
            told.add(what, value, source)

    # -- lines ----------------------------------------------------------------------------------

    def read_lines(self, lines: Iterable[str], source: str) -> None:
        """Objects of JSON, one a line, as commands write them; what tells of no shuffle is passed over."""
        hands: dict[int, list[int]] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                said = json.loads(line)
                if isinstance(said, dict):
                    self._line(said, source, hands)
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
                raise BadEvidence(f"{source}, line {number}: {error!r}") from error
        for shuffle_id, cards in hands.items():
            self.shuffle(shuffle_id).add("cards that came out", tuple(cards), source)

    def _line(self, said: Mapping[str, Any], source: str, hands: dict[int, list[int]]) -> None:
        event = said.get("event")
        if isinstance(said.get("serial"), str):
            self.serials.setdefault(source, parse_serial(said["serial"]))
        if event == "shuffle_committed":
            told = self.shuffle(int(said["shuffle_id"]))
            told.add("deck", int(said["deck_id"]), source)
            told.add("commitment", bytes.fromhex(said["commitment"]), source)
            if "nonce" in said:
                told.add("nonce", bytes.fromhex(said["nonce"]), source)
        elif event == "shuffle_revealed":
            told, source = self.shuffle(int(said["shuffle_id"])), source + REVEAL
            told.add("deck", int(said["deck_id"]), source)
            told.add("cards", int(said["cards"]), source)
            for what in ("commitment", "seed", "nonce"):
                told.add(what, bytes.fromhex(said[what]), source)
            told.add("slots", tuple(map(int, said["placed"])), source)
        elif event == "shuffle_dropped":
            self.shuffle(int(said["shuffle_id"])).add("drop", str(said["reason"]), source)
        elif event == "deck_fed":
            self.shuffle(int(said["shuffle_id"])).add("cards fed", cards_of(said["cards"]), source)
        elif event == "deck_out":
            self.shuffle(int(said["shuffle_id"])).add("cards that came out", cards_of(said["cards"]), source)
        elif event == "round" and said.get("shuffle_id") and said.get("hands"):
            dealt = [card for hand in said["hands"] for card in hand]
            hands.setdefault(int(said["shuffle_id"]), []).extend(cards_of(dealt))


def cards_of(names: Iterable[int | str]) -> tuple[int, ...]:
    """Cards as numbers, from numbers or names; ValueError for what is no card."""
    return tuple(each if isinstance(each, int) else face_number(each) for each in names)
