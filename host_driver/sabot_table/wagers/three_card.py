"""Wagers of Three Card Baccarat (MD3 7.E, 11.B, 12; WA3)."""

from sabot_table.hand_ranking import HandCategory, Showdown

DRAGON_FROM = 5  # points


def ante(hands: Showdown) -> tuple[str, ...]:
    """The hand against the dealer's. "more faces": won by faces alone, which commission-free tables push."""
    if hands.player < hands.dealer:
        return ()
    if hands.player.kind == hands.dealer.kind and hands.player.points == hands.dealer.points:
        return ("more faces", "win") if hands.player.faces > hands.dealer.faces else ("tie",)
    return ("win",)


def three_kings(hands: Showdown) -> tuple[str, ...]:
    """The player's hand alone: eight points or better."""
    if hands.player.kind is HandCategory.THREE_KINGS:
        return ("three kings", "three faces")
    if hands.player.kind is HandCategory.THREE_FACES:
        return ("three faces",)
    return (f"any {hands.player.points}",) if hands.player.points >= 8 else ()


def tie(hands: Showdown) -> tuple[str, ...]:
    """Equal points, three faces counting ten; better with equal faces; best with the same three ranks."""
    if hands.player.bonus_points != hands.dealer.bonus_points:
        return ()
    same_faces = hands.player.faces == hands.dealer.faces
    copy = ("three card copy",) if hands.copy else ()
    return (*copy, "point and face tie", "tie") if same_faces else ("tie",)


def dragon_bonus(hands: Showdown) -> tuple[str, ...]:
    """Won by five points or more, three faces counting ten."""
    margin = hands.player.bonus_points - hands.dealer.bonus_points
    return (f"win by {margin}",) if margin >= DRAGON_FROM else ()
