"""What is open about a round: held cards, disputes, corrections, countersignatures."""

from collections.abc import Mapping
from typing import Any

from sabot_cli.at_table.table_face import TableFace
from sabot_driver.errors import SabotError

NOTHING = {
    "release": "no cards of round {} are held",
    "decide_dispute": "round {} has no open dispute",
    "countersign": "no row of round {} waits for a countersignature",
    "confirm_correction": "no correction of round {} is proposed",
    "decline_correction": "no correction of round {} is proposed",
}
"""Acts about something that is open, and what is said if there is nothing."""


class NothingOpen(SabotError):
    """There is nothing that the act could be about, in most cases nothing about a round."""

    advice = "'sabot round N' shows what was done about a round, 'sabot rounds' which rounds are marked."


class SeveralOpen(SabotError):
    """An act could be about more than one row of a round."""


def open_about(table: TableFace, name: str, round_id: int, told: Mapping[str, Any]) -> dict[str, Any]:
    """The details of an act that the table itself knows: the pack or the row that is open about a round.

    `NothingOpen` if there is none, `SeveralOpen` if ``told`` does not say which.
    """
    if name not in NOTHING:
        return {}
    shown = table.snapshot()
    key, found = "row", list[int]()
    if name == "release":
        key, found = "pack_id", [each["pack_id"] for each in shown["packs"] if each["held_round"] == round_id]
    elif name == "decide_dispute":
        found = [each["row"] for each in shown["disputes"] if each["round_id"] == round_id]
    elif name == "countersign":
        found = [row for row in shown["countersign"] if _round_of(table, row) == round_id]
    else:
        found = [each["row"] for each in shown["corrections"] if each["round_id"] == round_id]
    if told.get(key) in found:
        return {}
    if not found or key in told:
        which = f" in row {told[key]}" if key in told else ""
        raise NothingOpen(NOTHING[name].format(round_id) + which)
    if len(found) > 1:
        raise SeveralOpen(
            f"round {round_id} has {len(found)} rows that wait",
            f"Say which: --row {', --row '.join(map(str, found))}. One command is for one row.",
        )
    return {key: found[0]}


def _round_of(table: TableFace, number: int) -> int:
    """The round of a row; 0 if it has none."""
    row = next(iter(table.rows(number - 1)), None)
    return 0 if row is None else row.row.round_id
