"""What a round pays, before the dealer says that the wagers are settled.

In mini baccarat the dealer settles after the cards are known, by what the screen shows. The amounts are
computed as the procedure will compute them; the record gets them with the dealer's act.
"""

from dataclasses import replace

from sabot_session import row_data as d
from sabot_session.round_history import Round
from sabot_session.session import TableSession
from sabot_table.cards import card
from sabot_table.coup import Coup
from sabot_table.errors import TableError
from sabot_table.ruleset import ROYAL_9
from sabot_table.settlement import CardSource, settle


def with_preview(session: TableSession, each: Round) -> Round:
    """The round with what its wagers will pay; as it is if that is settled or cannot be known yet."""
    table = session.procedure.table
    playing = table.memory.round
    hands = {it.of: tuple(card(name) for name in it.cards or ()) for it in each.hands}
    player, banker = hands.get(d.HandOf.PLAYER), hands.get(d.HandOf.BANKER)
    if each.facts.settled is not None or not player or not banker:
        return each
    if playing is None or playing.round_id != each.round_id or each.facts.bets is None:
        return each
    if each.facts.bets.wagers is None:
        return each
    meters = table.meters()
    if meters is not None:
        meters = meters.with_contribution(sum(made.get(ROYAL_9, 0) for made in playing.wagers.values()))
    try:
        settled = settle(
            table.rules,
            playing.wagers,
            Coup(player, banker),
            CardSource.READER,
            playing.forfeits,
            playing.abandoned,
            meters,
            playing.must_hit_seat,
        )
    except TableError:
        return each  # the act will say why
    lines = (d.ResultLine.model_validate(line.to_json(), strict=False) for line in settled.lines)
    return replace(each, facts=replace(each.facts, settled=d.Settled(lines=tuple(lines))))
