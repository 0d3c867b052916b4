"""The results of the shoe in play, for the roads of mini baccarat. Only settled rounds with wagers count."""

from dataclasses import dataclass, field
from typing import Literal

from sabot_table.cards import card
from sabot_table.procedure.memory import RoundState, TableMemory
from sabot_table.procedure.packs import IN_SHOE

Result = Literal["banker", "player", "tie"]
MOST = 200  # rounds of a shoe; eight decks give about 80


@dataclass
class ShoeResults:
    """Who won each round of a shoe, by round id in the order of play."""

    pack_id: int = 0
    by_round: dict[int, Result] = field(default_factory=dict)


def result_of(player: list[str], banker: list[str]) -> Result:
    """Which hand of a coup counts more."""
    points = [sum(card(each).value for each in hand) % 10 for hand in (player, banker)]
    return "tie" if points[0] == points[1] else "player" if points[0] > points[1] else "banker"


def note(results: ShoeResults, playing: RoundState) -> None:
    """Take a round that was settled now; one of another shoe begins anew."""
    if playing.void_clause or playing.simulated or not playing.player or not playing.banker:
        return
    if results.pack_id != playing.pack_id:
        results.pack_id, results.by_round = playing.pack_id, {}
    if len(results.by_round) < MOST:
        results.by_round[playing.round_id] = result_of(playing.player, playing.banker)


def forget_if_over(results: ShoeResults, memory: TableMemory) -> None:
    """A pack that is no longer in the shoe has no roads."""
    inside = {each.pack_id for each in memory.packs if each.state in IN_SHOE}
    if results.pack_id and results.pack_id not in inside:
        results.pack_id, results.by_round = 0, {}
