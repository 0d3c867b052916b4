"""The lock and service.json: one service a table, found by programs, a stale file recognised."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.serve.served_process import ServedProcess
from tests.session.old_record import STATE, old_record
from tests.warm_start import WarmPopen, warm_run

from sabot_driver.user_files import UserFiles
from sabot_serve.errors import ServiceFileFailed, ServiceRunning
from sabot_serve.running import TableService
from sabot_serve.service_file import NAME, ServiceFile, find_service
from sabot_session.record import RecordReader
from sabot_web.errors import NotServed, TlsRequired
from sabot_web.listening import LOOPBACK, Listener

START_S = 180
DEVICE = "sim://?seed=1"
SERVE = ["serve", "--device", DEVICE, "--port", "0", "--json"]


def test_a_table_has_one_service_and_programs_find_it(tmp_path: Path) -> None:
    with ServiceFile(tmp_path) as file:
        assert find_service(tmp_path) is None  # it does not listen yet
        file.publish("http://127.0.0.1:1", "secret")
        found = find_service(tmp_path)
        assert found is not None
        assert (found.address, found.pid, found.token) == ("http://127.0.0.1:1", os.getpid(), "secret")
        assert "secret" not in repr(found)
        assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
        with pytest.raises(ServiceRunning, match=str(os.getpid())):
            ServiceFile(tmp_path)
    assert not (tmp_path / NAME).exists()
    assert find_service(tmp_path) is None


def test_a_file_without_its_lock_is_stale(tmp_path: Path) -> None:
    file = ServiceFile(tmp_path)
    file.publish("http://127.0.0.1:1", "secret")
    file._lock.close()  # as when the process is killed
    assert (tmp_path / NAME).exists()
    assert find_service(tmp_path) is None
    with ServiceFile(tmp_path) as again:
        again.publish("http://127.0.0.1:2", "other")
        found = find_service(tmp_path)
        assert found is not None
        assert found.address == "http://127.0.0.1:2"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"address": 1}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    with ServiceFile(tmp_path):
        (tmp_path / NAME).write_text(text)
        with pytest.raises(ServiceFileFailed):
            find_service(tmp_path)


def test_beyond_this_computer_only_with_tls() -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(TlsRequired):
            TableService(None, None, None, host=host, port=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["table.invalid", "", "x" * 70 + ".invalid"])
def test_a_name_that_nobody_knows_is_told(host: str) -> None:
    with pytest.raises(NotServed, match=r"^[x.a-z]*:") as refused:
        TableService(None, None, None, host=host, port=0)  # type: ignore[arg-type]
    assert not isinstance(refused.value, TlsRequired)
    assert refused.value.advice == "Name an address of this computer."


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    first = TableService(None, None, None, port=0)  # type: ignore[arg-type]
    first._listener.socket.listen()
    port = int(first.address.rpartition(":")[2])
    with pytest.raises(NotServed, match=str(port)):
        TableService(None, None, None, port=port)  # type: ignore[arg-type]
    first._listener.socket.close()


@contextmanager
def serving(
    home: Path, *options: str, stderr: IO[str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A running ``sabot serve``, and what it told."""
    arguments = [*SERVE, *options]
    with WarmPopen(
        arguments, env=environment(home), stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as run:
        assert run.stdout is not None
        try:
            yield run, json.loads(run.stdout.readline())
        finally:
            run.kill()


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "SABOT_HOME": str(home), "PYTHONUNBUFFERED": "1"}


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_a_second_serve_prints_a_new_address_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    with serving(tmp_path) as (first, told):
        assert told["event"] == "serving"
        second = warm_run(SERVE, env=environment(tmp_path), timeout=START_S)
        again = json.loads(second.stdout)
        assert second.returncode == 6
        assert again["event"] == "served"
        assert again["address"] == told["address"]
        assert again["pid"] == first.pid
        assert again["enter"] != told["enter"]
    folder = UserFiles(tmp_path).table_folder(DEVICE)
    assert (folder / NAME).exists()
    assert find_service(folder) is None


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_a_service_ends_in_order(tmp_path: Path) -> None:
    with serving(tmp_path) as (run, _):
        run.send_signal(signal.SIGTERM)
        assert run.wait(START_S) == 0
    assert not (UserFiles(tmp_path).table_folder(DEVICE) / NAME).exists()


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_ctrl_c_ends_a_service_with_a_players_display_in_order(tmp_path: Path) -> None:
    said = tmp_path / "stderr.txt"
    with (
        said.open("w") as stderr,
        serving(tmp_path, "--players-port", "0", stderr=stderr) as (run, told),
    ):
        both = httpx.HTTPTransport(retries=10)
        with httpx.Client(transport=both, timeout=START_S) as page:
            for address in (f"{told['address']}/enter", told["players"]):
                assert page.get(address).status_code == 200
        run.send_signal(signal.SIGINT)
        assert run.wait(START_S) == 130
    assert said.read_text().strip() == ""
    assert not (UserFiles(tmp_path).table_folder(DEVICE) / NAME).exists()


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_a_service_takes_over_the_record_of_an_older_program(tmp_path: Path) -> None:
    with ServedProcess(tmp_path) as served:
        path = served.files.record_of(b"SIM00001", True)
        old_record(path, {**STATE, "state": "closed"})
        served.start()
        assert served.process is not None
        assert served.process.stdout is not None
        told = json.loads(served.process.stdout.readline())
        assert told["event"] == "migrated"
        assert Path(told["kept"]).is_file()
        served.wait_up()
        with RecordReader(path) as record:
            assert record.newest() > 0


@pytest.mark.slow
@pytest.mark.xdist_group("serve-command")
def test_metrics_are_offered_on_loopback(tmp_path: Path) -> None:
    with serving(tmp_path, "--metrics-port", "0") as (run, told):
        assert told["metrics"].startswith("http://127.0.0.1:")
        text = httpx.get(told["metrics"], timeout=START_S, verify=NO_TLS).text
        assert 'sabot_table_running{table="demonstration"} 1.0' in text
        run.send_signal(signal.SIGTERM)
        assert run.wait(START_S) == 0


def test_a_bound_address_takes_connections_before_the_server_runs() -> None:
    """A program that reads ``service.json`` at once was refused: the socket was bound and did not listen."""
    listener = Listener(LOOPBACK, 0)
    try:
        socket.create_connection(listener.socket.getsockname(), timeout=START_S).close()
    finally:
        listener.close()
