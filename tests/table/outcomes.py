"""What the texts pay, written out a second time, and an example of every line."""

from sabot_table.cards import cards
from sabot_table.coup import Coup
from sabot_table.settlement import DealtHands

Pays = dict[str, float]
Tables = dict[tuple[str, str | None], Pays]

# (text, wager, letter) -> line -> to 1. 0 pushes. Banker and ante depend on the variant and stand apart.
THREE_KINGS: dict[str, Pays] = {
    "A": {"three kings": 50, "three faces": 25, "any 9": 3, "any 8": 2},
    "B": {"three kings": 200, "three faces": 20, "any 9": 3, "any 8": 2},
}
THREE_CARD_TIE: dict[str, Pays] = {
    "A": {"three card copy": 50, "point and face tie": 10, "tie": 7},
    "B": {"tie": 8},
}
THREE_CARD_DRAGON: Pays = {
    "win by 10": 50,
    "win by 9": 20,
    "win by 8": 10,
    "win by 7": 5,
    "win by 6": 3,
    "win by 5": 1,
}
DRAGON = {
    "A": {9: 30, 8: 10, 7: 6, 6: 4, 5: 2, 4: 1},
    "B": {9: 20, 8: 8, 7: 7, 6: 4, 5: 3, 4: 1},
    "C": {9: 30, 8: 10, 7: 4, 6: 4, 5: 2, 4: 2},
}
JACKPOT_LINES = (
    "four card royal",
    "four of a kind",
    "straight flush",
    "three of a kind",
    "flush",
    "straight",
    "two pair",
    "pair of aces",
    "pair of tens to kings",
)
JACKPOT = {
    "A": (500, 100, 50, 15, 10, 5, 4, 2, 0),
    "B": (250, 75, 50, 15, 10, 5, 4, 2, 0),
    "C": (300, 50, 40, 15, 10, 5, 4, 2, 0),
    "D": (500, 100, 50, 15, 10, 6, 5, 2, 0),
    "E": (500, 100, 50, 15, 10, 6, 4, 2, 0),
}
LUCKY_LINES = (
    "four nines",
    "three nines of one suit",
    "three nines",
    "two nines of one suit",
    "two nines",
    "nine of diamonds",
    "one nine",
)
LUCKY = {
    "A": (500, 250, 20, 8, 5, 2, 1),
    "B": (500, 250, 30, 12, 5, 2, 1),
    "C": (1000, 500, 35, 16, 5, 2, 1),
    "D": (2000, 500, 15, 10, 4, 2, 1),
}
MINI: Tables = {
    ("player", None): {"win": 1, "tie": 0},
    ("tie", None): {"tie": 8},
    **{
        (f"dragon-bonus-{hand}", letter): {
            **{f"win by {margin}": pays for margin, pays in table.items()},
            "natural winner": 1,
            "natural tie": 0,
        }
        for hand in ("player", "banker")
        for letter, table in DRAGON.items()
    },
    **{("jackpot", letter): dict(zip(JACKPOT_LINES, pays, strict=True)) for letter, pays in JACKPOT.items()},
    **{(f"any-pair-{hand}", None): {"pair of nines": 12, "pair": 11} for hand in ("player", "banker")},
    **{("lucky-nines", letter): dict(zip(LUCKY_LINES, pays, strict=True)) for letter, pays in LUCKY.items()},
    ("lucky-6", None): {"two cards": 12, "three cards": 20},
}
EZ: Tables = {("dragon-7", None): {"dragon 7": 40}, ("panda-8", None): {"panda 8": 25}}
FORTUNE_7: Tables = {
    ("fortune-7", None): {"fortune 7": 40},
    ("one-up", None): {"1 to 0": 30, "by one point": 9},
}
FIVE_TREASURES: Tables = {
    ("fortune-7", None): {"fortune 7": 40},
    ("golden-8", None): {"golden 8": 25},
    ("heavenly-9", None): {"both hands": 75, "one hand": 10},
    ("blazing-7s", "A"): {"three cards each": 400},
    ("blazing-7s", "B"): {"three cards each": 200, "two cards each": 50},
    ("cover-all", None): {"any treasure": 6},
}
THREE_CARD: Tables = {
    **{("three-kings", letter): pays for letter, pays in THREE_KINGS.items()},
    **{("tie", letter): pays for letter, pays in THREE_CARD_TIE.items()},
    ("dragon-bonus", None): THREE_CARD_DRAGON,
}
# rule set -> (wager, letter) -> line -> to 1, before vigorish
BY_RULE_SET: dict[str, Tables] = {
    "md-three-card-baccarat": {("ante", None): {"win": 1, "tie": 0}, **THREE_CARD},
    "md-three-card-baccarat-commission-free": {
        ("ante", None): {"win": 1, "more faces": 0, "tie": 0},
        **THREE_CARD,
    },
    "wa-three-card-baccarat": {
        ("ante", None): {"win": 1, "tie": 0},
        ("three-kings", None): THREE_KINGS["A"],
        ("tie", None): THREE_CARD_TIE["A"],
        ("dragon-bonus", None): THREE_CARD_DRAGON,
    },
    "md-mini-baccarat": {("banker", None): {"win": 1, "tie": 0}, **MINI},
    "md-ez-baccarat": {("banker", None): {"win": 1, "dragon 7": 0, "tie": 0}, **MINI, **EZ},
    "md-fortune-7-baccarat": {("banker", None): {"win": 1, "fortune 7": 0, "tie": 0}, **MINI, **FORTUNE_7},
    "md-no-commission-baccarat": {("banker", None): {"win": 1, "win with 6": 0.5, "tie": 0}, **MINI},
    "md-five-treasures-baccarat": {("banker", None): {"win": 1, "tie": 0}, **MINI, **FIVE_TREASURES},
    "baccarat-six-deck": {
        ("banker", None): {"win": 1, "tie": 0},
        ("player", None): {"win": 1, "tie": 0},
        ("tie", None): {"tie": 8},
    },
}


