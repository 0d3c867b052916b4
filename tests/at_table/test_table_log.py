"""What is told of rows: who verified a deck, what was countersigned, and money after a correction."""

import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.table_log import TableLog
from sabot_cli.output import Output
from sabot_session.rows import Actor, Authentication, Json, NumberedRow, Row
from sabot_table.procedure import TableRole

DANA = Actor("dana", TableRole.DEALER, Authentication.SIGNED_IN)
FLO = Actor("flo", TableRole.FLOOR, Authentication.KEY_AND_PIN)
BEFORE: list[tuple[str, Actor, dict[str, Json], int]] = [
    ("verify", FLO, {"pack_id": 1}, 0),
    ("void", DANA, {"why": "it stopped", "give_back": None, "countersign": True}, 2),
    ("clear_fault", DANA, {"fault": "card_stuck", "countersign": True}, 0),
]
FORBIDDEN = "The state would allow it, a rule does not. Why: the deck's hours are over."
NEW: list[tuple[str, Actor, dict[str, Json], int]] = [
    ("stack", DANA, {"pack_id": 1}, 0),
    ("countersign", FLO, {"row": 2, "note": ""}, 2),
    ("countersign", FLO, {"row": 3, "note": ""}, 0),
    ("command_answered", DANA, {"command": "reveal_round", "outcome": "reveal_round: no such round"}, 2),
    ("command_answered", DANA, {"command": "open_round", "outcome": f"open_round: {FORBIDDEN}"}, 3),
]


def _numbered() -> list[NumberedRow]:
    made = [Row(kind, 1, actor, data, round_id) for kind, actor, data, round_id in BEFORE + NEW]
    return [NumberedRow(at, row) for at, row in enumerate(made, 1)]


def test_lines_say_who_verified_and_what_was_countersigned() -> None:
    rows = _numbered()

    def after(number: int, *kinds: str) -> list[NumberedRow]:
        return [each for each in rows if each.number > number and (not kinds or each.row.kind in kinds)]

    shown = {"newest_row": len(BEFORE), "device": {"up": True}}
    face: Any = SimpleNamespace(snapshot=lambda: shown, boot_id=1, rows=after)
    output = Output(as_json=False)
    output.console = Console(file=io.StringIO(), width=200)
    log = TableLog(face, output, LinesPrinter(output))
    assert log.follow() == len(NEW)
    told = output.console.file.getvalue()  # type: ignore[attr-defined]
    assert told.splitlines() == [
        "dealer dana prepared PACK 1: inspected, spread, washed, stacked; floor flo verified it",
        "floor flo countersigned the void of round 2 by dealer dana: it stopped (row 2)",
        "floor flo countersigned the fault cleared by dealer dana: card stuck (row 3)",
        "the machine refused the command 'reveal round': no such round",
        "the machine refused the command 'open round': the deck's hours are over.",
    ]


def test_a_corrected_round_counts_as_corrected() -> None:
    said: dict[str, Json] = {"dealer": "dana", "dealer_how": "pin", "why": "chips"}
    row = Row("correct", 1, FLO, {**said, "settled": {"lines": []}}, 1)
    shown = {"newest_row": 0, "device": {"up": True}}
    face: Any = SimpleNamespace(snapshot=lambda: shown, boot_id=1, rows=lambda *_: [], round=lambda _: "new")
    output = Output(as_json=False)
    output.console = Console(file=io.StringIO(), width=200)
    log = TableLog(face, output, LinesPrinter(output))
    rounds: dict[int, Any] = log.rounds
    rounds[1] = "old"
    face.rows = lambda *_: [NumberedRow(1, row)]
    log.follow()
    assert rounds == {1: "new"}
