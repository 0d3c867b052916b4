"""The floor countersigns checkpoints: what the verifier makes of them, and what the floor must not sign."""

import json
from pathlib import Path

import pytest
from tests.driver.command import Sabot
from tests.evidence.day import Day
from tests.evidence.edits import OTHER_KEY, opened, rehash, sign_again

from sabot_evidence import verifier
from sabot_evidence.errors import SigningKeyUnusable
from sabot_evidence.signing_key import draw_signing_key, read_signing_key


def told(files: list[Path], *options: object) -> tuple[int, list[str]]:
    said: list[str] = []
    return verifier.run([*map(str, files), *map(str, options)], said.append), said


@pytest.mark.slow
def test_a_countersigned_checkpoint_shows_how_far_the_files_are_complete(
    sabot: Sabot, day: Day, tmp_path: Path, floor: tuple[Path, Path, str]
) -> None:
    key, kept, public = floor
    ran = sabot(
        "evidence", "countersign", *day.copy(tmp_path / "noon", "middle"), "--key", key, "--kept", kept
    )
    assert ran.code == 0, ran.err
    files = day.copy(tmp_path / "copy")
    code, said = told(files, "--anchor", kept, "--trust", public)
    assert code == verifier.OPEN_END
    row = day.middle[1].split()[3]
    (tail,) = [each for each in said if each.startswith("record.db: tail: ")]
    assert "nothing known after; the checkpoint countersigned by the floor at 20" in tail
    assert tail.endswith(f"Z shows row {row}")
    ran = sabot("evidence", "countersign", *files, "--key", key, "--kept", kept, "--by", "flo", "--json")
    assert (ran.code, ran.lines[-1]["added"]) == (0, 2)
    again = sabot("evidence", "countersign", *files, "--key", key, "--kept", kept, "--json")
    assert (again.code, again.lines[-1]["added"]) == (0, 0), "the same checkpoint is kept once"
    code, said = told(files, "--anchor", kept, "--trust", public)
    assert code == verifier.OK
    (complete,) = [each for each in said if each.startswith("record.db: complete: ")]
    assert ", as the checkpoint countersigned by flo at 20" in complete


def test_a_strangers_countersignature_is_refused(
    sabot: Sabot, day: Day, tmp_path: Path, floor: tuple[Path, Path, str]
) -> None:
    key, kept, public = floor
    files = day.copy(tmp_path / "copy")
    assert sabot("evidence", "countersign", *files, "--key", key, "--kept", kept).code == 0
    code, said = told(files, "--anchor", kept)
    assert code == verifier.UNREADABLE
    assert said[0].endswith("line 1: the countersignature is of no trusted key, or does not fit")
    lines = [json.loads(each) for each in kept.read_text().splitlines()]
    lines[0]["countersigned"], lines[1]["countersigned"] = (
        lines[1]["countersigned"], lines[0]["countersigned"],
    )  # fmt: skip
    kept.write_text("\n".join(map(json.dumps, lines)))
    code, said = told(files, "--anchor", kept, "--trust", public)
    assert code == verifier.UNREADABLE, "a countersignature belongs to one checkpoint"
    lines[0]["countersigned"]["statement"] = lines[1]["countersigned"]["statement"].replace("floor", "elsa")
    kept.write_text(json.dumps(lines[0]))
    code, said = told(files, "--anchor", kept, "--trust", public)
    assert code == verifier.UNREADABLE, "nobody else's name can be put there"


@pytest.mark.slow
def test_the_floor_signs_nothing_that_does_not_continue_what_it_keeps(
    sabot: Sabot, day: Day, tmp_path: Path, floor: tuple[Path, Path, str]
) -> None:
    key, kept, _ = floor
    sign = ("evidence", "countersign", "--key", key, "--kept", kept, "--json")
    files = day.copy(tmp_path / "copy")
    assert sabot(*sign, *files).code == 0
    before = kept.read_bytes()
    ran = sabot(*sign, *day.copy(tmp_path / "old", "middle"))
    rows, old = day.end[0].split()[3], day.middle[0].split()[3]
    assert ran.code == 5
    assert ran.lines[-1]["message"].endswith(
        f": ROLLBACK: the floor keeps row {rows}, and this checkpoint is of row {old}"
    )
    _, record = day.copy(tmp_path / "forked")
    with opened(record) as db:
        changed = db.execute(
            """UPDATE rows SET body = replace(body, '"round":1', '"round":2')
            WHERE number = (SELECT min(number) FROM rows WHERE body LIKE '%"round":1%')"""
        )
        assert changed.rowcount == 1
    rehash(record)
    sign_again(record, day.key)
    ran = sabot(*sign, record)
    assert (ran.code, ": FORK: the floor keeps another row " in ran.lines[-1]["message"]) == (5, True)
    _, record = day.copy(tmp_path / "other")
    sign_again(record, OTHER_KEY)
    ran = sabot(*sign, record)
    assert (ran.code, ": OTHER KEY: the floor keeps " in ran.lines[-1]["message"]) == (5, True)
    assert kept.read_bytes() == before, "nothing was signed"


def test_lines_of_show_are_countersigned_and_are_anchors(
    sabot: Sabot, day: Day, tmp_path: Path, floor: tuple[Path, Path, str]
) -> None:
    key, kept, public = floor
    files = day.copy(tmp_path / "copy")
    lines = tmp_path / "checkpoints.jsonl"
    lines.write_text(sabot("evidence", "show", *files, "--json").out)
    assert told(files, "--anchor", lines)[0] == verifier.OK
    assert sabot("evidence", "countersign", lines, "--key", key, "--kept", kept).code == 0
    assert told(files, "--anchor", kept, "--trust", public)[0] == verifier.OK


def test_a_key_file_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    drawn = draw_signing_key(path, b"a passphrase")
    assert read_signing_key(path, b"a passphrase").public == drawn.public
    for passphrase, words in ((b"", "has a passphrase"), (b"another", "no key, or another passphrase")):
        with pytest.raises(SigningKeyUnusable, match=words):
            read_signing_key(path, passphrase)
    with pytest.raises(SigningKeyUnusable, match="there is a file of this name"):
        draw_signing_key(path)
    path.chmod(0o644)
    with pytest.raises(SigningKeyUnusable, match="users other than its owner"):
        read_signing_key(path, b"a passphrase")
    path.write_text("no key")
    path.chmod(0o600)
    with pytest.raises(SigningKeyUnusable, match="no key"):
        read_signing_key(path)
