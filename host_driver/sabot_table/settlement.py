"""Settlement of a round: the outcome of each wager with its clause, in the rule text's order."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeVar

from sabot_table import hand_ranking
from sabot_table.cards import Card, check_possible
from sabot_table.coup import Coup
from sabot_table.errors import ImpossibleCards, RuleViolation
from sabot_table.money import payout
from sabot_table.paytables import LOSE, Award, Paytable
from sabot_table.progressive import Meters
from sabot_table.rule_texts import GameKind, SettlementOrder
from sabot_table.ruleset import ROYAL_9, RuleSet
from sabot_table.wager_acceptance import Wagers, check_seat, check_wagers
from sabot_table.wagers import evaluators
from sabot_table.wagers.royal_9 import KingNine, RoyalHands, royal_9

MUST_HIT = "must-hit"
MUST_HIT_CLAUSE = "MDM 12.N"
CHECK_CONTROLLER = "check the progressive controller"


class CardSource(StrEnum):
    """Who told the cards: the exit reader, or the dealer who typed them in."""

    READER = "reader"
    DEALER = "dealer"


class WagerOutcome(StrEnum):
    """What becomes of a wager."""

    WIN = "win"
    LOSE = "lose"
    PUSH = "push"
    RETURNED = "returned"  # the round is void
    FORFEIT = "forfeit"  # the player broke the rules of the hand (MD3 11.A(5))
    ABANDONED = "abandoned"  # the player left the table (MD3 7.B(3))


TAKEN = (WagerOutcome.LOSE, WagerOutcome.FORFEIT, WagerOutcome.ABANDONED)


@dataclass(frozen=True, slots=True)
class DealtHands:
    """A round of Three Card Baccarat: the dealer's hand and the seats'."""

    dealer: tuple[Card, ...]
    seats: Mapping[int, tuple[Card, ...]]


@dataclass(frozen=True, slots=True)
class SettlementLine:
    """What becomes of one wager. ``pays_cents`` is won besides the stake, before the vigorish."""

    seat: int
    wager: str
    stake_cents: int
    outcome: WagerOutcome
    line: str  # the paytable's line, or why there is none
    pays_cents: int
    vig_cents: int
    clause: str

    @property
    def net_cents(self) -> int:
        """What the player has more than before the round; negative when lost."""
        if self.outcome in TAKEN:
            return -self.stake_cents
        return self.pays_cents - self.vig_cents

    def to_json(self) -> dict[str, object]:
        """One object of a round's settlement."""
        return {
            "seat": self.seat,
            "wager": self.wager,
            "stake_cents": self.stake_cents,
            "outcome": str(self.outcome),
            "line": self.line,
            "pays_cents": self.pays_cents,
            "vig_cents": self.vig_cents,
            "clause": self.clause,
        }

    def __str__(self) -> str:
        vigorish = f", vigorish {self.vig_cents}" if self.vig_cents else ""
        what = {
            WagerOutcome.WIN: f"wins {self.pays_cents}{vigorish}",
            WagerOutcome.PUSH: "pushes",
            WagerOutcome.RETURNED: "is returned",
        }.get(self.outcome, f"is taken ({self.outcome})")
        return f"seat {self.seat}: {self.wager} {self.stake_cents} {what}: {self.line} ({self.clause})"


@dataclass(frozen=True, slots=True)
class WagerResult:
    """What a wager of a seat pays whose stake is not known, if it was made."""

    seat: int
    wager: str
    outcome: WagerOutcome
    line: str
    odds: str  # such as "8 to 1"; "" where nothing is paid
    clause: str

    def to_json(self) -> dict[str, object]:
        """One object of a round's settlement; the amounts are not known."""
        return {
            "seat": self.seat,
            "wager": self.wager,
            "outcome": str(self.outcome),
            "line": self.line,
            "odds": self.odds,
            "stake_cents": None,
            "pays_cents": None,
            "vig_cents": None,
            "clause": self.clause,
        }


