"""Rule sets as an operator would write them."""

from collections.abc import Mapping

from sabot_table.ruleset import RuleSet, load, parse

KING_NINES = ("KH 9H", "KS 9S", "KD 9D", "KC 9C", "KH 9C", "KC 9H", "KS 9D", "KD 9S", "KD 9H")


def royal_9_data(letter: str = "A", must_hit: bool = True) -> dict[str, object]:
    """Mini baccarat with the Royal 9 wager, as data."""
    data = load("md-mini-baccarat").model_dump(mode="json")
    data["name"] = "house-royal"
    data["wagers"]["royal-9"] = {"paytable": letter}
    data["royal_9"] = {
        "stake_cents": 500,
        "personal": {str(seat): pair for seat, pair in enumerate(KING_NINES, start=1)},
        "star": {"initial_cents": 6_000_000, "reset_cents": 5_000_000, "rate_basis_points": 1_000},
        "spade": {"initial_cents": 50_000, "reset_cents": 45_000, "rate_basis_points": 333},
        "heart": {"initial_cents": 47_500, "reset_cents": 45_000, "rate_basis_points": 333},
    }
    if must_hit:
        data["royal_9"]["must_hit"] = {
            "initial_cents": 10_000, "reset_cents": 10_000, "maximum_cents": 20_000, "rate_basis_points": 200,
        }  # fmt: skip
    return data


def with_royal_9(letter: str = "A", must_hit: bool = True) -> RuleSet:
    """Mini baccarat with the Royal 9 wager."""
    return parse(royal_9_data(letter, must_hit))


def changed(name: str, **parts: Mapping[str, object]) -> RuleSet:
    """A packaged rule set with some keys of its tables changed."""
    data = load(name).model_dump(mode="json")
    for part, values in parts.items():
        data[part].update(values)
    return parse(data)
