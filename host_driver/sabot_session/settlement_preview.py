"""What a round pays, before the dealer says that the wagers are settled.

In mini baccarat the dealer settles after the cards are known, by what the screen shows. The procedure
computes the amounts as its act will; the record gets them with the dealer's act.
"""

from dataclasses import replace

from sabot_session import row_data as d
from sabot_session.round_history import Round
from sabot_session.session import TableSession


def with_preview(session: TableSession, each: Round) -> Round:
    """The round with what its wagers will pay; as it is if that is settled or cannot be known yet."""
    playing = session.procedure.table.memory.round
    if each.facts.settled is not None or playing is None or playing.round_id != each.round_id:
        return each
    due = session.procedure.round_end.due()
    if due is None:
        return each
    lines = (d.ResultLine.model_validate(line, strict=False) for line in due)
    return replace(each, facts=replace(each.facts, settled=d.Settled(lines=tuple(lines))))
