"""Commands at a table that another process runs: they name the process and change nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver.errors import PortBusy
from sabot_driver.user_files import UserFiles
from sabot_serve.service_file import ServiceFile

NAME = "BAC-07"
PROCESS = f"process {os.getpid()} runs this table"


@contextmanager
def running(sabot: Sabot, home: Path, folder: Path) -> Iterator[None]:
    """A table with a name, which this process runs."""
    target = Tcp(folder)
    assert sabot("table", "set", NAME, "--device", target.listener.url, "--simulator").code == 0
    with ServiceFile(UserFiles(home).table_folder(NAME)) as file:
        file.publish("http://127.0.0.1:1", "secret")
        yield
    target.close()


@pytest.mark.parametrize("command", [["remove", NAME], ["rename", NAME, "BAC-08"]])
def test_a_table_that_is_run_keeps_its_name(
    sabot: Sabot, home: Path, tmp_path: Path, command: list[str]
) -> None:
    with running(sabot, home, tmp_path):
        ran = sabot("table", *command)
    assert ran.code == 6
    assert PROCESS in ran.err
    assert set(UserFiles(home).tables()) == {NAME}


def test_a_port_that_the_tables_process_has_open_is_told_with_the_process(
    sabot: Sabot, home: Path, tmp_path: Path, mocker: MockerFixture
) -> None:
    """The command said that another program has the port open, and not which one."""
    with running(sabot, home, tmp_path):
        busy = mocker.patch("sabot_cli.device_access.connect", side_effect=PortBusy("it is open"))
        ran = sabot("shuffle", 1, "--table", NAME)
    assert busy.call_count == 1
    assert ran.code == 6
    assert PROCESS in ran.err


def test_shuffles_are_audited_while_the_table_is_run(
    sabot: Sabot, home: Path, tmp_path: Path, mocker: MockerFixture
) -> None:
    """The record proves them; the command once asked a laboratory to end the table's program first."""
    with running(sabot, home, tmp_path):
        mocker.patch("sabot_cli.device_access.connect", side_effect=PortBusy("it is open"))
        ran = sabot("audit", "--table", NAME)
    assert (ran.code, PROCESS in ran.err) == (6, True), "there is no record yet"
    mocker.stopall()
    target = Tcp(tmp_path)
    assert sabot("table", "set", NAME, "--device", target.listener.url, "--simulator").code == 0
    assert sabot("play", "--table", NAME, "--auto", "--rounds", 3, "--players", 1, "--json").code == 0
    with ServiceFile(UserFiles(home).table_folder(NAME)) as file:
        file.publish("http://127.0.0.1:1", "secret")
        mocker.patch("sabot_cli.device_access.connect", side_effect=PortBusy("it is open"))
        ran = sabot("audit", "--table", NAME)
    target.close()
    assert ran.code == 0, ran.out + ran.err
    assert f"{PROCESS}; its record and journal are read, not the machine" in ran.out
    assert "proved" in ran.out


def test_a_busy_port_without_such_a_process_stays_a_busy_port(sabot: Sabot, mocker: MockerFixture) -> None:
    mocker.patch("sabot_cli.device_access.connect", side_effect=PortBusy("another program has it open"))
    ran = sabot("shuffle", 1, "--device", "/dev/ttyACM7")
    assert ran.code == 3
    assert "another program has it open" in ran.err
