"""Files that are made to deceive or stop who verifies: checkpoints without a device, archives, databases."""

import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.attacks.rewriting import sql
from tests.driver.command import Sabot
from tests.evidence.day import Day
from tests.evidence.device_chain import SERIAL, ChainedDevice
from tests.evidence.edits import rehash, sign_again

from sabot_cli.shuffle_evidence import ShuffleEvidence
from sabot_evidence import verifier
from sabot_evidence.chain import SIGNED_AS
from sabot_evidence.pc_key import load_pc_key
from sabot_protocol.notifications import EventReceived


def _run(*arguments: object) -> tuple[int, str]:
    said: list[str] = []
    code = verifier.run([str(each) for each in arguments], said.append)
    return code, "\n".join(said)


def _device_file(path: Path, index: int, hash: bytes, event: bytes = b"") -> Path:
    """A file as ``sabot evidence ask-device`` writes it."""
    told = {"serial": SERIAL.decode(), "index": index, "hash": hash.hex(), "event_hex": event.hex()}
    path.write_text(json.dumps(told))
    return path


def _newest(device: ChainedDevice) -> tuple[int, bytes, bytes]:
    """Index, hash and bytes of a checkpoint that the device makes now."""
    index, hash = device.index, device.hash
    device.checkpoint()
    made = device.sent[-1]
    assert isinstance(made, EventReceived)
    head = struct.pack("<BBIIIIH", 0xAB, 1, made.n, made.boot_id, made.ticks_ms, 1_700_000_000, 5)
    return index, hash, head + made.body


def test_a_devices_checkpoint_that_no_device_made(tmp_path: Path) -> None:
    """A line of JSON that anybody can write counted as the device's word, also where K_0 was given.

    It called a journal that had lost its newest events complete, and an honest journal put back or forked.
    """
    device = ChainedDevice()
    device.located(5)
    index, hash, event = _newest(device)
    key = device.key_file(tmp_path / "k0.json")
    honest = device.journal(tmp_path / "journal.db")
    forged = bytearray(event)
    forged[-1] ^= 1
    files = {
        "genuine": _device_file(tmp_path / "genuine.json", index, hash, event),
        "later": _device_file(tmp_path / "later.json", 40, hash),
        "fork": _device_file(tmp_path / "fork.json", index, bytes(32)),
        "tag": _device_file(tmp_path / "tag.json", index, hash, bytes(forged)),
        "other event": _device_file(tmp_path / "event.json", index + 1, hash, event),
        "far": _device_file(tmp_path / "far.json", 0xFFFFFFFE, hash, event),
    }
    for name, file in files.items():
        code, said = _run(honest, "--chain-key", key, "--device-checkpoint", file)
        expected = verifier.OPEN_END if name == "genuine" else verifier.UNREADABLE
        assert code == expected, (name, said)
    code, said = _run(honest, "--chain-key", key, "--device-checkpoint", files["genuine"])
    assert f"complete: the device itself knew no event after event {index}" in said


def test_a_forged_index_does_not_keep_the_verifier_busy(tmp_path: Path) -> None:
    """A checkpoint of event 4,294,967,295 made the verifier compute that many keys, for an hour."""
    device = ChainedDevice()
    device.located(3)
    told = struct.pack("<III", 1, device.n, 0xFFFFFFFE) + bytes(32) + bytes(16)
    device.event(0xAB, told)
    code, said = _run(
        device.journal(tmp_path / "journal.db"), "--chain-key", device.key_file(tmp_path / "k0.json")
    )
    assert code == verifier.WRONG
    assert "has a wrong tag: the device did not make it" in said


def test_events_that_a_failing_memory_did_not_save_are_not_called_missing(tmp_path: Path) -> None:
    """Critical memory failed, three events were sent, and power was cut.

    The verifier said that events were missing after these three. None was.
    """
    device = ChainedDevice()
    device.located(5)
    start, saved = (device.boot, device.n - 2), (device.boot, device.n)
    before = device.index, device.hash, device.key
    device.located(3)
    device.index, device.hash, device.key = before
    device.reboot()
    device.name_gap(2, start, saved)
    device.checkpoint()
    code, said = _run(
        device.journal(tmp_path / "journal.db"), "--chain-key", device.key_file(tmp_path / "k0.json")
    )
    assert code == verifier.WRONG  # somebody may have added them
    assert "UNSIGNED: 3 events after (1, 7) up to (1, 10) are in no chain of the device" in said
    assert "HOLE" not in said
    assert "CHANGED" not in said


