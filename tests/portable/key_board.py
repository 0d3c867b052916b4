"""A board whose memory chips outlive the power, with one cable: for tests of keys, mark and house."""

from pair import Shoe
from world import SERIAL, Rng

from sabot_firmware.critical import CriticalMemory
from sabot_firmware.persistent_state import RECORDS
from sabot_firmware.provisioning_mark import SECTORS, FlashProvisioningMark
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.house import HouseRecord
from sabot_protocol.provisioning import HOLD_MS, UnusableStore
from sabot_protocol.record_store import RecordStore
from sabot_simulators.chips import SimFlash, SimFram

KEY = b"a key of thirty-two random bytes"
OTHER = b"another key, 32 random bytes too"
NONCE = b"nonce of sixteen"
KEYS_DAMAGED_FLAG = 0x0008
PROVISIONED_FLAG = 0x0001
SECTOR = 512
KEYS_AT = 2 * (9 + 8)  # behind the boot record's two slots
KEYS_SIZE = 14 * 38


def new_flash() -> SimFlash:
    """A small one: a board's MicroPython has little memory to spare."""
    return SimFlash(SECTORS, sector_size=SECTOR)


class Board:
    """Chips that outlive the power, and a device over them."""

    def __init__(self) -> None:
        self.fram = SimFram(14336)
        self.flash = new_flash()
        self.rng = Rng(1)
        self.now = 1000
        self.boot()

    def memory(self) -> CriticalMemory:
        return CriticalMemory(self.fram, RECORDS)

    def house(self) -> "HouseRecord | None":
        return None

    def boot(self, crashed: bool = False, opened: bool = False) -> "Board":
        memory: RecordStore = UnusableStore() if crashed else self.memory()
        self.end = DeviceProtocol(
            DeviceIdentity(SERIAL, "Sabot test", "0.0"),
            memory,
            Shoe(),
            self.rng.bytes,
            self.now,
            mark=FlashProvisioningMark(self.flash),
            reopen=self.memory if crashed else None,
            opened=opened,
            house=self.house(),
        )
        self.port = DevicePort(self.end)
        return self

    def clear(self, name: str, *values: bytes) -> "str | tuple":  # type: ignore[type-arg]
        """Ask without a session: the answer's values, or the error's name."""
        question = ClearExchange(CODEC, name, values, self.now)
        self.port.receive(question.poll(self.now), self.now)
        question.receive(self.port.poll(self.now))
        return question.failure or tuple(question.answer or ())

    def provision(self, key: bytes = KEY) -> "str | tuple":  # type: ignore[type-arg]
        more = len(CODEC.named("provision").fields) - 2
        return self.clear("provision", NONCE, key, *[b"thirty-two bytes for a generator"] * more)

    def flags(self) -> int:
        return int(self.clear("identify")[3])

    def hello(self) -> "str | tuple":  # type: ignore[type-arg]
        """What a handshake is answered with."""
        values: list = []  # type: ignore[type-arg]
        for field in CODEC.named("hello").fields:
            values.append(bytes([7] * field[2]) if field[1] == "bytes" else field[3] if field[3] < 255 else 0)
        return self.clear("hello", *values)

    def hold(self, ms: int, closed: bool = True, step: int = 50) -> None:
        for _ in range(0, ms, step):
            self.now = ticks.add(self.now, step)
            self.end.tick(self.now)
            self.end.update_contact(closed)

    def show_presence(self) -> None:
        self.hold(100, False)
        self.hold(HOLD_MS + 100)
        self.hold(100, False)

    def state(self) -> int:
        return self.end.provisioning.state()

    def events(self) -> list:  # type: ignore[type-arg]
        found = []
        for n in range(self.end.events.first, self.end.events.last + 1):
            message, _, body = self.end.events.get(n)
            codec = CODEC.find(message)
            assert codec is not None
            found.append((codec.name, codec.unpack(body[14:])))
        return found
