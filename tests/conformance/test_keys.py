"""A device without its real keys refuses everything, and only somebody at its contact makes it a new one."""

import contextlib
import os
import time
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.conformance.targets import Target, eventually

from sabot_driver import Certified, Client, Credential, Keyring, ReceivedEvent
from sabot_driver.errors import (
    CertificateNotAccepted,
    KeysLost,
    ResetRefused,
    ResetRequired,
    SabotError,
    WrongDevice,
    WrongRole,
)
from sabot_protocol.host.messages import (
    Certificate,
    CertificateReason,
    HouseKey,
    Identity,
    IdentityFlag,
    KeyState,
    PlayOneDeck,
    PresenceShown,
    Role,
)
from sabot_protocol.house_lines import certificate_line, certificate_text, reset_line, revocation_parts

LOOK_S = 0.2
BIND_S = 60.0
LAST_S = 0xFFFFFFFF


def identity(target: Target) -> Identity:
    with target.exchange() as exchange:
        return exchange.identify()


def refuses_everything(target: Target, serial: bytes) -> None:
    """It says who it is and that its keys are damaged; it takes no key and no session."""
    found = identity(target)
    assert found.serial == serial
    assert found.flags & IdentityFlag.KEYS_DAMAGED
    assert not found.flags & IdentityFlag.PROVISIONED
    with target.exchange() as exchange, pytest.raises(SabotError, match="keys damaged"):
        exchange.provision(serial, os.urandom(32))
    with pytest.raises(KeysLost):
        target.connect()
    with pytest.raises(KeysLost):
        target.connect(key=os.urandom(32))


@pytest.mark.needs("chips", "hands")
@pytest.mark.parametrize("cause", ["absent", "damaged", "read_only", "blank"])
def test_without_its_keys_it_refuses_everything(client: Client, target: Target, cause: str) -> None:
    serial = client.identity.serial
    client.close()
    target.damage_memory(cause)
    refuses_everything(target, serial)


@pytest.mark.needs("chips", "hands", "crashes")
def test_after_repeated_crashes_it_refuses_everything(client: Client, target: Target) -> None:
    serial = client.identity.serial
    client.close()
    target.damage_memory("crashes")
    refuses_everything(target, serial)


def hold_until_cleared(target: Target) -> Identity:
    """Hold the contact until the device calls itself new."""
    found = identity(target)

    def cleared() -> bool:
        nonlocal found
        time.sleep(LOOK_S)
        found = identity(target)
        return not found.flags & (IdentityFlag.PROVISIONED | IdentityFlag.KEYS_DAMAGED)

    target.hold_contact(True)
    assert eventually(cleared)
    target.hold_contact(False)
    return found


def given_a_new_key(target: Target, found: Identity) -> Client:
    key = os.urandom(32)
    with target.exchange() as exchange:
        exchange.provision(found.serial, key)
    target.keyring = Keyring(target.folder / "new keys")
    target.keyring.keep(found.serial, key, bool(found.flags & IdentityFlag.SIMULATOR))
    return target.connect(journal=target.folder / "new journal.db")


def shown(client: Client) -> list[tuple[int, int]]:
    return [
        (each.message.was, each.message.now)
        for each in client.events(0, timeout=0)
        if isinstance(each, ReceivedEvent) and isinstance(each.message, PresenceShown)
    ]


@pytest.mark.slow
@pytest.mark.needs("chips", "hands")
def test_presence_clears_the_keys_and_lets_a_new_owner_in(client: Client, target: Target) -> None:
    before = client.identity
    old = target.keyring.find(before.serial, bool(before.flags & IdentityFlag.SIMULATOR))
    client.close()
    found = hold_until_cleared(target)
    assert found.memory_id != before.memory_id
    after = given_a_new_key(target, found)
    assert eventually(lambda: shown(after) == [(KeyState.PROVISIONED, KeyState.UNPROVISIONED)])
    after.close()
    with pytest.raises(WrongDevice):
        target.connect(key=old)


