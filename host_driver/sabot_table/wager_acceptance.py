"""Which wagers the table accepts, and files of wagers."""

import tomllib
from collections.abc import Mapping

from sabot_table.errors import BadWagers, WagerRefused
from sabot_table.money import payout
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import ROYAL_9, RuleSet

Wagers = Mapping[int, Mapping[str, int]]  # seat -> wager -> cents


def check_wagers(rules: RuleSet, wagers: Wagers) -> None:
    """Refuse what may not be wagered; all or nothing."""
    for seat, made in wagers.items():
        check_seat(rules, seat)
        for wager, cents in made.items():
            check_wager(rules, seat, wager, cents, made)


def check_seat(rules: RuleSet, seat: object) -> None:
    """Refuse a seat that does not exist."""
    if isinstance(seat, bool) or not isinstance(seat, int) or not 1 <= seat <= rules.seats.count:
        raise WagerRefused(
            seat,
            "any wager",
            "there is no such seat",
            rules.fixed.clause("seats"),
            f"the seats are 1 to {rules.seats.count}",
        )


def check_wager(rules: RuleSet, seat: int, wager: str, cents: object, others: Mapping[str, int]) -> None:
    """Refuse one wager of a seat, seen with the others that it makes."""
    most = rules.fixed.wagers.most_kinds
    if most is not None and len({*others, wager}) > most:
        raise WagerRefused(
            seat,
            wager,
            f"{len({*others, wager})} kinds of wager",
            rules.fixed.clause("wager_kinds"),
            f"a hand may have {most} kinds at most",
        )
    if wager not in rules.offered:
        raise WagerRefused(
            seat,
            wager,
            "is not offered at this table",
            rules.fixed.clause("wager_kinds"),
            f"the wagers are {', '.join(rules.offered)}",
        )
    paytable = rules.paytable(wager)
    if isinstance(cents, bool) or not isinstance(cents, int) or cents <= 0:
        raise WagerRefused(
            seat, wager, f"{cents!r} is no amount", paytable.rule, "stake whole cents, more than none"
        )
    if not _stands(rules, wager, others):
        needed = " or ".join(rules.main_wagers)
        raise WagerRefused(seat, wager, f"without {needed}", paytable.rule, f"wager on {needed} first")
    royal = rules.royal_9
    if wager == ROYAL_9 and royal is not None:
        if cents != royal.stake_cents:
            raise WagerRefused(
                seat, wager, f"{cents} cents", paytable.clause, f"its stake is {royal.stake_cents} cents"
            )
        return
    for line in paytable.pays:
        payout(rules, paytable, line, cents, seat)


def _stands(rules: RuleSet, wager: str, others: Mapping[str, int]) -> bool:
    """A three-card bonus needs the ante (MD3 7.E, WA3 ante); Royal 9 a main wager (MDM 7.A(9))."""
    needs = rules.game is GameKind.THREE_CARD or wager == ROYAL_9
    return wager in rules.main_wagers or not needs or any(each in others for each in rules.main_wagers)


def read_wagers(rules: RuleSet, text: str, source: str = "wagers") -> dict[int, dict[str, int]]:
    """Wagers out of a TOML text, seat by seat: ``[3]`` and below it ``ante = 2500``, in cents; checked."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadWagers(f"{source}: {error}; correct the file's syntax there") from error
    wagers: dict[int, dict[str, int]] = {}
    for seat, made in data.items():
        if not (seat.isascii() and seat.isdigit()) or not isinstance(made, dict):
            raise BadWagers(f"{source}: '{seat}' is no seat; write a table for each, [3], with its wagers")
        wagers[int(seat)] = made
    check_wagers(rules, wagers)
    return wagers


def every_wager(rules: RuleSet, cents: int = 2_000) -> dict[int, dict[str, int]]:
    """Every seat makes every wager offered: the most a round can settle."""
    royal = rules.royal_9
    made = dict.fromkeys(rules.offered, cents)
    if royal is not None:
        made[ROYAL_9] = royal.stake_cents
    wagers = {seat: dict(made) for seat in rules.clockwise()}
    check_wagers(rules, wagers)
    return wagers
