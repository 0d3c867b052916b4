"""What comes before a session: who is on the cable, which key it needs, and where its events go."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sabot_driver.clock import Clock, Deadline
from sabot_driver.connection import Connection
from sabot_driver.credentials import check_key
from sabot_driver.error_mapping import wrong_kind
from sabot_driver.errors import KeyMissing, KeysLost, NotProvisioned, WrongDevice
from sabot_driver.journal import Journal
from sabot_driver.keyring import Keyring
from sabot_driver.serial_numbers import format_serial
from sabot_driver.transports import Transport, is_simulator, transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_protocol.host.messages import Identity, IdentityFlag, KeySlot
from sabot_protocol.wire_constants import KEY_SIZE


@dataclass(frozen=True, slots=True)
class DeviceKeys:
    """The key of a session."""

    key: bytes = field(repr=False)
    slot: int = KeySlot.DEVICE
    other: bytes | None = field(default=None, repr=False)
    """The key that the device may have instead, because a change of keys was not confirmed."""
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class OpenedDevice:
    """A device that has identified itself, and everything that a session with it needs. Nothing runs yet."""

    connection: Connection
    transport: Transport
    journal: Journal
    clock: Clock
    identity: Identity
    owner: bool
    simulator: bool
    keyring: Keyring | None
    keys: DeviceKeys

    def settle_key(self) -> None:
        """Keep only the key that the session has proved, if the keyring had two."""
        if self.keyring is not None and self.keys.other is not None:
            self.keyring.settle(self.identity.serial, self.connection.protocol.key, self.simulator)


def open_device(
    url: str,
    deadline: Deadline,
    *,
    key: bytes | None = None,
    serial: bytes | None = None,
    owner: bool = True,
    simulator: bool | None = None,
    slot: KeySlot | None = None,
    journal: Path | Journal | Callable[[bytes], Path] | None = None,
    keyring: Keyring | None = None,
    clock: Clock | None = None,
    transport: Transport | None = None,
) -> OpenedDevice:
    """Identify the device, find its key and open its journal. ``connect`` says what the arguments are."""
    if key is not None:
        check_key(key)
    if serial is not None and not isinstance(serial, bytes):
        raise TypeError(f"serial is bytes, not {serial!r}: sabot_driver.serial_numbers.parse_serial makes it")
    if isinstance(journal, str):
        raise TypeError(f"journal is a pathlib.Path, not {journal!r}: write Path(…)")
    clock = clock or Clock()
    if simulator is None:
        simulator = is_simulator(url)
    transport = transport or transport_for(url)
    began = clock.now_ms()
    with UnsecuredExchange(transport, url, clock, deadline.left()) as exchange:
        identity = exchange.identify()
        if serial is not None and identity.serial != serial:
            raise WrongDevice(f"{url}: this is {format_serial(identity.serial)}, not {format_serial(serial)}")
        if simulator != bool(identity.flags & IdentityFlag.SIMULATOR):
            raise wrong_kind(url, identity.serial, not simulator)
        found = DeviceKeys(key) if key is not None else None
        keys = found or _find_key(exchange, url, identity, keyring, owner, simulator)
    if not isinstance(journal, Journal):
        journal = Journal(journal(identity.serial) if callable(journal) else journal, identity.serial)
    try:
        connection = Connection(
            url,
            keys.key,
            identity.serial,
            journal,
            began,
            owner=owner,
            simulator=simulator,
            slot=keys.slot if slot is None else slot,
            other_key=keys.other,
            utc_us=clock.utc_us,
            random=os.urandom,
        )
    except BaseException:
        journal.close()
        raise
    return OpenedDevice(connection, transport, journal, clock, identity, owner, simulator, keyring, keys)


def _find_key(
    exchange: UnsecuredExchange,
    url: str,
    identity: Identity,
    keyring: Keyring | None,
    owner: bool,
    simulator: bool,
) -> DeviceKeys:
    found = None if keyring is None else keyring.find(identity.serial, simulator)
    if identity.flags & IdentityFlag.KEYS_DAMAGED:
        raise KeysLost(f"{url}: the keys of {format_serial(identity.serial)} are damaged")
    if not identity.flags & IdentityFlag.PROVISIONED:
        if not simulator:
            raise not_provisioned(url, identity.serial, keyring)
        if keyring is not None and keyring.is_machine(identity.serial):
            raise WrongDevice(
                f"{url}: {format_serial(identity.serial)} is the serial number of a machine known here",
                "Give the simulator another serial number.",
            )
        key = found or os.urandom(KEY_SIZE)  # simulators with the same serial number share a key
        if keyring is not None and found is None:
            keyring.keep(identity.serial, key, simulator)
        exchange.provision(identity.serial, key)
        return DeviceKeys(key, is_new=True)
    if keyring is not None and found is None and not owner:
        observers = keyring.find_observers(identity.serial)
        if observers is not None:
            return DeviceKeys(observers, KeySlot.OBSERVER)
    pending = None if keyring is None else keyring.find_next(identity.serial, simulator)
    if found is None and pending is None:
        raise KeyMissing(f"{url}: no key for {format_serial(identity.serial)} here")
    if found is None:
        found = pending  # the device was given it, and no session has proved so yet
    assert found is not None
    return DeviceKeys(found, other=pending)


def not_provisioned(url: str, serial: bytes, keyring: Keyring | None) -> NotProvisioned:
    """A device says that it has no key; a warning if this computer knows a key of that machine."""
    if keyring is not None and keyring.had_key(serial):
        return NotProvisioned(
            f"{url}: {format_serial(serial)} says it has no key, and this computer knows one of that machine",
            NotProvisioned.had_key_advice,
        )
    return NotProvisioned(f"{url}: {format_serial(serial)} has no key yet")
