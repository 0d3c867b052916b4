"""A floor for the wall's model: tables that beat, fall silent and need people, on a clock of the test."""

from collections.abc import Iterable
from typing import Any

from sabot_floor.payloads import Alarm, ChainBeat, Heartbeat
from sabot_floor.wall.alarm_book import Wish
from sabot_floor.wall.table_state import TableState
from sabot_floor.wall.wall_model import JudgedFloor, JudgedTable, WallModel
from sabot_table.rule_texts import FloorLevel

EPOCH_US = 1_800_000_000_000_000
HASH = "0" * 64


def entry(table: str, number: int = 1, **told: Any) -> dict[str, Any]:
    """A table's state as it publishes it; ``device`` and others replace what a table in play says."""
    return {
        "v": 1,
        "table": table,
        "pit": "1",
        "level": "all",
        "claim": 1,
        "run": "r1",
        "number": number,
        "at_s": 1_800_000_000,
        "device": {"serial": "S1", "up": True, "shoe": "ready", "shuffler": "idle", "faults": []},
        "name": table.upper(),
        "game": "three-card",
        "state": "betting",
        "dealer": "d1",
        "round": 12,
        "last_round": 11,
        "needs": [],
        "packs": [],
        "called": False,
        **told,
    }


def need(kind: str, *roles: str, words: str = "") -> dict[str, Any]:
    """A need of a table."""
    found = {"id": f"{kind}-1", "kind": kind, "roles": list(roles), "clause": "", "since_s": 5}
    return {**found, "words": words} if words else found


def beat_of(table: str, rows: int = 10, published: int = 10, waiting_s: int = 0, **told: Any) -> Heartbeat:
    """A heartbeat; ``rows`` are on the table's disk."""
    chain = ChainBeat(source="s", n=rows, hash=HASH, count=rows, published=published, waiting_s=waiting_s)
    known: dict[str, Any] = {"claim": 1, "run": "r1", "state": 1, **told}
    return Heartbeat(table=table, at_us=0, level=FloorLevel.ALL, chains={"device": chain}, **known)


class FloorOfTables:
    """The model, a clock, and a bucket that takes wishes by compare-and-set."""

    def __init__(self, *tables: str) -> None:
        self.now_s = 1000.0
        self.model = WallModel(now_s=self.now_s)
        self.model.connected(self.now_s)
        self.tables = list(tables)
        self.mute: set[str] = set()
        self.revision = 0
        self.bucket: dict[tuple[str, str], tuple[int, Alarm]] = {}
        self.raised: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        for each in tables:
            self.tell(each)
        self.pass_s(2)

    @property
    def utc_us(self) -> int:
        return EPOCH_US + int(self.now_s * 1e6)

    def tell(self, table: str, **told: Any) -> None:
        """A table writes its state."""
        state = entry(table, **{"number": 1, **told})
        self.model.hear_state(TableState.model_validate(state, strict=False), self.now_s)

    def pass_s(self, seconds: float, beat_s: float = 2.0) -> JudgedFloor:
        """Time passes; every table that is not mute beats."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s = min(end_s, self.now_s + beat_s)
            for each in self.tables:
                if each not in self.mute:
                    self.model.hear_beat(beat_of(each), self.now_s)
            self.look()
        return self.floor()

    def look(self) -> None:
        """The wall judges, and its wishes are carried out."""
        for wish in self.model.wishes(self.floor(), self.now_s, self.utc_us):
            assert self.write(wish)

    def write(self, wish: Wish) -> bool:
        """Compare and set; whether the entry was the expected one."""
        key = wish.alarm.table, wish.alarm.kind
        if self.bucket.get(key, (0, None))[0] != wish.expected:
            return False
        self.revision += 1
        if wish.alarm.ended_us is not None:
            self.ended.append(key)
        elif wish.alarm.taken_by is None and key not in self.open_alarms():
            self.raised.append(key)
        self.bucket[key] = self.revision, wish.alarm
        self.model.hear_alarm(wish.alarm, self.revision, self.now_s, self.utc_us)
        return True

    def open_alarms(self) -> list[tuple[str, str]]:
        return [key for key, (_, alarm) in self.bucket.items() if alarm.ended_us is None]

    def floor(self) -> JudgedFloor:
        return self.model.judge(self.now_s)

    def table(self, name: str) -> JudgedTable:
        return next(each for each in self.floor().tables if each.name == name)

    def order(self) -> list[str]:
        return [each.name for each in self.floor().tables]

    def kinds(self, name: str) -> list[str]:
        return [each.kind for each in self.table(name).attentions]


def names(count: int) -> Iterable[str]:
    """So many tables."""
    return (f"t{each}" for each in range(1, count + 1))