@dataclass(frozen=True, slots=True)
class SettlementStep:
    """One thing the dealer does with a wager."""

    seat: int
    wager: str
    do: Literal["take", "vigorish", "mark", "pay", "return"]
    cents: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """A round's settlement. Void rounds give every wager back; ``clause`` then says why."""

    ruleset: str
    ruleset_sha256: str
    lines: tuple[SettlementLine, ...]
    source: CardSource | None  # None: no card was needed
    clause: str | None
    meters: Meters | None  # as they stand afterwards
    vigorish_first: bool
    marked: bool

    @property
    def void(self) -> bool:
        """Whether the round is void."""
        return self.clause is not None

    def vigorish_by_seat(self) -> dict[int, int]:
        """What each seat owes for this round."""
        owed: dict[int, int] = {}
        for line in self.lines:
            if line.vig_cents:
                owed[line.seat] = owed.get(line.seat, 0) + line.vig_cents
        return owed

    def net_by_seat(self) -> dict[int, int]:
        """What each seat has more, or less, than before the round."""
        net: dict[int, int] = {}
        for line in self.lines:
            net[line.seat] = net.get(line.seat, 0) + line.net_cents
        return net

    def steps(self) -> tuple[SettlementStep, ...]:
        """What the dealer does, in order; the vigorish comes first where the text says so (MDM 11.B)."""
        steps = []
        for line in self.lines:
            if line.outcome in TAKEN:
                steps.append(SettlementStep(line.seat, line.wager, "take", line.stake_cents))
            elif line.outcome is WagerOutcome.WIN:
                due = [SettlementStep(line.seat, line.wager, "pay", line.pays_cents)]
                if line.vig_cents:
                    do: Literal["mark", "vigorish"] = "mark" if self.marked else "vigorish"
                    vigorish = SettlementStep(line.seat, line.wager, do, line.vig_cents)
                    due.insert(0 if self.vigorish_first else 1, vigorish)
                steps += due
            else:
                steps.append(SettlementStep(line.seat, line.wager, "return", line.stake_cents))
        return tuple(steps)

    def to_json(self) -> dict[str, object]:
        """All of it, for a round's record."""
        return {
            "ruleset": self.ruleset,
            "ruleset_sha256": self.ruleset_sha256,
            "void": self.void,
            "void_clause": self.clause,
            "cards_from": None if self.source is None else str(self.source),
            "settlement": [line.to_json() for line in self.lines],
        }


def settle(
    rules: RuleSet,
    wagers: Wagers,
    play: DealtHands | Coup,
    source: CardSource = CardSource.DEALER,
    forfeits: Collection[int] = (),
    abandoned: Collection[int] = (),
    meters: Meters | None = None,
    must_hit_seat: int | None = None,
) -> Settlement:
    """Settle a round. Wrong wagers and impossible cards raise, and nothing is settled."""
    check_wagers(rules, wagers)
    check_play(rules, wagers, play)
    for act, seats in (("forfeit", forfeits), ("abandon", abandoned)):
        for seat in seats:
            check_seat(rules, seat)
            if act not in rules.fixed.rows:
                what = f"taking the wagers of seat {seat}"
                raise RuleViolation(what, rules.fixed.absent_clause(act), "settle them like all others")
    judged = [
        (seat, wager, cents, lines_met(rules, wager, seat, play))
        for seat, made in wagers.items()
        for wager, cents in made.items()
    ]
    lines, awards = [], []
    for seat, wager, cents, met in judged:
        taken = (
            WagerOutcome.FORFEIT
            if seat in forfeits
            else WagerOutcome.ABANDONED
            if seat in abandoned
            else None
        )
        if taken is not None:
            lines.append(_taken(rules, seat, wager, cents, taken))
        elif wager == ROYAL_9:
            line, award = _award_line(rules, seat, cents, met, meters)
            lines.append(line)
            awards += [] if award is None else [award]
        else:
            lines.append(_line(rules, rules.paytable(wager), seat, cents, met))
    if must_hit_seat is not None:
        line, award = _must_hit(wagers, must_hit_seat, meters)
        lines.append(line)
        awards.append(award)
    after = None if meters is None else meters.after(awards)
    return _settlement(rules, _in_order(rules, lines), source, None, after)


