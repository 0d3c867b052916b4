"""The client remembers which slot of a device has whose key, and asks again after it changed one."""

from pathlib import Path

import pytest
from tests.conformance.targets import Tcp

from sabot_driver import Credential
from sabot_driver.errors import KeyMissing
from sabot_protocol.host.messages import CallFloor, Role

SERVICE_KEY, FLOOR_KEY = b"s" * 32, b"f" * 32


def test_a_removed_key_is_not_offered_again(tmp_path: Path) -> None:
    """The removal itself, by service, asked for the slots as they were before it, and these were kept.

    The device then refused the credential as wrong, though the key was only gone.
    """
    target = Tcp(tmp_path)
    client = target.connect()
    client.set_key(Role.SERVICE, SERVICE_KEY)
    slot = client.set_key(Role.FLOOR, FLOOR_KEY)
    client.remove_key(slot, Credential(Role.SERVICE, SERVICE_KEY))
    with pytest.raises(KeyMissing, match="no key of floor"):
        client.ask(CallFloor(1), by=Credential(Role.FLOOR, FLOOR_KEY))
    target.close()


def test_a_slot_that_has_another_persons_key_now_is_not_taken_for_the_former_ones(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect()
    first = client.set_key(Role.SERVICE, SERVICE_KEY, person=1)
    slot = client.set_key(Role.FLOOR, FLOOR_KEY, person=2)
    service = Credential(Role.SERVICE, SERVICE_KEY, person=1)
    client.set_key(Role.FLOOR, FLOOR_KEY, person=3, slot=slot, by=service)
    assert client.known_slot(service) is None, "the slots are asked for again"
    assert first != slot
    with pytest.raises(KeyMissing, match="person 2 as floor"):
        client.ask(CallFloor(1), by=Credential(Role.FLOOR, FLOOR_KEY, person=2))
    target.close()
