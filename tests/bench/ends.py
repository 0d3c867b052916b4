"""Both ends of the wire as the benchmarks start them: provisioned, with the same key, and idle."""

import os

from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE

KEY = bytes(range(32))
SERIAL = b"SABOT001"


def device_port(window: int, now: int) -> DevicePort:
    """A device that answers ``status``, with this window."""
    memory = RecordStore()
    KeyStore(memory).set(DEVICE, KEY)
    identity = DeviceIdentity(SERIAL, "Sabot bench", "0")
    return DevicePort(DeviceProtocol(identity, memory, Executor(), os.urandom, now, window=window))


def host_protocol() -> HostProtocol:
    """A host that has the device's key."""
    return HostProtocol(KEY, CommandNumbers(b"TABLE-PC"), os.urandom, SERIAL)
