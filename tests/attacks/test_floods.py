"""A host without a key that sends as fast as it can, and reads, reads slowly or does not read."""

import gc
import socket
import tracemalloc
from array import array
from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet
from tests.attacks.by_hand import Flooder, Table
from tests.sweeps import Amount

from sabot_protocol import frame
from sabot_protocol.codec import CODEC
from sabot_protocol.device_handshake import MAX_CLEAR_REPLIES
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.frame import Decoder
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, OVERHEAD, SEALED_TO_DEVICE
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.endpoints.device_server import HELD_BYTES, MOST_CABLES, TAKE_BYTES
from sabot_simulators.endpoints.emulated_usb import EmulatedUsbBackend
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.micropython_device import MicroPythonDevice, MicroPythonPort

pytestmark = pytest.mark.slow

IDENTIFY = bytes(frame.encode(bytes((CLEAR_TO_DEVICE, CODEC.named("identify").id))))
PIECE = IDENTIFY * 512
READS = {"reading": 1 << 20, "slow": 16, "deaf": 0}
QUESTIONS = 40  # before the flood, again in its beginning, and then while it goes on
MICROPYTHON_GROWTH = 2048
PYTHON_GROWTH = 65536
UNREAD = 20_000  # turns of a host that asks in each


def new_port() -> DevicePort:
    device = DeviceProtocol(
        DeviceIdentity(b"SERIAL01", "model", "0.1"), RecordStore(), Executor(), lambda n: bytes(n), 0
    )
    return DevicePort(device)


def _floods() -> Iterator[ParameterSet]:
    """Every host on every cable of each firmware; in the sample MicroPython meets one of them."""
    cables = ("in-process", "pty", "tcp")
    for at, cable in enumerate(cables):
        for number, host in enumerate(READS):
            yield pytest.param("python", cable, host)
            marks = [pytest.mark.slow] if at == number == 1 else [pytest.mark.slow, pytest.mark.full]
            yield pytest.param("micropython", cable, host, marks=marks)


def test_answers_that_nobody_reads_do_not_pile_up() -> None:
    """On the old code 900 unread answers filled a Pico's heap: a MemoryError ended the program."""
    port = new_port()
    for now in range(1000):
        port.receive(IDENTIFY, now)
        assert port.poll(now, False) == b""
    said = Decoder().feed(port.poll(1000))
    assert len(said) == MAX_CLEAR_REPLIES
    assert port.diagnostics.busy == 1000 - MAX_CLEAR_REPLIES
    port.receive(IDENTIFY, 1001)
    assert len(Decoder().feed(port.poll(1001))) == 1


def test_hints_that_nobody_reads_do_not_pile_up() -> None:
    """A host without a key sent packets of no session and did not read: one hint more each 200 ms, for ever.

    In ten minutes 3,000 hints waited in the port; a Pico's heap has no room for so many.
    """
    port = new_port()
    foreign = bytes(frame.encode(bytes((SEALED_TO_DEVICE,)) + bytes(OVERHEAD)))
    for now in range(0, 600_000, 100):
        port.receive(foreign, now)
        assert port.poll(now, False) == b""
    assert len(Decoder().feed(port.poll(600_000))) == MAX_CLEAR_REPLIES
    port.receive(foreign, 601_000)
    assert len(Decoder().feed(port.poll(601_000))) == 1


def test_a_host_that_is_silent_loses_its_session_also_where_it_does_not_read() -> None:
    """On the old code the end of a session was looked at only when something was sent."""
    with Table("python") as table:
        plug = table.served._cables[table.cable]
        table.cable.give = lambda data: 0  # type: ignore[method-assign]
        table.host.request(CODEC.named("status").id, b"", table.served.ms)
        table.cable.write(bytes(table.host.poll(table.served.ms)), 0)
        for _ in range(2000):
            table.turn()
        assert isinstance(plug.port, DevicePort)
        assert plug.port.link is None


