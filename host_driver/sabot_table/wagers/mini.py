"""Wagers of mini baccarat that look at points and numbers of cards (MDM 7.A(1)-(8), (11)-(15), (18); BAC)."""

from sabot_table.coup import Totals

MARGIN_FROM = 4  # points, of a Dragon Bonus hand that is not a natural


def banker(totals: Totals) -> tuple[str, ...]:
    """The Banker's Hand has more points. Names the wins that variants treat apart."""
    if totals.banker < totals.player:
        return ()
    if totals.banker == totals.player:
        return ("tie",)
    if _three_card_seven(totals):
        return ("dragon 7", "fortune 7", "win")
    return ("win with 6", "win") if totals.banker == 6 else ("win",)


def player(totals: Totals) -> tuple[str, ...]:
    """The Player's Hand has more points."""
    if totals.player == totals.banker:
        return ("tie",)
    return ("win",) if totals.player > totals.banker else ()


def tie(totals: Totals) -> tuple[str, ...]:
    """Equal points."""
    return ("tie",) if totals.player == totals.banker else ()


def dragon_bonus_player(totals: Totals) -> tuple[str, ...]:
    """The Dragon Bonus on the Player's Hand."""
    return _dragon_bonus(totals.player, totals.player_natural, totals.banker)


def dragon_bonus_banker(totals: Totals) -> tuple[str, ...]:
    """The Dragon Bonus on the Banker's Hand."""
    return _dragon_bonus(totals.banker, totals.banker_natural, totals.player)


def dragon_7(totals: Totals) -> tuple[str, ...]:
    """The Banker's Hand wins with three cards making seven; the Player's has less than seven."""
    return ("dragon 7",) if _three_card_seven(totals) else ()


def panda_8(totals: Totals) -> tuple[str, ...]:
    """The Player's Hand wins with three cards making eight."""
    return ("panda 8",) if _three_card_eight(totals) else ()


def fortune_7(totals: Totals) -> tuple[str, ...]:
    """The same condition as Dragon 7."""
    return ("fortune 7",) if _three_card_seven(totals) else ()


def one_up(totals: Totals) -> tuple[str, ...]:
    """The Player's Hand wins by exactly one point; one to nothing is a line of its own."""
    if totals.player != totals.banker + 1:
        return ()
    return ("1 to 0", "by one point") if totals.banker == 0 else ("by one point",)


def golden_8(totals: Totals) -> tuple[str, ...]:
    """The same condition as Panda 8."""
    return ("golden 8",) if _three_card_eight(totals) else ()


def heavenly_9(totals: Totals) -> tuple[str, ...]:
    """Three cards making nine in either hand, winner or not; in both is a line of its own."""
    nines = _three_card_nines(totals)
    if nines == 2:
        return ("both hands", "one hand")
    return ("one hand",) if nines else ()


def blazing_7s(totals: Totals) -> tuple[str, ...]:
    """Both hands make seven with the same number of cards."""
    if not _sevens(totals):
        return ()
    return ("three cards each",) if totals.player_cards == 3 else ("two cards each",)


def cover_all(totals: Totals) -> tuple[str, ...]:
    """Anything that wins one of the four other treasures, sevens of two cards included."""
    won = (
        _three_card_seven(totals) or _three_card_eight(totals) or _three_card_nines(totals) or _sevens(totals)
    )
    return ("any treasure",) if won else ()


def lucky_6(totals: Totals) -> tuple[str, ...]:
    """The Banker's Hand wins with six."""
    if totals.banker != 6 or totals.player >= 6:
        return ()
    return ("two cards",) if totals.banker_cards == 2 else ("three cards",)


def _dragon_bonus(mine: int, natural: bool, other: int) -> tuple[str, ...]:
    # Against a natural nobody draws: the other hand is a natural too, or has seven at most.
    if natural:
        return ("natural tie",) if mine == other else ("natural winner",) if mine > other else ()
    margin = mine - other
    return (f"win by {margin}",) if margin >= MARGIN_FROM else ()


def _three_card_seven(totals: Totals) -> bool:
    return totals.banker == 7 and totals.banker_cards == 3 and totals.player < 7


def _three_card_eight(totals: Totals) -> bool:
    return totals.player == 8 and totals.player_cards == 3 and totals.banker < 8


def _three_card_nines(totals: Totals) -> int:
    hands = ((totals.player, totals.player_cards), (totals.banker, totals.banker_cards))
    return hands.count((9, 3))


def _sevens(totals: Totals) -> bool:
    return totals.player == totals.banker == 7 and totals.player_cards == totals.banker_cards
