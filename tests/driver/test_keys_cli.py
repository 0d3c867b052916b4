"""``sabot key`` and ``sabot evict``: people come and go, and a host that will not let go."""

from pathlib import Path

import pytest
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver import Keyring
from sabot_driver.keyring import read_person


@pytest.mark.slow
def test_people_are_given_keys_and_removed(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator")
    service, anna = tmp_path / "service.key", tmp_path / "anna.key"
    assert sabot("provision", *device, "--service-key", service).code == 0
    listed = sabot("key", "list", *device, "--json").of("key")
    assert [(each["slot"], each["role"], each["person"]) for each in listed] == [
        (0, "device", 0),
        (2, "service", 2),
    ]
    refused = sabot("key", "give", *device, "floor", anna, "--json")
    assert (refused.code, refused.lines[-1]["error"]) == (5, "KeyMissing")
    assert not anna.exists()
    given = sabot("key", "give", *device, "floor", anna, "--service-key", service, "--json")
    assert (given.code, given.of("key_given")[0]["slot"]) == (0, 3)
    assert read_person(anna) == 3
    assert sabot("play", *device, "--rounds", 1, "--floor-key", anna).code == 0
    assert sabot("key", "remove", *device, 3, "--service-key", service).code == 0
    refused = sabot("play", *device, "--rounds", 1, "--floor-key", anna, "--json")
    assert refused.lines[-1]["error"] == "KeyMissing"
    target.close()


def test_a_device_and_its_observers_get_new_keys(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator")
    assert sabot("status", *device).code == 0  # a simulator gets its keys
    (kept,) = (path for path in (home / "keys" / "simulators").glob("*.key") if ".floor." not in path.name)
    before = kept.read_text()
    assert sabot("key", "device", *device).code == 0
    assert kept.read_text() != before
    watchers = tmp_path / "watchers.key"
    assert sabot("key", "observers", *device, watchers).code == 0
    assert sabot("status", *device).code == 0
    assert len(Keyring(home / "keys").folder.name) > 0
    target.close()


@pytest.mark.slow
def test_the_floor_takes_a_device_from_a_host(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator")
    assert sabot("evict", *device, "--json").lines[-1]["owner"] == ""
    (kept,) = (path for path in (home / "keys" / "simulators").glob("*.key") if ".floor." not in path.name)
    holder = target.connect(key=bytes.fromhex(kept.read_text()))
    assert sabot("play", *device, "--rounds", 1, "--json").lines[-1]["error"] == "OwnerHeld"
    ran = sabot("evict", *device, "--json")
    assert (ran.code, ran.lines[-1]["owner"]) == (0, holder.journal.host_id.hex())
    assert sabot("play", *device, "--rounds", 1).code == 0
    target.close()
