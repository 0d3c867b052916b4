"""What the machine told and the rules have no place for: on record as sensed, and a need for the floor.

A report of the machine cannot be refused: what it senses has happened. If the procedure refuses what
follows from a report, the session takes the report alone. It writes the refusal into a row and asks the
floor to look.
No round opens before the floor has countersigned that row. Every other act stays possible.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sabot_session import acts
from sabot_session.errors import BadRow
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.outcomes import ActRefused
from sabot_session.rows import Actor, Json
from sabot_session.session_state import SessionState, UnexplainedReport
from sabot_table.errors import TableError
from sabot_table.procedure import TableRole

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

UNFIT = (TableError, ActRefused, BadRow)
"""The typed refusals that a report can meet. Any other error is a defect and ends the session."""
MOST_OPEN = 16  # needs of this kind at once; a machine that tells nonsense must not fill the saved state
LONGEST = 400  # characters of a refusal on record


def note(session: "SessionStep", actor: Actor, what: str, error: Exception, *, once: bool = False) -> None:
    """Write down what did not fit. ``once``: not again while the same is open."""
    state, playing = session.state, session.procedure.table.memory.round
    why = str(error)[:LONGEST]
    same = any((each.what, each.why) == (what, why) for each in state.unexplained.values())
    if same and once:
        return
    asked = not same and len(state.unexplained) < MOST_OPEN
    if asked:
        state.unexplained[session.next_row] = UnexplainedReport(what, why, getattr(error, "clause", ""))
    data: dict[str, Json] = {"what": what, "why": why, "countersign": asked}
    session.row("unexplained", actor, data, round_id=0 if playing is None else playing.round_id)


def needs(state: SessionState) -> Iterator[NeedForm]:
    """The floor looks at the table and countersigns."""
    for row, each in state.unexplained.items():
        words = f"'{each.what}' does not fit this table: {each.why}. Look at the cards and the machine"
        details: dict[str, Json] = {"row": row, "what": each.what, "why": each.why}
        names = (acts.Countersign.NAME,)
        yield NeedForm(NeedKind.UNEXPLAINED, (TableRole.FLOOR,), words, each.clause, names, str(row), details)


def check_none(state: SessionState) -> None:
    """Refuse to begin a round while the floor has not looked."""
    for row, each in state.unexplained.items():
        words = f"a round cannot begin: '{each.what}' of the machine does not fit the table (row {row})"
        raise ActRefused(f"{words}; the floor looks at the table and countersigns first")
