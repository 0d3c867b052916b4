"""Rewriting what a table wrote, and what the verifier says of it."""

import sqlite3
from pathlib import Path

from tests.evidence.campaign import verdict
from tests.evidence.edits import opened

from sabot_evidence import verifier
from sabot_protocol.codec import CODEC


def words(paths: list[Path], lines: tuple[str, ...] = ()) -> set[str]:
    """What does not fit, in the verifier's words."""
    report = verdict(paths, lines)
    assert report is not None
    return {
        f"{each.file}: {each.kind}: {each.text}"
        for each in report.findings
        if each.kind in verifier.WRONG_KINDS
    }


def sql(path: Path, *statements: str) -> None:
    """Edit a file as somebody would who knows SQLite."""
    with opened(path) as db:
        for each in statements:
            db.execute(each)


def misfits(path: Path, anchor: Path) -> list[str]:
    """What does not fit in one file, against what the floor keeps."""
    file = verifier.EvidenceFile(path)
    report = verifier.verify([file], anchors=verifier.read_anchors(anchor, ()))
    file.db.close()
    return [
        f"{each.file}: {each.kind}: {each.text}"
        for each in report.findings
        if each.kind in verifier.WRONG_KINDS
    ]


def told(path: Path, *options: str) -> list[str]:
    """Every line of the verifier's for one file."""
    said: list[str] = []
    verifier.run([str(path), *options], said.append)
    return said


def other_round(record: Path) -> int:
    """Give a stack that was dealt in round 1 to round 2; the number of its row."""
    with opened(record) as db:
        (number,) = db.execute(
            """SELECT MIN(number) FROM rows WHERE body LIKE '%"kind":"deal_stack"%"round":1}'"""
        ).fetchone()
        db.execute(
            """UPDATE rows SET body = replace(body, '"round":1}', '"round":2}') WHERE number = ?""", (number,)
        )
    return int(number)


def checkpoint_after(journal: Path, event: int) -> int:
    """The link of the device's next checkpoint."""
    find = "SELECT id FROM events WHERE message = ? AND id > ? ORDER BY id"
    db = sqlite3.connect(journal)
    (checkpoint,) = db.execute(find, (CODEC.named("chain_checkpoint").id, event)).fetchone()
    db.close()
    return link_of(journal, checkpoint)


def link_of(journal: Path, event: int) -> int:
    """The link of an event."""
    db = sqlite3.connect(journal)
    (link,) = db.execute("SELECT link FROM chain WHERE kind = 'E' AND id = ?", (event,)).fetchone()
    db.close()
    return int(link)
