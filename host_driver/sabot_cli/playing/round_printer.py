"""What is told of rounds and of the whole run: a line for people, an object for programs."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.markup import escape

from sabot_cli.output import Output
from sabot_cli.playing.device_control import NAMES
from sabot_cli.playing.round_play import PlayedRound
from sabot_table.cards import DECK_CARDS
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import SettlementLine, WagerOutcome


class RoundPrinter:
    """Tells of rounds, each with its number."""

    def __init__(self, output: Output, rules: RuleSet, settled: bool) -> None:
        self._output = output
        self._rules = rules
        self._settled = settled
        """Whether wagers were asked for; without, only cards and counts are shown."""
        self.rounds = 0
        self.void = 0
        self.simulated = 0
        self.by_deck: dict[str, int] = {}

    def tell_round(self, played: PlayedRound) -> None:
        """One round, after its reveal, and its settlement."""
        if played.simulated:
            self.simulated += 1
        else:
            self.rounds += 1
            self.void += played.void_reason is not None
        name = "?" if played.back is None else NAMES[played.back]
        self.by_deck[name] = self.by_deck.get(name, 0) + 1
        mini = self._rules.game is GameKind.MINI
        fields = self._fields(played, name, mini)
        text = self._mini_text(played, name) if mini else self._text(played, name)
        if played.void_reason is not None:
            why = played.void_reason.replace("_", " ")
            clause = f" ({played.void_clause})" if self._settled else ""
            text += f"  [red]void: {why}{clause}[/red]"
        if self._settled:
            fields["ruleset_sha256"] = self._rules.sha256
            fields["settlement"] = played.settlement
            text += "".join(f"\n    {escape(each)}" for each in _settled(played.settlement or ()))
        self._output.tell("simulated_round" if played.simulated else "round", text, **fields)

    def _fields(self, played: PlayedRound, name: str, mini: bool) -> dict[str, Any]:
        ended, void = played.ended, played.void_reason is not None
        proved = ended.count if ended is not None and not void and not mini else None
        return {
            "round": None if played.simulated else self.rounds,
            "round_id": played.round_id,
            "deck": name,
            "deck_id": played.deck_id,
            "shuffle_id": played.shuffle_id,
            "seats": ["player", "banker"] if mini else [*played.seats, "dealer"],
            "betting": played.seats,
            "hands": played.hands,
            "stub": None if ended is None or mini else ended.stub,
            "count": proved,
            "expected": DECK_CARDS * self._rules.cards.decks,
            "card_source": played.source if played.hands is not None else None,
            "void": void,
            "void_reason": played.void_reason,
            "void_clause": played.void_clause if self._settled else None,
            "verdict": None if ended is None else ended.verdict.name.lower(),
            "stacks": played.stacks,
        }

    def _text(self, played: PlayedRound, name: str) -> str:
        text = f"round {self.rounds} {name:<4}"
        if played.hands is not None:
            text += "  " + "  ".join(" ".join(hand) for hand in played.hands)
            text += "  (typed)" if played.source == "typed" else ""
        ended = played.ended
        if ended is not None and played.void_reason is None:
            dealt = HAND_CARDS * (len(played.seats) + 1)
            text += f"  {dealt} + stub {ended.stub} = [bold]{ended.count}[/bold]"
        return text

    def _mini_text(self, played: PlayedRound, name: str) -> str:
        text = f"simulated round {name:<4}" if played.simulated else f"round {self.rounds} {name:<4}"
        if played.hands is not None:
            player, banker = (" ".join(hand) for hand in played.hands)
            text += f"  Player {player}  Banker {banker}"
            text += "  (typed)" if played.source == "typed" else ""
        return text


def _settled(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each seat: every wager with what it won or lost, and all of them together."""
    by_seat: dict[int, list[SettlementLine]] = {}
    for each in lines:
        line = SettlementLine(**{**each, "outcome": WagerOutcome(each["outcome"])})
        by_seat.setdefault(line.seat, []).append(line)
    for seat, made in by_seat.items():
        words = ", ".join(_wager(line) for line in made)
        yield f"seat {seat} {_money(sum(line.net_cents for line in made)):>9}:  {words}"


def _wager(line: SettlementLine) -> str:
    """One wager: its net in money, and by which line where there are several."""
    net = _money(line.net_cents)
    if line.outcome is WagerOutcome.WIN:
        by = "" if line.line == "win" else f" {line.line}"
        return f"{line.wager} {net}{by}"
    return (
        f"{line.wager} {net}" if line.outcome is WagerOutcome.LOSE else f"{line.wager} {line.outcome} {net}"
    )


def _money(cents: int) -> str:
    return f"{cents / 100:+.2f}" if cents else "0"