@pytest.mark.parametrize(("firmware", "cable", "host"), list(_floods()))
def test_a_flood_takes_nothing_from_the_owner_on_another_cable(
    firmware: str, cable: str, host: str, request: pytest.FixtureRequest, amount: Amount
) -> None:
    """On the old code the device handled 64 kB of a flood before it looked at its timers.

    A TCP host that did not read stopped it for 2 s at each answer, and unread answers piled up.
    """
    questions = amount(12, full=QUESTIONS)
    if firmware == "micropython":
        request.getfixturevalue("micropython")
    with Table(firmware) as table:
        quiet = [table.ask("status")[1] for _ in range(questions)]
        flooder = Flooder(table.served, cable)
        table.each_turn = lambda: flooder.flood(PIECE, READS[host])
        for _ in range(questions):
            table.ask("status")
        before = held(table)
        flooded = []
        for _ in range(questions):
            answer, turns = table.ask("status")
            assert not answer.status
            flooded.append(turns)
        grown = held(table) - before
        assert grown < (MICROPYTHON_GROWTH if firmware == "micropython" else PYTHON_GROWTH)
        assert flooded == quiet
        assert max(flooder.taken) == TAKE_BYTES
        assert sum(flooder.taken) > questions * TAKE_BYTES
        assert table.host.diagnostics.sessions == 1
        port = table.served._cables[flooder.cable].port
        assert not isinstance(port, MicroPythonPort) or len(port._output) < TAKE_BYTES
        table.each_turn = lambda: flooder.flood(b"", READS["reading"])
        for _ in range(QUESTIONS):
            table.turn()
        assert len(flooder.answers) > MAX_CLEAR_REPLIES
        assert not [why for _, why in flooder.answers if why is not None]
        flooder.close()


def held(table: Table) -> int:
    """Bytes that the firmware holds; on MicroPython its heap, else what this process has allocated."""
    if isinstance(table.device, MicroPythonDevice):
        return table.device.heap()[0]
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        return 0
    gc.collect()
    now = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return now


def test_a_host_that_never_reads_keeps_its_bytes_on_its_own_cable() -> None:
    """On the old code an in-process cable kept every answer for ever: 20,000 of them were 1.4 MB."""
    with Table("python") as table:
        flooder = Flooder(table.served, "in-process")
        for _ in range(UNREAD):
            flooder.flood(IDENTIFY, 0)
            table.turn()
        cable, plug = flooder.cable, table.served._cables[flooder.cable]
        assert len(cable._to_host) <= HELD_BYTES  # type: ignore[attr-defined]
        assert len(cable._to_device) <= HELD_BYTES  # type: ignore[attr-defined]
        assert len(plug.unsent) < 1024


def test_a_usb_host_that_never_reads_is_bounded() -> None:
    """On the old code each bulk transfer of an unread flood stayed in the emulated bus."""
    backend = EmulatedUsbBackend(DeviceSettings.from_query({"seed": ["1"]}))
    handle = backend.open_device(backend.enumerate_devices()[0])
    backend.claim_interface(handle, 0)
    try:
        for _ in range(100):
            backend.bulk_write(handle, 0x01, 0, array("B", PIECE), 0)
        cable = backend.shoe.cable
        assert cable is not None
        assert cable.waiting() <= HELD_BYTES
        assert len(cable._to_device) <= HELD_BYTES
    finally:
        backend.close()


@pytest.mark.parametrize("firmware", ["python", "micropython"])
def test_hosts_that_only_connect_find_a_bound(firmware: str, request: pytest.FixtureRequest) -> None:
    """On the old code each TCP connection took a port of the device; MicroPython's 257th ended the server."""
    if firmware == "micropython":
        request.getfixturevalue("micropython")
    with Table(firmware) as table:
        listener = TcpListener()
        table.served._listen(listener)
        hosts = [socket.create_connection((listener.host, listener.port)) for _ in range(40)]
        for _ in range(60):
            table.turn()
        assert len(table.served._cables) == MOST_CABLES
        assert not table.ask("status")[0].status
        turned_away = [each for each in hosts if _closed(each)]
        assert len(turned_away) == len(hosts) - (MOST_CABLES - 1)
        for each in hosts:
            each.close()
        for _ in range(60):
            table.turn()
        assert len(table.served._cables) == 1


def _closed(host: socket.socket) -> bool:
    host.setblocking(False)
    try:
        return host.recv(1) == b""
    except BlockingIOError:
        return False
