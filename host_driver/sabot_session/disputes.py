"""Disputes, counted for each machine: how often its screen was doubted, and how often it was wrong."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sabot_session import row_data as d
from sabot_session.row_kinds import data_of
from sabot_session.rows import NumberedRow


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """The disputes of one machine."""

    opened: int = 0
    decided: int = 0
    machine_wrong: int = 0


def disputes_by_machine(rows: Iterable[NumberedRow]) -> dict[str, DisputeCount]:
    """The disputes in a record, by the serial number of the machine."""
    found: dict[str, DisputeCount] = {}
    serials: dict[int, str] = {}  # by the row that opened the dispute
    for each in rows:
        if each.row.kind not in ("open_dispute", "decide_dispute"):
            continue
        data = data_of(each.row)
        if isinstance(data, d.DisputeOpened):
            serials[each.number] = data.serial
            before = found.get(data.serial, DisputeCount())
            found[data.serial] = replace(before, opened=before.opened + 1)
        elif isinstance(data, d.DisputeDecided):
            serial = serials.get(data.row, "")
            before = found.get(serial, DisputeCount())
            wrong = before.machine_wrong + int(data.machine_wrong)
            found[serial] = replace(before, decided=before.decided + 1, machine_wrong=wrong)
    return found
