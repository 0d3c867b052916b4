"""A round as people read it: whose hand, its points, who won, and what to pay, take and return in money."""

from collections.abc import Iterable, Iterator

from sabot_session import row_data as d
from sabot_session.round_export import net_cents
from sabot_session.round_history import Proposed, Round, RoundEnd
from sabot_table.cards import card
from sabot_table.hand_ranking import HAND_CARDS, HandCategory, rank_hand
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import TAKEN, WagerOutcome

GIVEN_BACK = (WagerOutcome.PUSH, WagerOutcome.RETURNED)
INDENT = "    "


def money(cents: int) -> str:
    """An amount, such as 12.50."""
    return f"{cents // 100}.{cents % 100:02d}"


def signed(cents: int) -> str:
    """What a player has more or less, such as -12.50."""
    sign = "+" if cents > 0 else "-" if cents < 0 else ""
    return sign + money(abs(cents))


def head(each: Round, back: str) -> str:
    """The first line: number, pack, and the count."""
    text = f"round {each.round_id} {back}".rstrip()
    counted = each.facts.counted
    if counted is not None and counted.stacks is not None and counted.stub is not None:
        text += f": {counted.stacks} dealt + stub {counted.stub} = {counted.stacks + counted.stub}"
        if counted.verdict is not None and counted.verdict != "correct":
            text += f" ({counted.verdict.replace('_', ' ')})"
    return text


def round_lines(each: Round, rules: RuleSet, back: str) -> list[str]:
    """All of a round, a fact a line; lines that belong to the one before are indented."""
    lines = [head(each, back)]
    hands = {(it.of, it.seat): it for it in each.hands}
    dealer = hands.get((d.HandOf.DEALER, 0))
    typed = " (typed)" if each.source == "dealer" else ""
    if dealer is not None:
        lines.append(f"  dealer  {_hand(dealer)}{typed}")
    for of in (d.HandOf.PLAYER, d.HandOf.BANKER):
        if (of, 0) in hands:
            lines.append(f"  {of:<6}  {_hand(hands[of, 0])}{typed}")
    if each.void is None and (d.HandOf.PLAYER, 0) in hands and (d.HandOf.BANKER, 0) in hands:
        lines.append(f"  {_side(hands[d.HandOf.PLAYER, 0], hands[d.HandOf.BANKER, 0])}")
    if each.simulated:
        lines.append("  simulated round: no wagers")
    if each.void is not None:
        lines.append(f"  VOID: {each.void.why} ({each.void.clause})")
        lines += _give_back(each)
    else:
        lines += _seats(each, rules, hands)
    if each.facts.settled is not None and each.facts.settled.lines is None:
        lines.append("  settled by the dealer; the amounts are not known")
    lines += _open_matters(each)
    return lines


def _hand(hand: d.Hand) -> str:
    if hand.cards is None:
        return "cards not known"
    return f"{' '.join(hand.cards):<11}  {_points(hand)}"


def _points(hand: d.Hand) -> str:
    cards = [card(each) for each in hand.cards or ()]
    if len(cards) == HAND_CARDS and hand.of in (d.HandOf.DEALER, d.HandOf.SEAT):
        rank = rank_hand(cards)
        if rank.kind is not HandCategory.POINTS:
            return str(rank)
    points = hand.points or 0
    return f"{points} point{'' if points == 1 else 's'}"


def _side(player: d.Hand, banker: d.Hand) -> str:
    """Which side of mini baccarat won."""
    if player.points is None or banker.points is None:
        return "cards not known"
    if player.points == banker.points:
        return "tie"
    return "Player wins" if player.points > banker.points else "Banker wins"


def _give_back(each: Round) -> Iterator[str]:
    assert each.void is not None
    if each.void.give_back is None:
        yield "  give every wager back; the amounts are not known"
        return
    by_seat: dict[int, list[d.Wager]] = {}
    for made in each.void.give_back:
        by_seat.setdefault(made.seat, []).append(made)
    for seat, wagers in sorted(by_seat.items()):
        total = sum(made.cents for made in wagers)
        yield f"  seat {seat}: give back {money(total)}"
        yield INDENT + ", ".join(f"{made.wager} {money(made.cents)}" for made in wagers)
    if not by_seat:
        yield "  nothing was wagered"