@pytest.mark.slow
def test_an_archive_does_not_fill_the_disk(tmp_path: Path) -> None:
    """An archive of 300 KB unpacked to 300 MB in the temporary folder of who verified it, and so on."""
    bomb, twice = tmp_path / "bomb.zip", tmp_path / "twice.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.db", "w") as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    code, said = _run(bomb)
    assert code == verifier.UNREADABLE
    assert "would unpack to 314,572,800 bytes" in said
    with zipfile.ZipFile(twice, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.db", b"shown to one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.db", b"shown to another")
    code, said = _run(twice)
    assert code == verifier.UNREADABLE
    assert "a.db is in this archive twice" in said


def test_a_database_that_never_ends(tmp_path: Path) -> None:
    """A table was a view that counts without end: the verifier read it until the memory was full."""
    for number, name in enumerate(("meta", "checkpoints", "chain")):
        path = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as db:
            for other in {"meta", "checkpoints", "chain", "events", "commands"} - {name}:
                db.execute(f"CREATE TABLE {other} (name, value)")
            db.execute(
                f"CREATE VIEW {name} AS WITH RECURSIVE n(name, value) AS "
                "(SELECT 1, 1 UNION ALL SELECT name + 1, 1 FROM n) SELECT * FROM n"
            )
            db.commit()
        code, said = _run(path)
        assert code == verifier.UNREADABLE
        assert f"{name} is no plain table" in said


def _statement(**values: object) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda told: {**told, **values}


@pytest.mark.parametrize(
    "change",
    [
        _statement(why="cut", about=None),
        _statement(why="cut", about={"link": "x", "hash": "zz"}),
        _statement(why="key", about=None),
        _statement(why="begun", about={"old_rows": "x"}),
        _statement(seen={"of": 1}),
        _statement(key="no key"),
        _statement(at_us=10**40, row=10**40),
    ],
)
def test_a_checkpoint_that_stops_the_verifier(
    played: Day, tmp_path: Path, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    """Somebody with the PC's key signed details of another shape: the verifier ended with a traceback.

    Its exit code was then 1, a file that cannot be read, and nothing was said about any other file.
    """
    _, record = played.copy(tmp_path)
    with closing(sqlite3.connect(record)) as db:
        n, text = db.execute("SELECT n, statement FROM checkpoints ORDER BY n DESC").fetchone()
        made = json.dumps(change(json.loads(text)), sort_keys=True, separators=(",", ":"))
        signature = played.key.sign(SIGNED_AS + made.encode())
        db.execute("UPDATE checkpoints SET statement = ?, signature = ? WHERE n = ?", (made, signature, n))
        db.commit()
    code, said = _run(record)
    assert code == verifier.WRONG, said


def test_cells_of_other_types_stop_no_verifier(played: Day, tmp_path: Path) -> None:
    """SQLite takes a row's number or a time as text, and the verifier ended with a traceback."""
    journal, _ = played.copy(tmp_path)
    sql(journal, "UPDATE events SET at_us = 'soon' WHERE id = 20")
    rehash(journal)
    sign_again(journal, load_pc_key(tmp_path))
    assert _run(journal)[0] == verifier.WRONG
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE meta (name, value)")
        db.execute("CREATE TABLE checkpoints (n, statement, signature)")
        db.execute("CREATE TABLE rows (number, body, hash)")
        db.execute("INSERT INTO rows VALUES ('one', 7, 'x')")
        db.execute("INSERT INTO checkpoints VALUES ('one', ?, x'00')", ("[" * 100_000,))
        db.commit()
    assert _run(other)[0] == verifier.WRONG


def test_an_audit_of_numbers_that_no_device_tells(sabot: Sabot, home: Path, tmp_path: Path) -> None:
    """Lines with a number too large, or nested too deep, ended ``sabot audit`` with a traceback.

    Two shuffles, 1 and 4,294,967,295, made it list all numbers between them until the memory was full.
    """
    revealed = {
        "event": "shuffle_revealed", "shuffle_id": 2, "deck_id": 1, "cards": 52, "commitment": "00",
        "seed": "00", "nonce": "00", "placed": [1],
    }  # fmt: skip
    lines = tmp_path / "lines.jsonl"
    for text in (
        json.dumps({**revealed, "cards": 10**10}),
        json.dumps({**revealed, "deck_id": -1}),
        json.dumps({**revealed, "shuffle_id": 2**40}),
        json.dumps({**revealed, "shuffle_id": float("inf")}),
        "[" * 200_000,
    ):
        lines.write_text(text + "\n")
        ran = sabot("audit", lines)
        assert ran.code == 1, ran.err
        assert "Give a journal" in ran.err
    evidence = ShuffleEvidence()
    evidence.complete.append("journal")
    for number in (1, 3, 0xFFFFFFFF):
        evidence.shuffle(number).add("deck", 1, "journal")
    assert evidence.missing() == [(b"", 2, 2), (b"", 4, 0xFFFFFFFE)]


def test_a_journal_with_other_cells_ends_no_command(
    played: Day, sabot: Sabot, home: Path, tmp_path: Path
) -> None:
    """A text where bytes or a time belong ended ``journal events`` and ``audit`` with a traceback."""
    for number, edit in enumerate(
        (
            "UPDATE events SET body = 'text', message = 170",
            "UPDATE events SET at_us = 9000000000000000000",
            "UPDATE events SET utc_ms = 'soon'",
            "UPDATE meta SET value = 1000000000 WHERE name = 'serial'",
        )
    ):
        journal, _ = played.copy(tmp_path / str(number))
        sql(journal, edit)
        for command in (("journal", "events", "--file"), ("audit", "--journal")):
            ran = sabot(*command, journal)
            assert ran.code in (1, 5), (edit, command)
            assert ran.err or "CHANGED" in ran.out
