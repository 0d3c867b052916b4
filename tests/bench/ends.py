"""Both ends of the wire as the benchmarks start them: provisioned, with the same key, and idle."""

import os

from sabot_protocol.device_end import DeviceEnd, Executor, Identity
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host_end import HostEnd
from sabot_protocol.keys import DEVICE, Keys
from sabot_protocol.memory import Memory
from sabot_protocol.numbers import Numbers

KEY = bytes(range(32))
SERIAL = b"SABOT001"


def device_port(window: int, now: int) -> DevicePort:
    """A device that answers ``status``, with this window."""
    memory = Memory()
    Keys(memory).set(DEVICE, KEY)
    identity = Identity(SERIAL, "Sabot bench", "0")
    return DevicePort(DeviceEnd(identity, memory, Executor(), os.urandom, now, window=window))


def host_end() -> HostEnd:
    """A host that has the device's key."""
    return HostEnd(KEY, Numbers(b"TABLE-PC"), os.urandom, SERIAL)