def hands(player: str, dealer: str) -> DealtHands:
    """Seat 1's hand against the dealer's."""
    return DealtHands(cards(dealer), {1: cards(player)})


def coup(player: str, banker: str) -> Coup:
    """Both hands."""
    return Coup(cards(player), cards(banker))


# wager -> line (or "lose") -> examples
THREE_CARD_EXAMPLES: dict[str, dict[str, list[DealtHands]]] = {
    "ante": {
        "win": [hands("KH KS KD", "QH JS KC"), hands("9H 2S 8C", "8H KS QD"), hands("JH QS KD", "9H KH QC")],
        "more faces": [hands("9H KS QC", "9D KD 10C"), hands("KH QH 10C", "10D 10H 10S")],
        "tie": [hands("9H KS QC", "9D JD QH"), hands("JH QS KD", "JS JD QC"), hands("2H 3H 5H", "10D 4H 6S")],
        "lose": [
            hands("9H KS QC", "JS JD QH"),
            hands("9H 10S 10C", "9D KD 10D"),
            hands("2C 3C 3D", "9C KD QD"),
        ],
    },
    "three-kings": {
        "three kings": [hands("KH KS KD", "QH JS KC")],
        "three faces": [hands("KH KS QD", "QH JS KC")],
        "any 9": [hands("9H KS QC", "9D JD QH"), hands("3H 3S 3C", "9D JD QH")],
        "any 8": [hands("8H KS QC", "9D JD QH"), hands("9H 8S AC", "2D JD QH")],
        "lose": [hands("7H KS QC", "2D JD QH"), hands("10H 10S 10C", "KH KS KD")],
    },
    "tie": {
        "three card copy": [hands("9H KS QC", "9D KD QH"), hands("KH QH JH", "KS QS JS")],
        "point and face tie": [
            hands("9H KS QC", "9D JD QH"),
            hands("KH QH JH", "JS QS JC"),
            hands("KH KS KD", "QS QC JC"),
        ],
        "tie": [hands("9H KS QC", "9D 10D QH"), hands("10H 10S KC", "2D 8D 10C")],
        "lose": [hands("9H KS QC", "8D 10D QH"), hands("KH QH JH", "10H 10D 10C")],
    },
    "dragon-bonus": {
        "win by 10": [hands("KH QH JH", "10H 10D 10C")],
        "win by 9": [hands("9H KH KS", "10H 10D 10C"), hands("KH QH JH", "AH 10D 10C")],
        "win by 8": [hands("KH QH JH", "2H 10D 10C"), hands("8H KH KS", "10H 10D 10C")],
        "win by 7": [hands("9H KH KS", "2H 10D 10C")],
        "win by 6": [hands("7H KH KS", "AH 10D 10C")],
        "win by 5": [hands("6H KH KS", "AH 10D 10C")],
        "lose": [
            hands("5H KH KS", "AH 10D 10C"),
            hands("9H 10H 10S", "KH QH JH"),
            hands("2H KC QC", "9H KH KS"),
        ],
    },
}
DRAGON_PLAYER = {
    "win by 9": [coup("2H 3H 4H", "KD 10D KC")],
    "win by 8": [coup("2H 2D 4H", "KD 10D KC")],
    "win by 7": [coup("2H 2D 3H", "KD 10D KC")],
    "win by 6": [coup("2H 2D 2S", "KD 10D KC"), coup("6H KH", "KD 10D KC")],
    "win by 5": [coup("2H AD 2S", "KD 10D KC")],
    "win by 4": [coup("AH AD 2S", "KD 10D KC")],
    "natural winner": [coup("9H KD", "8S KC"), coup("9H KD", "2S KC"), coup("8H KD", "7S KC")],
    "natural tie": [coup("9H KD", "9S KC"), coup("8H KD", "8S KC")],
}
DRAGON_LOSE = [coup("8H KD", "9S KC"), coup("AH AD AS", "KD 10D KC"), coup("7H KD", "7S KC")]


