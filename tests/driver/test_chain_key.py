"""``sabot provision --chain-key``, and a journal from which the device's chain of events can be followed."""

import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest
from chained import BEGUN, CHECKPOINT, BrokenChain, Follower
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver.journal import Journal


def provisioned(sabot: Sabot, target: Tcp, file: Path) -> dict[str, str]:
    """What the file for the regulator holds."""
    ran = sabot("provision", "--device", target.listener.url, "--simulator", "--chain-key", file, "--json")
    assert ran.code == 0
    assert ran.of("chain_key")[0]["chain_key_file"] == str(file)
    read: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return read


def boots(journal: Path) -> list[list[bytes]]:
    """The events of a journal as the device hashed them, boot by boot."""
    found: dict[tuple[bytes, int], list[bytes]] = {}
    with Journal(journal) as opened:
        for row in opened.entries():
            if row.is_gap:
                continue
            seconds, ms = divmod(row.utc_ms or 0, 1000)
            head = struct.pack("<BBI", row.message, row.quality, row.n)
            head += struct.pack("<IIIH", row.boot_id, row.ticks_ms, seconds, ms)
            found.setdefault((row.memory_id, row.boot_id), []).append(head + row.body)
    return list(found.values())


def test_the_journal_holds_a_chain_that_the_regulators_key_proves(
    sabot: Sabot, tmp_path: Path, home: Path
) -> None:
    target = Tcp(tmp_path)
    kept = provisioned(sabot, target, tmp_path / "regulator.json")
    assert kept["format"] == "sabot chain key 1"
    device = ("--device", target.listener.url, "--simulator")
    target.close()
    (journal,) = (home / "journals" / "simulators").glob("*.db")
    assert sabot("status", *device).code != 0
    (events,) = boots(journal)
    follower = Follower(bytes.fromhex(kept["serial"]), bytes.fromhex(kept["key"]))
    follower.boot(events)
    assert follower.checkpoints
    assert [each[0] for each in events].count(BEGUN) == 1
    last = max(at for at, each in enumerate(events) if each[0] == CHECKPOINT)
    changed = bytearray(events[last - 1])
    changed[-1] ^= 1
    with pytest.raises(BrokenChain):
        Follower(bytes.fromhex(kept["serial"])).boot([*events[: last - 1], bytes(changed), *events[last:]])


def test_the_verifier_proves_a_real_devices_events_with_the_regulators_key(
    sabot: Sabot, tmp_path: Path, home: Path
) -> None:
    target = Tcp(tmp_path)
    file = tmp_path / "regulator.json"
    kept = provisioned(sabot, target, file)
    device = ("--device", target.listener.url, "--simulator")
    assert sabot("status", *device).code == 0
    target.close()
    (journal,) = (home / "journals" / "simulators").glob("*.db")
    assert "without K_0 nothing of the device is proved" in sabot("evidence", "verify", journal).out
    told = sabot("evidence", "verify", journal, "--chain-key", file)
    assert "proved: events of the device up to link " in told.out
    assert "everything fits; nothing is known after the newest row" in told.out
    other = {**kept, "key": kept["key"][::-1]}
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    forged = sabot("evidence", "verify", journal, "--chain-key", tmp_path / "other.json")
    assert forged.code != 0
    assert "has a wrong tag: the device did not make it" in forged.out


def test_the_device_itself_says_how_far_its_chain_goes(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    """Somebody puts the journal back to an older copy; what the device said was carried away before."""
    target = Tcp(tmp_path)
    provisioned(sabot, target, tmp_path / "regulator.json")
    device = ("--device", target.listener.url, "--simulator")
    (journal,) = (home / "journals" / "simulators").glob("*.db")
    older = tmp_path / "older.db"
    with closing(sqlite3.connect(journal)) as now, closing(sqlite3.connect(older)) as copy:
        now.backup(copy)
    assert sabot("service", "out-of-order", *device).code == 0
    anchor = tmp_path / "device.json"
    (told,) = sabot("evidence", "ask-device", *device, "--out", anchor, "--json").of("device_checkpoint")
    assert json.loads(anchor.read_text())["index"] == told["index"] > 0
    target.close()
    key = ("--chain-key", tmp_path / "regulator.json")
    known = sabot("evidence", "verify", journal, "--device-checkpoint", anchor, *key)
    assert known.code == 8, known.out  # of the PC's own rows nothing shows the newest
    assert f"the device itself knew no event after event {told['index']} of its chain" in known.out
    back = sabot("evidence", "verify", older, "--device-checkpoint", anchor)
    assert back.code == 5
    assert f"ROLLBACK: put back to an older state: the device has event {told['index']}" in back.out


def test_the_key_is_only_in_its_file(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    key = bytes.fromhex(provisioned(sabot, target, tmp_path / "regulator.json")["key"])
    target.close()
    for path in home.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            assert key not in held, path
            assert key.hex().encode() not in held.lower(), path
    assert (tmp_path / "regulator.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("where", ["home", "linked", "there"])
def test_a_file_that_must_not_be_is_refused_before_the_device_is_asked(
    sabot: Sabot, tmp_path: Path, home: Path, where: str
) -> None:
    """In the table's folders, also through a link to them, or in the place of another file."""
    target = Tcp(tmp_path)
    home.mkdir(exist_ok=True)
    file = tmp_path / "regulator.json"
    if where == "there":
        file.write_text("not to be lost", encoding="utf-8")
    elif where == "home":
        file = home / "regulator.json"
    else:
        (tmp_path / "stick").symlink_to(home)
        file = tmp_path / "stick" / "regulator.json"
    device = ("--device", target.listener.url, "--simulator")
    ran = sabot("provision", *device, "--chain-key", file, "--json")
    assert ran.code != 0
    assert ran.lines[-1]["error"] == "ChainKeyFileRefused"
    assert file.exists() == (where == "there")
    assert where != "there" or file.read_text(encoding="utf-8") == "not to be lost"
    assert provisioned(sabot, target, tmp_path / "good.json")["key"]  # nothing has happened before
    target.close()


def test_a_device_that_has_its_key_gives_no_chain_key(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    provisioned(sabot, target, tmp_path / "first.json")
    device = ("--device", target.listener.url, "--simulator")
    ran = sabot("provision", *device, "--chain-key", tmp_path / "second.json", "--json")
    assert ran.code != 0
    assert not (tmp_path / "second.json").exists()
    target.close()