def _seats(each: Round, rules: RuleSet, hands: dict[tuple[d.HandOf, int], d.Hand]) -> Iterator[str]:
    by_seat: dict[int, list[d.ResultLine]] = {}
    for line in each.lines:
        by_seat.setdefault(line.seat, []).append(line)
    for seat, lines in by_seat.items():
        hand = hands.get((d.HandOf.SEAT, seat))
        parts = [f"  seat {seat:<2}"]
        if hand is not None:
            parts.append(f"{_hand(hand):<24}")
        won = _winner(lines, rules)
        if won:
            parts.append(f"{won:<11}")
        parts.append(_amounts(lines))
        yield " ".join(parts).rstrip()
        yield INDENT + ", ".join(map(_result, lines))


def _winner(lines: Iterable[d.ResultLine], rules: RuleSet) -> str:
    main = next((line for line in lines if line.wager in rules.main_wagers), None)
    if main is None or len(rules.main_wagers) > 1:
        return ""  # mini baccarat has wagers on both sides
    if main.outcome is WagerOutcome.WIN:
        return "player wins"
    return "dealer wins" if main.outcome is WagerOutcome.LOSE else str(main.outcome)


def _amounts(lines: Iterable[d.ResultLine]) -> str:
    pay = take = back = 0
    for line in lines:
        if line.stake_cents is None:
            return ""
        if line.outcome in TAKEN:
            take += line.stake_cents
        elif line.outcome in GIVEN_BACK:
            back += line.stake_cents
        else:
            pay += net_cents(line) or 0
    said = (("pay", pay), ("take", take), ("return", back))
    return ", ".join(f"{what} {money(cents)}" for what, cents in said if cents) or "pay nothing"


def _result(line: d.ResultLine) -> str:
    net = net_cents(line)
    if net is None:
        return f"{line.wager} {line.odds or line.outcome}"
    text = f"{line.wager} {signed(net)}"
    if line.outcome is WagerOutcome.WIN:
        text += "" if line.line == "win" else f" {line.line}"
        text += f" (vigorish {money(line.vig_cents)})" if line.vig_cents else ""
        return text
    return text if line.outcome is WagerOutcome.LOSE else f"{line.wager} {line.outcome}"


def _open_matters(each: Round) -> Iterator[str]:
    if each.older:
        times = "once" if len(each.older) == 1 else f"{len(each.older)} times"
        yield f"  corrected {times}; older versions are kept"
    if each.held:
        yield "  its cards are held until the floor releases them"
    for dispute in each.disputes:
        said = dispute.decision or "not decided"
        yield f"  disputed in row {dispute.number}: {dispute.why}; {said}"
    for proposed in each.proposed:
        yield from _proposed(each.round_id, proposed)
    kinds = {done.number: done.kind.replace("_", " ") for done in each.done}
    for row in each.to_countersign:
        yield f"  row {row} ({kinds[row]}) waits for the floor's countersignature"


def _proposed(round_id: int, proposed: Proposed) -> Iterator[str]:
    """A correction that waits for the floor: what the round would be, and how the floor decides."""
    told = proposed.told
    yield f"  {proposed.dealer} says in row {proposed.number} that it was other than on record: {told.why}"
    for hand in () if told.exposed is None else told.exposed.hands:
        whose = f"seat {hand.seat}" if hand.of is d.HandOf.SEAT else str(hand.of)
        yield f"{INDENT}{whose}  {' '.join(hand.cards or ('cards not known',))}"
    by_seat: dict[int, list[d.ResultLine]] = {}
    for line in () if told.settled is None else told.settled.lines or ():
        by_seat.setdefault(line.seat, []).append(line)
    for seat, lines in by_seat.items():
        yield f"{INDENT}seat {seat} would get: {', '.join(map(_result, lines))}"
    yield (
        f"{INDENT}FLOOR: 'sabot round {round_id} confirm' or 'sabot round {round_id} decline'"
        f" (--row {proposed.number} if there are several)"
    )


def totals(rounds: Iterable[Round]) -> tuple[int, int, int]:
    """Of all rounds: what was paid, taken and returned, in cents."""
    pay = take = back = 0
    for each in rounds:
        if each.end is RoundEnd.VOID and each.void is not None:
            back += sum(made.cents for made in each.void.give_back or ())
            continue
        for line in each.lines:
            net = net_cents(line)
            if net is None or line.stake_cents is None:
                continue
            if line.outcome in TAKEN:
                take += line.stake_cents
            elif line.outcome in GIVEN_BACK:
                back += line.stake_cents
            else:
                pay += net
    return pay, take, back
