"""A table's entry in the bucket of states, as the wall reads it (docs/floor.md).

Everything beyond the machine may be missing: the rule text says what leaves a table. Kinds and states are
plain text here, so that a newer table is shown and not refused.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sabot_floor.payloads import Level, Name, Number, Payload

CLOSED = "closed"
Text = Annotated[str, Field(max_length=1000)]
MOST = 64


class Told(BaseModel):
    """A part of the entry; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, cache_strings="keys")


class ActiveFault(Told):
    """A fault that stops a half of the machine."""

    fault: Text
    place: Text = ""
    cards: int | None = None


class MachineState(Told):
    """The machine of the table."""

    serial: Text = ""
    up: bool
    shoe: Text = ""
    shuffler: Text = ""
    faults: Annotated[tuple[ActiveFault, ...], Field(max_length=MOST)] = ()
    emulated: bool = False


class NeedOfTable(Told):
    """What must happen at the table, and who may do it."""

    id: Text
    kind: Text
    roles: Annotated[tuple[Text, ...], Field(max_length=MOST)] = ()
    clause: Text = ""
    since_s: int = 0
    words: Text = ""


class PackOfTable(Told):
    """A pack at the table."""

    pack_id: int
    back: Text = ""
    state: Text = ""
    must_leave: Text = ""
    counted: bool = False
    until_s: int | None = None


class TableState(Payload):
    """A table as it stood when it wrote the entry."""

    table: Name
    pit: Text = ""
    level: Level
    takes_notes: bool = False
    claim: Number
    run: Text
    number: Number
    at_s: Number
    device: MachineState
    name: Text = ""
    game: Text = ""
    rule_text: Text = ""
    ruleset: Text = ""
    state: Text = ""
    dealer: Text | None = None
    round: Number = 0
    last_round: Number = 0
    needs: Annotated[tuple[NeedOfTable, ...], Field(max_length=MOST)] = ()
    packs: Annotated[tuple[PackOfTable, ...], Field(max_length=MOST)] = ()
    called: bool = False
    notes: Number = 0
    """Notes that wait at the table's screen."""
    disputes: Number = 0
    countersign: Number = 0
    newest_row: Number = 0

    @property
    def closed(self) -> bool:
        """Whether nobody plays here; a table that tells only of its machine is never known to be closed."""
        return self.state == CLOSED and not self.round