def results_of(
    rules: RuleSet,
    seats: Collection[int],
    play: DealtHands | Coup,
    forfeits: Collection[int] = (),
    abandoned: Collection[int] = (),
) -> tuple[WagerResult, ...]:
    """What each offered wager of each betting seat pays, where chips lie that the program does not know."""
    if isinstance(play, Coup):
        check_play(rules, {}, play)
    else:
        check_hands(rules, seats, play)
    found = []
    for seat in seats:
        taken = "forfeit" if seat in forfeits else "abandon" if seat in abandoned else ""
        for wager in rules.offered:
            found.append(_result(rules, wager, seat, play, taken))
    return _in_order(rules, found)


def _result(rules: RuleSet, wager: str, seat: int, play: DealtHands | Coup, taken: str) -> WagerResult:
    if taken:
        outcome = WagerOutcome.FORFEIT if taken == "forfeit" else WagerOutcome.ABANDONED
        return WagerResult(seat, wager, outcome, str(outcome), "", rules.fixed.clause(taken))
    paytable = rules.paytable(wager)
    name = paytable.line(lines_met(rules, wager, seat, play))
    if name == LOSE:
        return WagerResult(seat, wager, WagerOutcome.LOSE, LOSE, "", paytable.rule)
    odds = paytable.odds(name)
    if odds == 0:
        return WagerResult(seat, wager, WagerOutcome.PUSH, name, "", paytable.rule)
    said = f"{odds.numerator} to {odds.denominator}"
    if name in paytable.vigorish:
        said += ", 5 % vigorish marked" if rules.vigorish.collected == "marked" else ", less 5 % vigorish"
    return WagerResult(seat, wager, WagerOutcome.WIN, name, said, paytable.clause)


def settle_void(
    rules: RuleSet, wagers: Wagers, clause: str, why: str, meters: Meters | None = None
) -> Settlement:
    """A void round: every wager goes back, to the cent."""
    lines = [
        SettlementLine(seat, wager, cents, WagerOutcome.RETURNED, why, 0, 0, clause)
        for seat, made in wagers.items()
        for wager, cents in made.items()
    ]
    return _settlement(rules, _in_order(rules, lines), None, clause, meters)


def check_play(rules: RuleSet, wagers: Wagers, play: DealtHands | Coup) -> None:
    """Raise `ImpossibleCards` for hands that this game, these decks or these wagers cannot have."""
    if isinstance(play, Coup):
        if rules.game is not GameKind.MINI:
            raise ImpossibleCards(f"{rules.name} has a hand for every seat, not a Player's and a Banker's")
        check_possible(play.cards, rules.cards.decks)
        return
    check_hands(rules, [seat for seat, made in wagers.items() if made], play)


def check_hands(rules: RuleSet, betting: Collection[int], play: DealtHands) -> None:
    """Raise `ImpossibleCards` for hands that these betting seats or these decks cannot have."""
    if rules.game is not GameKind.THREE_CARD:
        raise ImpossibleCards(f"{rules.name} has a Player's and a Banker's Hand, not one for every seat")
    if set(play.seats) != set(betting):
        raise ImpossibleCards(
            f"seats {sorted(play.seats)} have hands and seats {sorted(betting)} have wagers; "
            "a hand goes to each betting seat and to no other"
        )
    check_possible((each for hand in (play.dealer, *play.seats.values()) for each in hand), rules.cards.decks)


def lines_met(rules: RuleSet, wager: str, seat: int, play: DealtHands | Coup) -> tuple[str, ...]:
    """The lines of a wager that a seat's round meets, the highest first."""
    if isinstance(play, DealtHands):
        return evaluators.SHOWDOWN[wager](hand_ranking.showdown(play.seats[seat], play.dealer))
    if wager == ROYAL_9:
        return royal_9(RoyalHands(play.first_four, *personal_king_nines(rules, seat)))
    if wager in evaluators.TOTALS:
        return evaluators.TOTALS[wager](play.totals)
    return evaluators.FIRST_FOUR[wager](play.first_four)


def personal_king_nines(rules: RuleSet, seat: int) -> tuple[KingNine, frozenset[KingNine]]:
    """A seat's own King-9, and those of the other seats."""
    assert rules.royal_9 is not None
    personal = rules.royal_9.king_nines()
    return personal[seat], frozenset(each for owner, each in personal.items() if owner != seat)