@pytest.mark.slow
@pytest.mark.needs("chips", "hands")
def test_presence_mends_a_device_whose_memory_was_erased(client: Client, target: Target) -> None:
    serial = client.identity.serial
    client.close()
    target.damage_memory("blank")
    refuses_everything(target, serial)
    after = given_a_new_key(target, hold_until_cleared(target))
    assert eventually(lambda: shown(after) == [(KeyState.KEYS_DAMAGED, KeyState.UNPROVISIONED)])


@pytest.mark.slow
@pytest.mark.needs("chips", "hands", "crashes")
def test_the_contact_is_read_after_repeated_crashes(client: Client, target: Target) -> None:
    client.close()
    target.damage_memory("crashes")
    after = given_a_new_key(target, hold_until_cleared(target))
    assert eventually(lambda: shown(after) == [(KeyState.KEYS_DAMAGED, KeyState.UNPROVISIONED)])


@pytest.mark.slow
@pytest.mark.needs("chips", "hands")
def test_a_device_of_a_house_takes_no_key_without_its_statement(client: Client, target: Target) -> None:
    house = Ed25519PrivateKey.generate()
    public, serial = house.public_key().public_bytes_raw(), client.identity.serial
    service = Credential(Role.SERVICE, os.urandom(32), 77)
    client.set_key(Role.SERVICE, service.key, 77)
    client.ask(HouseKey(public, "MAIN", 0, 0, b""), BIND_S, service)
    client.close()
    found = hold_until_cleared(target)
    with target.exchange() as exchange:
        belongs = exchange.reset_state()
        assert (belongs.bound, belongs.house, belongs.count) == (1, public, 0)
        with pytest.raises(ResetRequired):
            exchange.provision(serial, os.urandom(32))
        with pytest.raises(ResetRefused):
            exchange.show_reset(house.sign(reset_line(public, serial, 1)))
    statement = house.sign(reset_line(public, serial, 0))

    def accepted() -> bool:
        """Too soon after a wrong one; the board's time is its own."""
        time.sleep(LOOK_S)
        with target.exchange() as exchange, contextlib.suppress(SabotError):
            exchange.show_reset(statement)
            return True
        return False

    assert eventually(accepted)
    after = given_a_new_key(target, found)
    after.close()
    with target.exchange() as exchange:
        assert (exchange.reset_state().house, exchange.reset_state().count) == (public, 1)


@pytest.mark.needs("chips", "hands")
def test_a_certificate_of_its_house_authorises_requests_until_it_is_revoked(client: Client) -> None:
    office, dana = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    house, key = (each.public_key().public_bytes_raw() for each in (office, dana))
    client.ask(HouseKey(house, "MAIN", 0, 0, b""), BIND_S)  # while it is new

    def hand_over(number: int, ids: bytes) -> bool:
        line = b"".join(revocation_parts(house, number, ids))
        return client.hand_over_revocations(number, ids, office.sign(line))

    text = certificate_text(house, key, LAST_S, "dana", 1 << Role.FLOOR, "MAIN")
    signature = office.sign(certificate_line(text))
    shown = Certificate(key, LAST_S, "dana", 1 << Role.FLOOR, "MAIN", signature)
    by = Certified(Role.FLOOR, shown, dana.sign)
    assert hand_over(1, b"")
    for on in (1, 0):
        client.ask(PlayOneDeck(on), by=by)
    with pytest.raises(WrongRole):
        client.ask(PlayOneDeck(1))
    assert hand_over(2, bytes(16) + sha256(text).digest()[:16])
    with pytest.raises(CertificateNotAccepted) as told:
        client.ask(PlayOneDeck(1), by=by)
    assert told.value.reason is CertificateReason.REVOKED
    with pytest.raises(CertificateNotAccepted) as told:
        hand_over(1, b"")
    assert told.value.reason is CertificateReason.OLD_LIST
