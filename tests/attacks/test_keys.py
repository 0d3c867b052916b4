"""Attacks on keys: what a table PC's disk tells, what one table tells of another, and slots filled later."""

import os
from pathlib import Path

import pytest
from pair import BY_SERVICE, FLOOR_KEY, SERVICE_KEY, Pair
from tests.attacks.disk import ANNAS_KEY, ANNAS_SLOT, Disk
from tests.attacks.two_hosts import OBSERVERS_KEY, beside, watched
from world import HOST_ID, KEY, SERIAL

from sabot_driver import Client, Credential, connect
from sabot_driver.errors import Refused
from sabot_driver.keyring import Keyring
from sabot_firmware.critical import CriticalMemory
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.frame import Decoder
from sabot_protocol.host.messages import Locate, Role, SetKey
from sabot_protocol.host_protocol import OBSERVER
from sabot_protocol.house import HouseRecord
from sabot_protocol.key_store import KeyStore
from sabot_protocol.provisioning import Provisioning, ProvisioningMark
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import DEVICE, OBSERVERS
from sabot_simulators.chips import SimFram

SERVICE = enum_number("Role", "service")


def test_no_key_is_on_the_disk_in_any_form(disk: Disk) -> None:
    """Journal and captures held the bodies of set_key, and the device key lies beside them.

    Together they gave the keys of the floor and of service.
    """
    derived = slot_key(ANNAS_KEY, disk.serial, ANNAS_SLOT)
    for key in (ANNAS_KEY, derived, disk.device_key()):
        assert key not in disk.everything
        assert key.hex().encode() not in disk.everything
    for key in disk.computed():
        assert key not in (ANNAS_KEY, derived)


def test_a_hidden_key_is_hidden_anew_in_each_session() -> None:
    """The pad came from the device key and the command's number only, not from the session."""
    pair = Pair().people().connect()
    derived = slot_key(ANNAS_KEY, SERIAL, ANNAS_SLOT)
    body = CODEC.pack("set_key", ANNAS_SLOT, SERVICE, 17, derived)
    number = pair.host.request(SetKey.ID, body, pair.now, by=BY_SERVICE)
    first = pair.host.poll(pair.now)
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert pair.device.keys.get(ANNAS_SLOT) == derived
    seen = {_set_key(each) for each in (first, b"".join(pair.sent))}
    assert len(seen) == 2
    assert derived not in seen


def _set_key(said: bytes) -> bytes:
    bodies = [payload[18:-8] for payload, _ in Decoder().feed(said) if payload and payload[12] == SetKey.ID]
    return bytes(bodies[-1][-32:])


def test_one_tables_memory_tells_nothing_of_another() -> None:
    """A person's key was the same on every table: who opened one device had it for all of them."""
    first = slot_key(FLOOR_KEY, SERIAL, 3)
    pair = Pair().people().connect()
    stolen = pair.memory.load("keys") or b""
    assert first in stolen
    assert FLOOR_KEY not in stolen
    assert slot_key(FLOOR_KEY, b"ANOTHER1", 3) not in stolen
    pair.device.keys.set(3, slot_key(FLOOR_KEY, b"ANOTHER1", 3), 3, 1)
    assert pair.ask("mark_out_of_order", by=(3, first))[0] == "bad_credential"


def test_an_owner_does_not_fill_the_empty_service_slot_later() -> None:
    """Whoever had the device key, which lies on the table PC, could set the empty service key."""
    pair = Pair().connect()  # provisioned some time ago, without service
    for slot in range(2, 14):
        assert pair.ask("set_key", slot, SERVICE, 1, SERVICE_KEY)[0] == "wrong_role"
    assert pair.ask("set_key", OBSERVERS, 0, 0, OBSERVERS_KEY)[0] == "wrong_role"
    assert pair.ask("set_key", DEVICE, 1, 0, OBSERVERS_KEY)[0] == "wrong_role"
    assert pair.device.keys.slots() == [DEVICE]