def best_award(paytable: Paytable, met: Sequence[str], meters: Meters) -> tuple[str, Award] | None:
    """The line met that pays most as the meters stand: the highest only."""
    listed = [(line, paytable.awards[line]) for line in met if line in paytable.awards]
    return max(listed, key=lambda each: meters.amount(each[1]), default=None)


def _line(rules: RuleSet, paytable: Paytable, seat: int, cents: int, met: Sequence[str]) -> SettlementLine:
    name = paytable.line(met)
    if name == LOSE:
        return SettlementLine(seat, paytable.wager, cents, WagerOutcome.LOSE, LOSE, 0, 0, paytable.rule)
    if paytable.odds(name) == 0:
        return SettlementLine(seat, paytable.wager, cents, WagerOutcome.PUSH, name, 0, 0, paytable.rule)
    pays, vigorish = payout(rules, paytable, name, cents, seat)
    return SettlementLine(
        seat, paytable.wager, cents, WagerOutcome.WIN, name, pays, vigorish, paytable.clause
    )


def _taken(rules: RuleSet, seat: int, wager: str, cents: int, outcome: WagerOutcome) -> SettlementLine:
    clause = rules.fixed.clause("forfeit" if outcome is WagerOutcome.FORFEIT else "abandon")
    return SettlementLine(seat, wager, cents, outcome, str(outcome), 0, 0, clause)


def _award_line(
    rules: RuleSet, seat: int, cents: int, met: Sequence[str], meters: Meters | None
) -> tuple[SettlementLine, tuple[Award, int] | None]:
    paytable = rules.paytable(ROYAL_9)
    if meters is None:
        raise RuleViolation(
            "a Royal 9 wager without meters", paytable.clause, "settle it with the table's meters"
        )
    best = best_award(paytable, met, meters)
    if best is None:
        return SettlementLine(seat, ROYAL_9, cents, WagerOutcome.LOSE, LOSE, 0, 0, paytable.rule), None
    name, award = best
    amount = meters.amount(award)
    return SettlementLine(seat, ROYAL_9, cents, WagerOutcome.WIN, name, amount - cents, 0, paytable.clause), (
        award,
        amount,
    )


def _must_hit(wagers: Wagers, seat: int, meters: Meters | None) -> tuple[SettlementLine, tuple[Award, int]]:
    if meters is None or MUST_HIT not in meters.by_name:
        raise RuleViolation("a Must Hit winner at a table without it", MUST_HIT_CLAUSE, CHECK_CONTROLLER)
    if ROYAL_9 not in wagers.get(seat, {}):
        what = f"seat {seat} as Must Hit winner has no Royal 9 wager"
        raise RuleViolation(what, MUST_HIT_CLAUSE, CHECK_CONTROLLER)
    award = Award(MUST_HIT, 100, 0)
    amount = meters.amount(award)
    return SettlementLine(seat, MUST_HIT, 0, WagerOutcome.WIN, "random winner", amount, 0, MUST_HIT_CLAUSE), (
        award,
        amount,
    )


Line = TypeVar("Line", SettlementLine, WagerResult)


def _in_order(rules: RuleSet, lines: Iterable[Line]) -> tuple[Line, ...]:
    """The text's order of settlement: MD3 11.B, WA3 order, MDM 11.B."""
    kinds = [*rules.offered, MUST_HIT]
    if rules.fixed.settlement.order is SettlementOrder.LOSERS_FIRST:
        return tuple(
            sorted(lines, key=lambda line: (line.outcome not in TAKEN, -line.seat, kinds.index(line.wager)))
        )
    clockwise = rules.fixed.settlement.order is SettlementOrder.CLOCKWISE
    seats = rules.clockwise() if clockwise else rules.clockwise()[::-1]
    return tuple(sorted(lines, key=lambda line: (seats.index(line.seat), kinds.index(line.wager))))


def _settlement(
    rules: RuleSet,
    lines: tuple[SettlementLine, ...],
    source: CardSource | None,
    clause: str | None,
    meters: Meters | None,
) -> Settlement:
    return Settlement(
        rules.name,
        rules.sha256,
        lines,
        source,
        clause,
        meters,
        vigorish_first=rules.fixed.settlement.order is SettlementOrder.LOSERS_FIRST,
        marked=rules.vigorish.collected == "marked",
    )
