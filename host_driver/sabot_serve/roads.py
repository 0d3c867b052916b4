"""The roads of baccarat: how players write down results. Pure functions of a shoe's confirmed results.

The rules are the usual ones. A derived road (big eye boy, small road, cockroach pig) compares the big road's
columns at a distance of 1, 2 or 3. It begins at the second entry of column 1 + distance, or at the first
entry of the column after that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Result = Literal["banker", "player", "tie"]
Colour = Literal["red", "blue"]
ROWS = 6
BIG_EYE_BOY, SMALL_ROAD, COCKROACH_PIG = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of a road: where it stands, what it is, and the ties that followed it."""

    column: int
    row: int
    what: str
    ties: int = 0


def bead_plate(results: Sequence[Result], rows: int = ROWS) -> list[Mark]:
    """Every result, column by column."""
    return [Mark(at // rows, at % rows, each) for at, each in enumerate(results)]


def streaks(results: Iterable[Result]) -> list[int]:
    """The lengths of the big road's columns: runs of one winner. Ties do not count."""
    lengths: list[int] = []
    last: Result | None = None
    for each in results:
        if each == "tie":
            continue
        if each == last:
            lengths[-1] += 1
        else:
            lengths.append(1)
        last = each
    return lengths


def big_road(results: Sequence[Result], rows: int = ROWS) -> list[Mark]:
    """A column for each streak; a tie is noted at the mark before it.

    Ties before the first winner are noted at the first mark. Ties alone are one mark.
    """
    winners: list[str] = []
    ties: list[int] = []
    waiting = 0
    for each in results:
        if each != "tie":
            winners.append(each)
            ties.append(waiting)
            waiting = 0
        elif ties:
            ties[-1] += 1
        else:
            waiting += 1
    if not winners:
        return [Mark(0, 0, "", waiting)] if waiting else []
    return [replace(mark, ties=some) for mark, some in zip(_laid(winners, rows), ties, strict=True)]


def derived_road(results: Sequence[Result], distance: int) -> list[Colour]:
    """The colours of a derived road: red where the big road repeats itself, blue where it does not."""
    lengths = streaks(results)
    found: list[Colour] = []
    for column, length in enumerate(lengths):
        for row in range(length):
            if row == 0:
                other = column - 1 - distance
                if other >= 0:
                    found.append("red" if lengths[column - 1] == lengths[other] else "blue")
            elif column - distance >= 0:
                found.append("blue" if row == lengths[column - distance] else "red")
    return found


def derived_marks(results: Sequence[Result], distance: int, rows: int = ROWS) -> list[Mark]:
    """A derived road as it is drawn."""
    return _laid(derived_road(results, distance), rows)


def _laid(marks: Sequence[str], rows: int) -> list[Mark]:
    """A new column for each change; a streak that meets the edge or another streak goes on to the right."""
    taken: dict[tuple[int, int], str] = {}
    found: list[Mark] = []
    start, last = -1, ""
    for each in marks:
        if each != last:
            start, last = start + 1, each
        column, row = start, 0
        while (column, row) in taken:
            below = taken.get((column, row + 1))
            if row + 1 < rows and below in (None, each):
                row += 1
            else:
                column += 1
        taken[column, row] = each
        found.append(Mark(column, row, each))
    return found
