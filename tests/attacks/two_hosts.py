"""A device with people's keys, and further hosts on cables of their own."""

from pair import Pair
from world import SERIAL

from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host_protocol import OBSERVER, HostProtocol
from sabot_protocol.wire_constants import DEVICE, OBSERVERS

OBSERVERS_KEY = b"o" * 32


def watched() -> Pair:
    """A device with an owner, people and a key for observers."""
    pair = Pair().people()
    pair.device.keys.set(OBSERVERS, OBSERVERS_KEY)
    return pair.connect()


def beside(pair: Pair, key: bytes, host_id: bytes, slot: int = DEVICE, mode: int = OBSERVER) -> Pair:
    """Another host on another cable of the same device."""
    twin = object.__new__(Pair)
    twin.rng, twin.now, twin.device, twin.shoe, twin.memory = (
        pair.rng, pair.now, pair.device, pair.shoe, pair.memory,
    )  # fmt: skip
    twin.heard, twin.sent, twin.back = [], [], []
    twin.port = DevicePort(pair.device)
    twin.host = HostProtocol(
        key, CommandNumbers(host_id), pair.rng.bytes, SERIAL, schema_hash=b"schema01", slot=slot
    )
    return twin.connect(mode)