def test_a_removed_person_can_do_nothing_more() -> None:
    """A role had one key for all its people and could not be emptied: who left the house kept it."""
    pair = Pair().people().connect()
    assert pair.ask("mark_out_of_order", by=(3, FLOOR_KEY))[0] == "ok"
    assert pair.ask("remove_key", 3, by=BY_SERVICE)[0] == "ok"
    assert pair.ask("mark_out_of_order", by=(3, FLOOR_KEY))[0] == "no_such_key"
    assert pair.ask("self_test", by=(3, FLOOR_KEY))[0] == "no_such_key"


def test_who_reads_the_chip_finds_only_keys_that_are_in_use() -> None:
    """Keys stayed on the memory chip after `remove_key`, after a change, and after a reset by presence.

    The chip has two places for the record and writes them in turn: the old record stayed in the other place,
    and its end stayed behind a shorter one.
    """
    chip = SimFram()
    keys = KeyStore(CriticalMemory(chip))
    device, changed, floor, service = (bytes((each,)) * 32 for each in b"dcfs")

    def there() -> set[bytes]:
        return {each for each in (device, changed, floor, service) if each in bytes(chip.cells)}

    keys.set(DEVICE, device)
    keys.set(2, floor, 3, 7)
    keys.set(3, service, 4, 8)
    assert there() == {device, floor, service}
    keys.remove(3)
    assert there() == {device, floor}
    keys.set(DEVICE, changed)
    assert there() == {changed, floor}
    Provisioning(keys, ProvisioningMark(), True, HouseRecord()).clear(CriticalMemory(chip), 0)
    assert there() == set()


def test_a_changed_key_ends_the_sessions_it_proved() -> None:
    """A new device key counted from the next handshake on: a thief's session went on as long as it lasted."""
    pair = watched()
    thief = beside(pair, KEY, b"THIEF-PC")
    watcher = beside(pair, OBSERVERS_KEY, b"PIT-WALL", OBSERVERS)
    new = CODEC.pack("set_key", DEVICE, 1, 0, b"n" * 32)
    assert pair.ask_packed(SetKey.ID, new, by=BY_SERVICE)[0] == "ok"
    assert thief.port.link is None
    thief.connect(OBSERVER)
    assert not thief.host.up
    assert watcher.port.link is not None
    pair.wait(100)
    pair.connect()
    assert pair.device.owner_id() == HOST_ID


@pytest.mark.slow
def test_changing_the_device_key_does_not_strand_who_changes_it(tmp_path: Path) -> None:
    """The client went on with the old key: its next session failed, and no file had the new one."""
    keyring = Keyring(tmp_path / "keys")
    url = f"sim://strand{os.getpid()}?seed=4"
    service = Credential(Role.SERVICE, ANNAS_KEY, 9)
    with connect(url, keyring=keyring) as client:
        client.set_key(Role.SERVICE, ANNAS_KEY, 9)
        before = keyring.find(client.identity.serial, True)
        client.set_device_key(b"n" * 32, service)
        client.ask(Locate(1), 60)
        assert keyring.find(client.identity.serial, True) == b"n" * 32 != before
        serial = client.identity.serial
        with pytest.raises(Refused):
            client.set_device_key(bytes(32), service)
        assert keyring.find(serial, True) == b"n" * 32
    assert keyring.find_next(serial, True) is None
    with connect(url, keyring=keyring) as client:
        assert client.status()


def test_a_key_whose_change_was_cut_off_is_found_by_either(tmp_path: Path) -> None:
    """A change whose answer was lost left a device that nobody had the key of."""
    keyring = Keyring(tmp_path / "keys")
    url = f"sim://cut{os.getpid()}?seed=5"
    with connect(url, keyring=keyring) as client:
        client.set_key(Role.SERVICE, ANNAS_KEY, 9)
        serial = client.identity.serial
        _change_unheard(client, keyring)
    assert keyring.find_next(serial, True) == b"n" * 32
    with connect(url, keyring=keyring) as client:
        assert client.status()
    assert keyring.find(serial, True) == b"n" * 32
    assert keyring.find_next(serial, True) is None


def _change_unheard(client: Client, keyring: Keyring) -> None:
    """The device takes the new key, and the program dies before it has written that down."""
    keyring.keep_next(client.identity.serial, b"n" * 32, True)
    client.ask(SetKey(DEVICE, Role.TABLE, 0, b"n" * 32), by=Credential(Role.SERVICE, ANNAS_KEY, 9))
