"""Ways to a device that need something else on the way: RFC 2217, and systems without ``poll``."""

import contextlib
import os
import pty
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import serial
import serial.rfc2217
from tests.conformance.targets import Pty, Tcp

from sabot_driver import Keyring, LinkState, connect
from sabot_driver.errors import LinkLost
from sabot_driver.transports import SerialTransport
from sabot_protocol.host.messages import Locate, Located


class WithoutLines(serial.Serial):
    """A port without modem lines, which a pseudo-terminal does not have."""

    cts = dsr = ri = cd = False

    def _update_rts_state(self) -> None:
        """There is none."""

    def _update_dtr_state(self) -> None:
        """There is none."""

    def _update_break_state(self) -> None:
        """There is none."""


@contextmanager
def serial_server(path: str) -> Iterator[str]:
    """A serial port offered by RFC 2217, as a device server in a rack does; its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    going_on = threading.Event()

    def serve(port: serial.Serial, host: socket.socket) -> None:
        class Way:
            def write(self, data: bytes) -> None:
                with contextlib.suppress(OSError):
                    host.sendall(data)

        manager: Any = serial.rfc2217.PortManager(port, Way())  # type: ignore[arg-type]
        host.settimeout(0.01)
        while not going_on.is_set():
            with contextlib.suppress(TimeoutError):
                data = host.recv(4096)
                if not data:
                    return
                port.write(b"".join(manager.filter(data)))
            if port.in_waiting:
                host.sendall(b"".join(manager.escape(port.read(port.in_waiting))))

    def accept() -> None:
        while not going_on.is_set():
            try:
                host, _ = listening.accept()
            except OSError:
                return
            with host, WithoutLines(path, timeout=0) as port, contextlib.suppress(OSError):
                serve(port, host)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield "rfc2217://127.0.0.1:%d" % listening.getsockname()[1]
    finally:
        going_on.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:set(Daemon|Name):DeprecationWarning")  # pyserial's own
def test_a_device_server_by_rfc_2217(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    keyring = Keyring(tmp_path / "keys")
    with (
        serial_server(str(target.link)) as url,
        connect(url, keyring=keyring, simulator=True, timeout=30) as client,
    ):
        assert client.link is LinkState.UP
        assert all(client.status(30).uptime_s >= 0 for _ in range(5))
        client.ask(Locate(5), 30)
        assert any(each.name == Located.NAME for each in client.events(0, timeout=5))
    target.close()


def test_without_poll_as_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll")
    target = Tcp(tmp_path)
    client = target.connect()
    for _ in range(20):
        client.status()
    target.pull()
    with pytest.raises(LinkLost):
        client.status(timeout=0.3)
    target.plug()
    assert client.status(timeout=30)
    target.close()


def test_a_serial_port_that_takes_nothing_is_a_lost_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabot_driver.transports.WRITE_S", 0.1)
    ours, theirs = pty.openpty()  # nobody reads the other side
    way = SerialTransport(os.ttyname(theirs))
    way.open()
    with pytest.raises(LinkLost, match="takes nothing"):
        way.write(bytes(1 << 20))
    way.close()
    os.close(ours)
    os.close(theirs)
