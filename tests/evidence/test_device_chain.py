"""The device's part of a journal: proved with K_0, gaps named or not, and no word too much without K_0."""

import json
import sqlite3
from pathlib import Path

import pytest
from tests.evidence.device_chain import ChainedDevice
from tests.evidence.edits import rehash, sign_again

from sabot_evidence import verifier
from sabot_evidence.pc_key import load_pc_key


def said(
    device: ChainedDevice, tmp_path: Path, *options: object, key: bool = True, edit: str = ""
) -> list[str]:
    """What the verifier says of a journal, whose PC even signs an edited one."""
    path = device.journal(tmp_path / "journal.db")
    if edit:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute(edit)
        db.close()
        rehash(path)
        sign_again(path, load_pc_key(tmp_path))
    words: list[str] = []
    given = ["--chain-key", str(device.key_file(tmp_path / "k0.json"))] if key else []
    verifier.run([str(path), *given, *map(str, options)], words.append)
    return [each.partition(": ")[2] for each in words if each.startswith("journal.db: ")]


def test_events_are_proved_up_to_the_newest_checkpoint(chained: ChainedDevice, tmp_path: Path) -> None:
    told = said(chained, tmp_path)
    assert (
        "proved: events of the device up to link 17 are proved by its tags; the newest 3 are not yet" in told
    )


def test_without_k_0_nothing_of_the_device_is_called_proved(chained: ChainedDevice, tmp_path: Path) -> None:
    told = said(chained, tmp_path, key=False)
    words = "checked: 20 events of the device: their hashes fit; without K_0 nothing of the device is proved"
    assert words in told
    assert not any("proved:" in each for each in told)


@pytest.mark.parametrize("key", [True, False])
def test_an_edited_event_is_found_even_if_the_pc_signed_it(
    chained: ChainedDevice, tmp_path: Path, key: bool
) -> None:
    told = said(chained, tmp_path, key=key, edit="UPDATE events SET body = x'05' WHERE id = 7")
    assert (
        told.count("CHANGED: the device's checkpoint of link 17 has another hash than the events before it")
        == 1
    )


def test_a_forged_checkpoint_has_a_wrong_tag(chained: ChainedDevice, tmp_path: Path) -> None:
    chained.key = bytes(32)  # somebody who has the PC and not the device's key goes on with its chain
    chained.checkpoint()
    told = said(chained, tmp_path)
    assert "CHANGED: the device's checkpoint of link 21 has a wrong tag: the device did not make it" in told
    assert not any("CHANGED" in each for each in said(chained, tmp_path / "other", key=False))


def test_a_gap_that_the_device_names_is_told_with_its_cause(chained: ChainedDevice, tmp_path: Path) -> None:
    chained.located(5, arrives=False)
    chained.located(2)
    chained.name_gap(1, (1, 20), (1, 25))
    chained.checkpoint()
    told = said(chained, tmp_path)
    assert "gap: events after (1, 20) and before (1, 26) are missing: no room in the device" in told
    assert not any(each.split(":")[0].isupper() for each in told)
    assert any(each.startswith("proved: events of the device up to link 24 ") for each in told)


def test_a_power_cut_that_lost_events_is_a_named_gap(chained: ChainedDevice, tmp_path: Path) -> None:
    chained.located(4, arrives=False)
    chained.reboot()
    chained.name_gap(2, (1, 20), (1, 24))
    chained.checkpoint()
    chained.located(2)
    chained.checkpoint()
    told = said(chained, tmp_path)
    assert "gap: events after (1, 20) and before (2, 1) are missing: the device lost power" in told
    assert not any(each.split(":")[0].isupper() for each in told)


def test_a_power_cut_that_lost_nothing_is_no_gap(chained: ChainedDevice, tmp_path: Path) -> None:
    for lost in (False, True):
        chained.reboot()
        if lost:  # the device does not know that its owner has everything
            chained.name_gap(2, (1, 18), (2, chained.n if chained.boot == 2 else 3))
        chained.located(1)
        chained.checkpoint()
    told = said(chained, tmp_path)
    assert not any(each.startswith(("gap", "HOLE", "CHANGED")) for each in told)


def test_a_hole_that_the_device_does_not_name_is_one(chained: ChainedDevice, tmp_path: Path) -> None:
    chained.located(5, arrives=False)
    chained.wire_gap(1, (1, 20), (1, 26))  # what the PC says of it is no proof
    chained.located(2)
    chained.checkpoint()
    told = said(chained, tmp_path)
    words = "HOLE: events after (1, 20) and before (1, 26) are missing, and no gap names them"
    assert words in told


def test_the_device_knows_how_far_its_chain_goes(chained: ChainedDevice, tmp_path: Path) -> None:
    chained.checkpoint()
    index, hash = chained.hashes[1, 20]
    anchor = tmp_path / "device.json"
    anchor.write_text(json.dumps({"index": index, "hash": hash.hex()}))
    told = said(chained, tmp_path, "--device-checkpoint", anchor)
    assert "complete: the device itself knows no event after event 20 of its chain" in told
    anchor.write_text(json.dumps({"index": 40, "hash": hash.hex()}))
    told = said(ChainedDevice(), tmp_path / "older", "--device-checkpoint", anchor)
    words = "the device has event 40 of its chain, and this file ends at event 2"
    assert f"ROLLBACK: put back to an older state: {words}" in told
    anchor.write_text(json.dumps({"index": 19, "hash": bytes(32).hex()}))
    other = ChainedDevice()
    other.located(17)
    other.checkpoint()
    told = said(other, tmp_path / "fork", "--device-checkpoint", anchor)
    assert "FORK: two bodies for event 19 of the device's chain: the device has another one" in told


@pytest.mark.parametrize("text", ["", "{}", '{"format": "sabot chain key 2"}'])
def test_a_file_that_is_no_chain_key_is_refused(chained: ChainedDevice, tmp_path: Path, text: str) -> None:
    key = tmp_path / "bad.json"
    key.write_text(text)
    words: list[str] = []
    path = chained.journal(tmp_path / "journal.db")
    assert verifier.run([str(path), "--chain-key", str(key)], words.append) == verifier.UNREADABLE
    assert "not a chain key" in words[0]
