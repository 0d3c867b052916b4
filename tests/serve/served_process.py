"""``sabot serve`` in a process of its own, at an emulated device that outlives it, with enrolled people."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx
from tests.plain_http import NO_TLS
from tests.warm_start import WarmPopen

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Credential, connect
from sabot_driver.keyring import read_key
from sabot_driver.user_files import UserFiles
from sabot_protocol.host.messages import Role
from sabot_session import pin_hash
from sabot_session.people import PeopleRegister
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.free_port import free_port
from sabot_table.procedure import TableRole

DEALER, DEALER_PIN = "dana", "2468"
FLOOR, FLOOR_PIN = "flo", "13579"
START_S = 120.0
TIMEOUT_S = 30.0


class ServedProcess:
    """A table whose service can be killed and started again; the device goes on meanwhile."""

    def __init__(self, home: Path, seed: int = 1) -> None:
        self.home = home
        self.files = UserFiles(home)
        self.device = emulate(DeviceSettings(seed=seed), wire_ms())
        self._device = DeviceServer(self.device)
        listener = TcpListener()
        self._device.listen(listener)
        self.url = listener.url
        with connect(
            self.url,
            keyring=self.files.keyring,
            journal=lambda serial: self.files.journal(serial, True),
            simulator=True,
            timeout=TIMEOUT_S,
        ) as client:
            provision_simulator_keys(self.files, client, TIMEOUT_S)
            self.floor_key = self.files.floor_key(client.identity.serial)
        self._enrol()
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self.token = ""

    def _enrol(self) -> None:
        before, pin_hash.LOG2_N = pin_hash.LOG2_N, 4  # little work; the register keeps it beside each hash
        try:
            with PeopleRegister(self.files.people) as people:
                people.enrol(DEALER, "Dana Deal", [TableRole.DEALER], DEALER_PIN, "setup", 100)
                people.enrol(FLOOR, "Flo Or", [TableRole.FLOOR], FLOOR_PIN, "setup", 100)
                key = Credential(Role.FLOOR, read_key(self.floor_key))
                people.give_key(FLOOR, key, "setup", 101)
        finally:
            pin_hash.LOG2_N = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._device.close()
        assert self._device.failure is None

    def on_device(self, what: Callable[[], object]) -> None:
        """Do something in the emulated device's thread."""
        self._device.call(what)

    def start(self) -> None:
        """Start the service; it may not answer yet."""
        options = ["serve", "--device", self.url, "--simulator", "--people", "--port", str(self.port)]
        self.process = WarmPopen(
            [*options, "--json"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SABOT_HOME": str(self.home), "PYTHONUNBUFFERED": "1"},
        )

    def wait_up(self) -> None:
        """Wait until the service has told its address."""
        assert self.process is not None
        assert self.process.stdout is not None
        told = self.process.stdout.readline()
        if not told:
            raise AssertionError(f"the service ended with {self.process.wait(START_S)}")
        self.token = str(json.loads(told)["enter"]).partition("#")[2]
        ends = time.monotonic() + START_S
        while True:
            try:
                httpx.get(f"{self.address}/enter", timeout=TIMEOUT_S, verify=NO_TLS)
                return
            except httpx.TransportError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.02)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """End the service; its exit code."""
        run, self.process = self.process, None
        if run is None:
            return 0
        run.send_signal(how)
        code = run.wait(START_S)
        assert run.stdout is not None
        run.stdout.close()
        return code

    def floor_credential(self) -> dict[str, str]:
        """What the floor shows at a page."""
        key = self.floor_key.read_text(encoding="ascii").strip()
        return {"key": key, "role": "floor", "pin": FLOOR_PIN}

    def enter(self, page: httpx.Client) -> None:
        """Let a client in by the token that the service printed last."""
        answer = page.post("/api/enter", json={"token": self.token})
        assert answer.status_code == 200, answer.text
        page.headers["X-Sabot-CSRF"] = answer.json()["csrf"]

    def client(self, **options: Any) -> httpx.Client:
        """A client that sends what a page sends."""
        return httpx.Client(base_url=self.address, headers={"Origin": self.address}, **options, verify=NO_TLS)
