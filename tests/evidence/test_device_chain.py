"""The device's part of a journal: proved with K_0, gaps named or not, and no word too much without K_0."""

import json
import sqlite3
from pathlib import Path

import pytest
from tests.evidence.device_chain import SERIAL, ChainedDevice
from tests.evidence.edits import rehash, sign_again

from sabot_evidence import verifier
from sabot_evidence.pc_key import load_pc_key

SERIAL_TEXT = SERIAL.hex().upper()


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
    anchor.write_text(json.dumps({"serial": SERIAL_TEXT, "index": index, "hash": hash.hex()}))
    told = said(chained, tmp_path, "--device-checkpoint", anchor, key=False)
    assert "complete: the device itself knew no event after event 20 of its chain when it was asked" in told
    anchor.write_text(json.dumps({"serial": SERIAL_TEXT, "index": 40, "hash": hash.hex()}))
    told = said(ChainedDevice(), tmp_path / "older", "--device-checkpoint", anchor, key=False)
    words = "the device has event 40 of its chain, and this file ends at event 2"
    assert f"ROLLBACK: put back to an older state: {words}" in told
    anchor.write_text(json.dumps({"serial": SERIAL_TEXT, "index": 19, "hash": bytes(32).hex()}))
    other = ChainedDevice()
    other.located(17)
    other.checkpoint()
    told = said(other, tmp_path / "fork", "--device-checkpoint", anchor, key=False)
    assert "FORK: two bodies for event 19 of the device's chain: the device has another one" in told


def device_checkpoint(tmp_path: Path, index: int, hash: bytes) -> Path:
    """A file of ``sabot evidence ask-device`` without its tag, as K_0 is not given either."""
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"serial": SERIAL_TEXT, "index": index, "hash": hash.hex()}))
    return path


def test_another_devices_checkpoint_is_not_compared(chained: ChainedDevice, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"serial": "SIM00099", "index": 7, "hash": bytes(32).hex()}))
    told = said(chained, tmp_path, "--device-checkpoint", other)
    assert "checked: no device's checkpoint that was given is of this file's device" in told
    assert not any(each.startswith(("FORK", "complete", "ROLLBACK")) for each in told)
    index, hash = chained.hashes[1, 7]
    own = device_checkpoint(tmp_path, index, hash)
    both = ("--device-checkpoint", other, "--device-checkpoint", own)
    told = said(chained, tmp_path / "both", *both, key=False)
    assert any("fits event 7 of its chain" in each for each in told)


def test_the_devices_checkpoint_of_an_event_that_has_none_in_the_journal(
    chained: ChainedDevice, tmp_path: Path
) -> None:
    """A rewritten journal may leave out the checkpoint that the device shows. The event's hash counts."""
    index, hash = chained.hashes[1, 7]
    file = device_checkpoint(tmp_path, index, hash)
    told = said(chained, tmp_path, "--device-checkpoint", file, key=False)
    words = "the device's checkpoint fits event 7 of its chain; this file ends at event 20"
    assert f"checked: {words}" in told
    assert not any(each.startswith("complete") for each in told), "an old checkpoint shows no newest event"
    other = device_checkpoint(tmp_path, index, bytes(32))
    told = said(chained, tmp_path / "fork", "--device-checkpoint", other, key=False)
    assert "FORK: two bodies for event 7 of the device's chain: the device has another one" in told


def test_the_devices_checkpoint_is_compared_with_its_newest_chain(
    chained: ChainedDevice, tmp_path: Path
) -> None:
    chained.reboot()
    chained.checkpoint()
    chained.begin(chained.index, chained.hash)  # provisioned again: indexes start at 1
    file = device_checkpoint(tmp_path, 16, bytes(32))  # the old chain has a checkpoint of its event 16
    told = said(chained, tmp_path, "--device-checkpoint", file, key=False)
    words = "the device has event 16 of its chain, and this file ends at event 2"
    assert f"ROLLBACK: put back to an older state: {words}" in told


@pytest.mark.parametrize("watched", [21, 22, 24])
def test_the_devices_checkpoint_of_an_event_near_a_gap(
    chained: ChainedDevice, tmp_path: Path, watched: int
) -> None:
    """Before ``events_lost`` comes, events after a boot seem to have the indexes of the lost ones."""
    chained.located(4, arrives=False)
    chained.reboot()
    chained.name_gap(2, (1, 20), (1, 24))
    chained.checkpoint()
    index, hash = chained.hashes[1, watched]
    file = device_checkpoint(tmp_path, index, hash)
    told = said(chained, tmp_path, "--device-checkpoint", file, key=False)
    assert not any(each.split(":")[0].isupper() for each in told)
    words = f"of event {watched} of its chain, and that event is in a gap"
    assert any(("fits event 24" if watched == 24 else words) in each for each in told)


def test_events_that_the_device_could_not_save_look_like_added_ones(
    chained: ChainedDevice, tmp_path: Path
) -> None:
    """Critical memory fails, three events are sent, power is cut: ``booted`` takes the first one's index."""
    saved = chained.index, chained.hash, chained.key
    chained.located(3)
    chained.index, chained.hash, chained.key = saved
    chained.reboot()
    chained.name_gap(2, (1, 18), (1, 20))
    chained.checkpoint()
    told = said(chained, tmp_path)
    words = "3 events after (1, 20) up to (1, 23) are in no chain of the device"
    assert any(each.startswith(f"UNSIGNED: {words}") for each in told)
    assert not any(each.startswith(("CHANGED", "HOLE")) for each in told)


@pytest.mark.parametrize("text", ["", "{}", '{"format": "sabot chain key 2"}'])
def test_a_file_that_is_no_chain_key_is_refused(chained: ChainedDevice, tmp_path: Path, text: str) -> None:
    key = tmp_path / "bad.json"
    key.write_text(text)
    words: list[str] = []
    path = chained.journal(tmp_path / "journal.db")
    assert verifier.run([str(path), "--chain-key", str(key)], words.append) == verifier.UNREADABLE
    assert "not a chain key" in words[0]
