"""The act about notes of the floor: a person at the table has read one."""

from dataclasses import dataclass

from sabot_session.act_base import Act, D, F


@dataclass(frozen=True, slots=True)
class ReadNote(Act):
    """A person at the table has read a note of the floor: it leaves the screen."""

    NAME = "read_note"
    ROLES = (D, F)

    note_id: str


ACTS: tuple[type[Act], ...] = (ReadNote,)