def swapped_examples() -> dict[str, list[Coup]]:
    """Examples for the Dragon Bonus on the Banker's Hand."""
    return {
        "win by 9": [coup("KD 10D KC", "AH 2H 6H")],
        "win by 8": [coup("KD 10D KC", "AH 2H 5H")],
        "win by 7": [coup("KD 10D KC", "7H KH")],
        "win by 6": [coup("KD 10D KC", "6H KH")],
        "win by 5": [coup("KD 10D KC", "5H KH")],
        "win by 4": [coup("KD 10D KC", "4H KH")],
        "natural winner": [coup("8S KC", "9H KD"), coup("2S KC", "9H KD")],
        "natural tie": [coup("9S KC", "9H KD")],
        "lose": [coup("9S KC", "8H KD"), coup("KD 10D KC", "AH 2H KS"), coup("7S KC", "7H KD")],
    }


MINI_EXAMPLES: dict[str, dict[str, list[Coup]]] = {
    "player": {
        "win": [coup("9H KD", "8S KC"), coup("2H 3H 4H", "KD 10D KC")],
        "tie": [coup("9H KD", "9S KC")],
        "lose": [coup("8H KD", "9S KC"), coup("KD 10D KC", "4H KH")],
    },
    "banker": {
        "win": [coup("8H KD", "9S KC"), coup("KD 10D KC", "7H KH")],
        "dragon 7": [coup("KD 10D 2C", "2H 2D 3S")],
        "fortune 7": [coup("KD 10D 2C", "2H 2D 3S")],
        "win with 6": [coup("KD 10D 2C", "6H KH"), coup("KD 10D 2C", "2H 2D 2S")],
        "tie": [coup("9H KD", "9S KC"), coup("7H KD", "7S KC")],
        "lose": [coup("9H KD", "8S KC")],
    },
    "tie": {"tie": [coup("9H KD", "9S KC"), coup("KD 10D KC", "KH QH JH")], "lose": [coup("9H KD", "8S KC")]},
    "dragon-bonus-player": {**DRAGON_PLAYER, "lose": DRAGON_LOSE},
    "dragon-bonus-banker": swapped_examples(),
    "jackpot": {
        "four card royal": [coup("AH JH KC", "KH QH 4S")],
        "four of a kind": [coup("9H 9H", "9S 9H")],
        "straight flush": [
            coup("AH 2H 5C", "3H 4H"),
            coup("10H QH 5C", "JH KH 3D"),
            coup("8H 9H", "6H 7H 2D"),
        ],
        "three of a kind": [coup("9H 9D", "9S 2H"), coup("9H 9H", "9H 2H")],
        "flush": [coup("9H 2H 2C", "JH 5H"), coup("AH AH 2C", "9H 5H 2C")],
        "straight": [coup("AH 2D 5C", "3H 4H"), coup("AH JH 2C", "KS QH 4S"), coup("8H 9C", "6H 7D 2D")],
        "two pair": [coup("AH AD KC", "KH KS 4S"), coup("2H 7D", "2C 7S")],
        "pair of aces": [coup("AH AD KC", "2H 4S")],
        "pair of tens to kings": [
            coup("10H 10D KC", "2H 4S"),
            coup("KH 8D", "KD 4S"),
            coup("JH JD KC", "2H 4S"),
            coup("QH QD KC", "2H 4S"),
        ],
        "lose": [coup("9H 9D", "2H 4S"), coup("KH AD 2C", "2S 3S"), coup("2H 9D 2C", "10S KS 2C")],
    },
    "any-pair-player": {
        "pair of nines": [coup("9H 9D", "2H 4S")],
        "pair": [coup("2H 2D 5C", "3H 3S")],
        "lose": [coup("2H 3D 5C", "2C 4S"), coup("10H KD 5C", "2C 4S")],
    },
    "any-pair-banker": {
        "pair of nines": [coup("2H 4S", "9H 9D")],
        "pair": [coup("2H 3D 5C", "2C 2S 5C")],
        "lose": [coup("2H 2D 5C", "2C 4S")],
    },
    "lucky-nines": {
        "four nines": [coup("9H 9D", "9S 9C"), coup("9H 9H", "9H 9H")],
        "three nines of one suit": [coup("9H 9H", "9H 2S")],
        "three nines": [coup("9H 9D", "9H 2S")],
        "two nines of one suit": [coup("9H KS", "9H KC")],
        "two nines": [coup("9H KS", "9D KC"), coup("9H 9D", "2S KC")],
        "nine of diamonds": [coup("9D KS", "2D KC")],
        "one nine": [coup("9H KS", "2D KC"), coup("9C KS", "2D KC"), coup("2D 8D", "9S KC")],
        "lose": [coup("10H KS 9C", "2D KC 9D")],
    },
    "lucky-6": {
        "two cards": [coup("KD 10D 2C", "6H KH")],
        "three cards": [coup("KD 10D 2C", "2H 2D 2S")],
        "lose": [coup("6D KS", "6H KH"), coup("7D KS", "KH 2H 4C"), coup("KD 10D 2C", "7H KH")],
    },
    "dragon-7": {
        "dragon 7": [coup("KD 10D 2C", "2H 2D 3S")],
        "lose": [coup("7D KC", "2H 2D 3S"), coup("KD 10D 2C", "7H KH"), coup("4D KC 4C", "2H 2D 3S")],
    },
    "panda-8": {
        "panda 8": [coup("2H 3H 3D", "KD 2D 5C")],
        "lose": [coup("8H KH", "KD 2D"), coup("2H 3H 3D", "KD 2D 6C"), coup("2H 3H 3D", "KD 2D 7C")],
    },
    "fortune-7": {
        "fortune 7": [coup("KD 10D 2C", "2H 2D 3S")],
        "lose": [coup("7D KC", "2H 2D 3S"), coup("KD 10D 2C", "7H KH")],
    },
    "one-up": {
        "1 to 0": [coup("KD QD AC", "2H 10D 8S")],
        "by one point": [coup("9H KD", "8S KC"), coup("7H KD", "6S KC"), coup("KD QD 2C", "AH 10D KS")],
        "lose": [coup("8H KD", "9S KC"), coup("9H KD", "7S KC"), coup("7H KD", "7S KC")],
    },
    "golden-8": {"golden 8": [coup("2H 3H 3D", "KD 2D 5C")], "lose": [coup("8H KH", "KD 2D")]},
    "heavenly-9": {
        "both hands": [coup("2H 3H 4D", "KD 2D 7C")],
        "one hand": [coup("2H 3H 4D", "KD 2D 6C"), coup("2H 3H 3D", "KD 2D 7C")],
        "lose": [coup("9H KH", "9D KC"), coup("2H 3H 3D", "KD 2D 6C")],
    },
    "blazing-7s": {
        "three cards each": [coup("2H 3H 2D", "KD 2D 5C")],
        "two cards each": [coup("7H KH", "7D KC")],
        "lose": [coup("7H KH", "KD 2D 5C"), coup("2H 3H 2D", "7D KC"), coup("8H KH", "8D KC")],
    },
    "cover-all": {
        "any treasure": [
            coup("KD 10D 2C", "2H 2D 3S"),
            coup("2H 3H 3D", "KD 2D 5C"),
            coup("2H 3H 3D", "KD 2D 7C"),
            coup("2H 3H 2D", "KD 2D 5C"),
            coup("7H KH", "7D KC"),
        ],
        "lose": [coup("9H KH", "9D KC"), coup("7H KH", "KD 2D 5C"), coup("8H KH", "KD 7D")],
    },
}
