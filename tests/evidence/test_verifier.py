"""The verifier: alone in an empty environment, its words and exit codes, and what it is given."""

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from tests.evidence.day import Day
from tests.evidence.edits import opened, sign_again

from sabot_cli import main
from sabot_evidence import verifier
from sabot_session.record import SqliteRecord
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_table.procedure import TableRole

VERIFIER = Path(verifier.__file__)


def told(day: Day, tmp_path: Path, *options: object) -> tuple[int, list[str]]:
    """The exit code and the lines for the day's files."""
    said: list[str] = []
    files = day.copy(tmp_path / "copy")
    return verifier.run([*map(str, files), *map(str, options)], said.append), said


def kept(tmp_path: Path, text: str) -> Path:
    """A file of the floor's."""
    path = tmp_path / "floor.txt"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_it_runs_alone_in_an_empty_environment(day: Day, tmp_path: Path) -> None:
    """An environment with nothing but cryptography and what that needs, and a copy of the one file."""
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    here = Path(sys.modules["cryptography"].__file__ or "").parent.parent
    for name in ("cryptography", "cffi", "pycparser"):
        if (here / name).is_dir():
            shutil.copytree(here / name, site / name)
    for path in here.glob("_cffi_backend*"):
        shutil.copy(path, site)
    alone = shutil.copy(VERIFIER, tmp_path / "alone.py")
    files = day.copy(tmp_path / "copy")
    anchor = kept(tmp_path, "\n".join(day.end))
    ran = subprocess.run(
        [tmp_path / "env/bin/python", "-I", alone, *files, "--anchor", anchor],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("everything fits, and an anchor shows the newest row\n")
    lost = subprocess.run(
        [tmp_path / "env/bin/python", "-I", "-c", "import sabot_evidence"], capture_output=True, check=False
    )
    assert lost.returncode != 0, "the environment is not empty"


def test_it_says_how_far_it_knows(day: Day, tmp_path: Path) -> None:
    code, said = told(day, tmp_path)
    assert code == verifier.OPEN_END
    assert said[-1] == "everything fits; nothing is known after the newest row, because no anchor shows it"
    (tail,) = [each for each in said if each.startswith("record.db: tail:")]
    row = day.end[1].split()[3]
    assert tail.startswith(f"record.db: tail: complete up to row {row} of 20")
    assert tail.endswith(", nothing known after")
    code, said = told(day, tmp_path, "--anchor", kept(tmp_path, "\n".join(day.middle)))
    assert code == verifier.OPEN_END
    row = day.middle[1].split()[3]
    assert any(each.endswith(f", nothing known after; the floor's line shows row {row}") for each in said)


def test_it_prints_gaps_for_each_thousand_rounds(day: Day, tmp_path: Path) -> None:
    _, said = told(day, tmp_path)
    assert any(" per 1,000 rounds" in each and each.startswith("gaps: ") for each in said)
    report = verifier.Report(rounds=400, gaps=3)
    assert report.gap_rate == 7.5
    assert "gaps: 3 in 400 rounds, 7.5 per 1,000 rounds" in list(verifier.lines(report))


def test_json_has_every_finding(day: Day, tmp_path: Path) -> None:
    code, said = told(day, tmp_path, "--json")
    (line,) = said
    told_json = json.loads(line)
    assert told_json["code"] == code == verifier.OPEN_END
    assert {each["kind"] for each in told_json["findings"]} >= {"checked", "tail"}
    assert told_json["rows"] > 100


@pytest.mark.parametrize("content", [None, b"", b"nothing of ours", b"SQLite format 3\x00" + bytes(100)])
def test_a_file_that_is_no_evidence_is_said(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    said: list[str] = []
    assert verifier.run([str(path)], said.append) == verifier.UNREADABLE
    assert str(path) in said[0]


@pytest.mark.parametrize("text", ["", "row 7", "{}", '{"statement": "x", "signature": "00"}', "{"])
def test_an_anchor_that_is_none_is_refused(day: Day, tmp_path: Path, text: str) -> None:
    code, said = told(day, tmp_path, "--anchor", kept(tmp_path, text))
    assert code == verifier.UNREADABLE
    assert "floor.txt" in said[0]


def test_an_export_holds_both_files_and_the_verifier(
    day: Day, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(each) for each in day.copy(tmp_path / "copy")]
    out = tmp_path / "evidence.zip"
    assert main.run(["evidence", "export", *files, "--out", str(out)]) == 0
    with zipfile.ZipFile(out) as archive:
        assert sorted(archive.namelist()) == [
            "README.txt", "checkpoints.jsonl", "journal.db", "record.db", "verifier.py",
        ]  # fmt: skip
        assert archive.read("verifier.py") == VERIFIER.read_bytes()
        anchor = kept(tmp_path, archive.read("checkpoints.jsonl").decode())
    capsys.readouterr()
    assert main.run(["evidence", "verify", str(out), "--anchor", str(anchor), "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["event"], last["code"]) == ("evidence", 0)
    assert main.run(["evidence", "show", *files]) == 0
    shown = capsys.readouterr().out.split()
    assert shown == "\n".join(day.end).split()
    assert main.run(["evidence", "verify", str(tmp_path / "none.db")]) == 1
    assert main.run(["evidence", "verify", *files, "--table", "x"]) == 2


def test_the_quick_pass_says_what_the_careful_one_says(
    day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Honest records are read by the quick pass; both passes count the same rows, rounds and anchors."""
    (_, record) = day.copy(tmp_path / "copy")
    anchor = kept(tmp_path, "\n".join((*day.middle, *day.end)))
    passed: list[bool] = []
    told_of = []
    quick = verifier.ChainCheck._fits_at_once
    for careful in (False, True):

        def chosen(check: verifier.ChainCheck, careful: bool = careful) -> bool:
            passed.append(not careful and quick(check))
            return passed[-1]

        monkeypatch.setattr(verifier.ChainCheck, "_fits_at_once", chosen)
        said: list[str] = []
        code = verifier.run([str(record), "--anchor", str(anchor), "--json"], said.append)
        told_of.append((code, json.loads(said[0])))
    assert passed == [True, False]
    assert told_of[0] == told_of[1]
    assert told_of[0][1]["rounds"] >= 3


@pytest.mark.parametrize("back_s", [0, 3600])
def test_the_quick_pass_knows_a_clock_that_was_set_back(tmp_path: Path, back_s: int) -> None:
    path = tmp_path / "record.db"
    dealer = Actor("d1", TableRole.DEALER, Authentication.PIN)
    with SqliteRecord(path) as record:
        for at_s in (1_789_000_000, 1_789_000_060 - back_s, 1_789_000_061 - back_s):
            record.commit([Row("idle", at_s, dealer)], SavedSession("{}", 0))
    file = verifier.EvidenceFile(path)
    report = verifier.Report()
    checkpoints = verifier.check_checkpoints(file, (), report)
    check = verifier.ChainCheck(file, checkpoints, (), report)
    assert check._fits_at_once()
    unnamed = [each for each in checkpoints if each.told["why"] != "clock"]
    assert verifier.ChainCheck(file, unnamed, (), report)._fits_at_once() is (back_s == 0)
    file.db.close()


def test_a_checkpoint_of_an_older_row_than_the_one_before_it_is_found(day: Day, tmp_path: Path) -> None:
    """Whoever has the PC's key could hide rows from the reader of a checkpoint; its hash fits that row."""
    (_, record) = day.copy(tmp_path / "copy")
    with opened(record) as db:
        kept = [row[0] for row in db.execute("SELECT n FROM checkpoints ORDER BY n")]
        (text,) = db.execute("SELECT statement FROM checkpoints WHERE n = ?", (kept[-2],)).fetchone()
        text = json.dumps({**json.loads(text), "row": 1}, sort_keys=True, separators=(",", ":"))
        db.execute("UPDATE checkpoints SET statement = ? WHERE n = ?", (text, kept[-2]))
    sign_again(record, day.key)
    said: list[str] = []
    assert verifier.run([str(record)], said.append) == verifier.WRONG
    words = f"checkpoint {kept[-2]} is of an older row than checkpoint {kept[-3]}"
    assert [each for each in said if " REORDERED: " in each] == [f"record.db: REORDERED: {words}"]


@pytest.mark.parametrize("same", [True, False], ids=["this row", "another row"])
def test_an_anchor_of_a_row_that_a_program_added_after_reading_began(tmp_path: Path, same: bool) -> None:
    """The anchor is compared with that row as the file has it now; that there is one proves nothing."""
    path = tmp_path / "record.db"
    dealer = Actor("d1", TableRole.DEALER, Authentication.PIN)
    with SqliteRecord(path) as record:
        record.commit([Row("idle", 1_789_000_000, dealer)], SavedSession("{}", 0))
        file = verifier.EvidenceFile(path)
        record.commit([Row("idle", 1_789_000_001, dealer)], SavedSession("{}", 0))
    hash = file.hash_now(2) if same else bytes(32)
    assert hash is not None
    anchor = verifier.Anchor("the floor's line", "record", file.chain, 2, hash.hex(), True)
    report = verifier.verify([file], anchors=[anchor])
    file.db.close()
    assert ("rollback" in [each.kind for each in report.findings]) is not same


@pytest.mark.parametrize(
    ("name", "table", "cell", "value"),
    [
        ("record.db", "rows", "hash", "text"),
        ("record.db", "rows", "hash", 7),
        ("journal.db", "chain", "hash", 1.5),
        ("journal.db", "events", "at_us", "text"),
        ("journal.db", "events", "memory_id", -1),
        ("journal.db", "events", "memory_id", 1 << 62),
    ],
)
def test_a_cell_of_another_type_is_a_finding(
    day: Day, tmp_path: Path, name: str, table: str, cell: str, value: object
) -> None:
    """SQLite stores any type in any column. Such a cell ended the verifier without a verdict."""
    files = day.copy(tmp_path / "copy")
    with opened(tmp_path / "copy" / name) as db:
        db.execute(f"UPDATE {table} SET {cell} = ? WHERE rowid = 5", (value,))
    said: list[str] = []
    assert verifier.run([*map(str, files)], said.append) == verifier.WRONG
    assert any(each.startswith(f"{name}: CHANGED: ") for each in said)


@pytest.mark.parametrize(
    "told",
    [
        {"why": "key", "about": None},
        {"why": "cut", "about": None},
        {"why": "cut", "about": {"commands": 0, "events": 0, "hash": "no", "link": 1}},
        {"why": "begun", "about": {"old_rows": "all"}},
        {"seen": {}},
        {"seen": {"of": "journal", "chain": "", "row": "1", "hash": ""}},
    ],
    ids=str,
)
def test_a_signed_checkpoint_without_what_its_reason_needs_is_a_finding(
    day: Day, tmp_path: Path, told: dict[str, object]
) -> None:
    """Whoever has a key can sign anything. Such a checkpoint ended the verifier without a verdict."""
    files = day.copy(tmp_path / "copy")
    with opened(files[1]) as db:
        n, text = db.execute("SELECT n, statement FROM checkpoints ORDER BY n DESC LIMIT 1").fetchone()
        text = json.dumps({**json.loads(text), **told}, sort_keys=True, separators=(",", ":"))
        db.execute("UPDATE checkpoints SET statement = ? WHERE n = ?", (text, n))
    sign_again(files[1], day.key)
    said: list[str] = []
    assert verifier.run([*map(str, files)], said.append) == verifier.WRONG
    assert any(each.startswith(f"record.db: CHANGED: checkpoint {n} is changed") for each in said)


def test_a_file_with_other_columns_is_a_finding(day: Day, tmp_path: Path) -> None:
    """A table that was made anew may hold numbers of rows that are no numbers."""
    files = day.copy(tmp_path / "copy")
    with opened(files[1]) as db:
        db.execute("CREATE TABLE other AS SELECT * FROM rows")
        db.execute("UPDATE other SET number = 'five' WHERE number = 5")
        db.execute("DROP TABLE rows")
        db.execute("ALTER TABLE other RENAME TO rows")
    said: list[str] = []
    assert verifier.run([*map(str, files)], said.append) == verifier.WRONG
    assert any("values that no program of the table writes" in each for each in said)
