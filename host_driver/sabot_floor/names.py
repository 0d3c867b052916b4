"""Names on the floor: subjects, the stream, the buckets and their keys (docs/floor.md)."""

import re
from dataclasses import dataclass

from sabot_floor.errors import BadName

DEVICE, RECORD = "device", "record"
CHAINS = (DEVICE, RECORD)
"""The two chains of a table."""
WHOLE_FLOOR = "floor"
"""Stands for a table in alarms of the whole site; no table has this name."""
_TOKEN = re.compile(r"[a-z0-9-]{1,32}")


def check_name(name: str, what: str) -> str:
    """The name, if a subject can hold it; `BadName` if not."""
    if not _TOKEN.fullmatch(name):
        raise BadName(f"the {what} '{name}'")
    return name


def check_table(name: str) -> str:
    """The name of a table; `BadName` if it cannot be one."""
    if name == WHOLE_FLOOR:
        raise BadName(f"the table '{name}': this name stands for the whole floor", "Choose another name.")
    return check_name(name, "table")


@dataclass(frozen=True, slots=True)
class SiteNames:
    """The names of one site."""

    site: str

    def __post_init__(self) -> None:
        check_name(self.site, "site")

    @property
    def stream(self) -> str:
        """The stream of rows."""
        return f"sabot_{self.site}_rows"

    @property
    def state_bucket(self) -> str:
        """The bucket with state, claim and archived position of each table."""
        return f"sabot_{self.site}_state"

    @property
    def alarm_bucket(self) -> str:
        """The bucket of alarms."""
        return f"sabot_{self.site}_alarms"

    def rows(self, table: str = "*", chain: str = "*") -> str:
        """The subject of a chain's rows."""
        return f"sabot.{self.site}.row.{table}.{chain}"

    def beat(self, table: str = "*") -> str:
        """The subject of a table's heartbeat."""
        return f"sabot.{self.site}.beat.{table}"

    def alarm(self, table: str = "*") -> str:
        """The subject of a table's own alarms."""
        return f"sabot.{self.site}.alarm.{table}"

    @property
    def archive_beat(self) -> str:
        """The subject of the archive's heartbeat."""
        return f"sabot.{self.site}.archive"

    def ask(self, table: str) -> str:
        """The subject by which the archive asks for rows again."""
        return f"sabot.{self.site}.ask.{table}"

    def note(self, table: str) -> str:
        """The subject of notes for a table's screen."""
        return f"sabot.{self.site}.note.{table}"

    def noted(self, table: str = "*") -> str:
        """The subject by which a table says what became of a note."""
        return f"sabot.{self.site}.noted.{table}"

    def key_subject(self, key: str) -> str:
        """The subject of a key in the bucket of states."""
        return f"$KV.{self.state_bucket}.{key}"

    def alarm_subject(self, table: str, kind: str) -> str:
        """The subject of an alarm's entry."""
        return f"$KV.{self.alarm_bucket}.{table}.{kind}"

    def table_of(self, subject: str) -> str | None:
        """The table that a subject of this site names; None if it is another subject."""
        parts = subject.split(".")
        if parts[:2] != ["sabot", self.site] or len(parts) not in (4, 5):
            return None
        return parts[3] if _TOKEN.fullmatch(parts[3]) else None


def state_key(table: str) -> str:
    """The key of a table's state."""
    return f"state.{table}"


def claim_key(table: str) -> str:
    """The key of a table's claim."""
    return f"claim.{table}"


def archived_key(table: str) -> str:
    """The key of a table's archived position."""
    return f"archived.{table}"


def bucket_stream(bucket: str) -> str:
    """The stream behind a bucket."""
    return f"KV_{bucket}"
