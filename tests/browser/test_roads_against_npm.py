"""Our roads against npm's baccarat-engine over 10,000 random shoes.

That library leaves out a derived road's entries that compare with the first column (``compareColumn <= 0``).
The usual rules have them: a derived road begins at the second entry of column 1 + distance. They are left out
here of ours too, and only here.
"""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sabot_serve.roads import Result, bead_plate, big_road, derived_road, streaks

SHOES, HANDS = 10_000, 80
PROGRAM = """
const {RoadmapGenerator} = require("baccarat-engine");
const generator = new RoadmapGenerator();
const shoes = JSON.parse(require("fs").readFileSync(0));
const told = shoes.map((shoe) => {
  const results = shoe.map((outcome) => ({outcome, natural: "none", pair: "none"}));
  const big = generator.bigRoad(results, {columns: 1000, rows: 6, scroll: false});
  return {
    bead: generator.beadPlate(results, {columns: 1000, rows: 6}).map((each) => [each.column, each.row, each.result.outcome]),
    big: big.map((each) => [each.column, each.row, each.result.outcome ?? "", each.ties.length]),
    derived: shoe.some((each) => each !== "tie")
      ? [generator.bigEyeRoad(big), generator.smallRoad(big), generator.cockroachPig(big)] : [[], [], []],
  };
});
process.stdout.write(JSON.stringify(told));
"""  # noqa: E501


def without_the_first_column(results: list[Result], distance: int) -> list[str]:
    """A derived road as the library has it."""
    lengths = streaks(results)
    found = iter(derived_road(results, distance))
    kept: list[str] = []
    for column, length in enumerate(lengths):
        for row in range(length):
            exists = column - 1 - distance >= 0 if row == 0 else column - distance >= 0
            if exists:
                colour = next(found)
                if row == 0 or column - distance > 0:
                    kept.append(colour)
    return kept


def test_ten_thousand_shoes(root: Path) -> None:
    folder = root / "build/roads"
    if not (folder / "node_modules/baccarat-engine").exists():
        pytest.skip("baccarat-engine is not installed: make test-browser does it")
    chance = random.Random(1)
    kinds: list[Result] = ["banker", "player", "tie"]
    shoes = [chance.choices(kinds, (46, 45, 9), k=chance.randint(0, HANDS)) for _ in range(SHOES)]
    run = subprocess.run(
        ["node", "-e", PROGRAM],
        cwd=folder,
        input=json.dumps(shoes),
        capture_output=True,
        text=True,
        check=True,
    )
    told: list[dict[str, Any]] = json.loads(run.stdout)
    for shoe, theirs in zip(shoes, told, strict=True):
        assert [[each.column, each.row, each.what] for each in bead_plate(shoe)] == theirs["bead"]
        assert [[each.column, each.row, each.what, each.ties] for each in big_road(shoe)] == theirs["big"]
        for distance in (1, 2, 3):
            assert without_the_first_column(shoe, distance) == theirs["derived"][distance - 1]
