"""What the grip stands of drift and warped cards: ``python -m tests.fairness.sweep [DECKS]`` prints rows."""

import sys
from collections import Counter

from rich.console import Console
from tests.fairness.grip import RIGHT, WRONG, outcome

ROWS = (
    ("as it comes", 0.0, 0, 0),
    *((f"{share:+.0%} thick", share, 0, 0) for share in (-0.25, -0.2, -0.1, 0.05, 0.1)),
    *((f"{warped} cards warped by {um} um", 0.0, warped, um)
      for warped, um in ((1, 60), (1, 80), (1, 100), (3, 60), (3, 80), (10, 45), (10, 60), (20, 80))),
)  # fmt: skip


def main() -> None:
    """Print one row a kind of deck."""
    console = Console(highlight=False)
    decks = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, share, warped, um in ROWS:
        found = Counter(outcome(seed, share, warped, um) for seed in range(decks))
        right, wrong = found[RIGHT], found[WRONG]
        console.print(f"| {name} | {right} | {decks - right - wrong} | {wrong} |")


if __name__ == "__main__":
    main()
