"""What ``sabot`` says when something is not as expected, and the examples of every command's help."""

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import socket
import subprocess
import zipfile
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from tests.conformance.targets import Tcp
from tests.driver.command import Ran, Sabot
from tests.warm_start import WarmPopen, warm_run

from sabot_cli.main import cli
from sabot_driver.keyring import write_key
from sabot_driver.user_files import UserFiles

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


def test_a_wrong_key_exits_5_and_names_role_and_file(sabot: Sabot, tmp_path: Path) -> None:
    key = write_key(tmp_path / "wrong.key", os.urandom(32))
    for arguments, role in (
        (("service", "self-test", "--service-key"), "service"),
        (("rng", "export", "--bytes", "128", "--out", tmp_path / "x", "--lab-key"), "lab"),
    ):
        ran = sabot(*arguments, key, "--device", "sim://", "--json")
        assert ran.code == 5, ran.out
        assert f"the key of {role} in {key}" in ran.lines[-1]["message"]
        assert f"--{role}-key" in ran.lines[-1]["advice"]


def test_a_table_given_as_a_device_is_told_so(sabot: Sabot) -> None:
    assert sabot("table", "set", "BAC-07", "--device", "sim://").code == 0
    ran = sabot("status", "--device", "BAC-07")
    assert ran.code == 2
    assert "--table BAC-07" in ran.err


def test_a_table_named_without_its_option_is_told_so(sabot: Sabot) -> None:
    ran = sabot("table", "open", "BAC-07")
    assert ran.code == 2
    assert "(BAC-07). A table is named with --table NAME." in ran.err
    assert "--table" not in sabot("odds", "md-mini-baccarat", "BAC-07").err


def test_an_unknown_command_is_answered_with_the_nearest(sabot: Sabot) -> None:
    ran = sabot("plai")
    assert ran.code == 2
    assert ran.err.endswith("No such command 'plai'. Did you mean play or replay?\n")
    assert "'sabot --help' lists the commands" in sabot("xyzzy").err
    assert "No such option" in sabot("--bogus").err


@pytest.mark.parametrize("path", ["/dev/null", "/tmp", __file__])
def test_what_is_no_serial_port_is_called_so(sabot: Sabot, path: str) -> None:
    ran = sabot("status", "--device", path)
    assert ran.code == 3
    assert ran.err.startswith(f"{path}: this is no serial port\n")
    assert "cable" not in ran.err


def test_a_port_that_is_not_there_is_said_once(sabot: Sabot) -> None:
    ran = sabot("status", "--device", "/dev/ttyACM99")
    assert ran.code == 3
    assert ran.err.startswith("/dev/ttyACM99: there is no such port\n")


def test_an_address_where_nothing_listens_gets_advice_about_the_address(sabot: Sabot) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"socket://127.0.0.1:{closed.getsockname()[1]}"
        ran = sabot("status", "--device", url)
    assert ran.code == 3
    assert ran.err.startswith(f"{url}: Connection refused\nCheck host and port")


def test_a_device_that_is_silent_is_told_with_a_round_time(sabot: Sabot) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"socket://127.0.0.1:{silent.getsockname()[1]}"
        ran = sabot("status", "--device", url, "--timeout", "0.3")
    assert ran.code == 3
    assert re.match(rf"{url}: no device answered in [0-9.]{{1,5}} s\n", ran.err), ran.err


def test_a_capture_in_a_folder_that_is_not_there(sabot: Sabot) -> None:
    ran = sabot("status", "--device", "sim://", "--capture", "/nope/x.pcapng")
    assert ran.code == 2
    assert ran.err.startswith("/nope/x.pcapng: No such file or directory\n")
    assert "a folder that exists" in ran.err


def test_an_act_without_a_person_names_the_ways_and_the_register(sabot: Sabot) -> None:
    ran = sabot("table", "open", "--device", "sim://", "--people")
    assert ran.code == 2
    assert "--floor-key FILE or --badge CODE; 'sabot people list' shows who is enrolled" in ran.err


def test_a_computer_without_a_journal_says_so(sabot: Sabot) -> None:
    ran = sabot("journal", "show")
    assert ran.code == 0
    assert "this computer has no journal" in ran.out
    assert sabot("journal", "show", "--json").out == ""
    assert "this computer has no journal" in sabot("journal", "events").out
    assert sabot("journal", "events", "--json").out == ""


def test_a_command_without_arguments_shows_its_help_once(sabot: Sabot) -> None:
    """It began with 'Error: Usage:'."""
    for group in ((), ("people",)):
        ran = sabot(*group)
        assert ran.code == 2
        assert ran.err.startswith("Usage: sabot")
        assert ran.err.count("Usage:") == 1
        assert "Error" not in ran.err


def test_help_of_a_group_has_whole_sentences(sabot: Sabot) -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        if isinstance(cli.get_command(context, name), click.Group):
            ran = sabot(name, "--help")
            assert not re.search(r"\.\.\.$", ran.out.partition("Commands:")[2], re.MULTILINE), ran.out


def test_what_is_no_number_is_told_in_words(sabot: Sabot) -> None:
    ran = sabot("deck", "retire", "red")
    assert (ran.code, "'red' is not a whole number" in ran.err) == (2, True), ran.err


def test_a_computer_without_a_record_says_how_one_begins(sabot: Sabot) -> None:
    ran = sabot("rounds")
    assert (ran.code, "'sabot play' or 'sabot table open'" in ran.err) == (1, True), ran.err


def test_a_home_that_is_a_file_is_not_advised_to_be_corrected(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "home"
    file.write_text("")
    monkeypatch.setenv("SABOT_HOME", str(file))
    ran = sabot("table", "list")
    assert ran.code == 1
    assert ran.err.startswith(f"{file}/tables.toml: Not a directory\n")
    assert "SABOT_HOME" in ran.err


@pytest.mark.parametrize("command", ["play", "simulate"])
def test_an_unknown_fault_lists_faults_and_places(sabot: Sabot, command: str) -> None:
    ran = sabot(command, "--fault", "jam", *(("--device", "sim://") if command == "play" else ()))
    assert ran.code == 2
    assert "stuck@entry|insertion|chamber|deal|exit: the card stops" in ran.err
    assert "URL" not in ran.err
    assert "sim://" not in ran.err


def test_a_tcp_port_in_use_is_no_traceback(sabot: Sabot) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = sabot("simulate", "--tcp", taken.getsockname()[1], "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (3, "PortBusy")
    assert "--tcp 0" in ran.lines[-1]["advice"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("bundle", "--device", "sim://", "--out"),
        ("capture", "--device", "sim://", "--seconds", "0.1", "--out"),
        ("rng", "export", "--device", "sim://", "--bytes", "10", "--out"),
        ("provision", "--device", "sim://", "--floor-key"),
    ],
)
def test_a_file_that_cannot_be_written_is_no_traceback(
    sabot: Sabot, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    ran = sabot(*arguments, tmp_path / "file" / "below", "--json")
    assert ran.code in (1, 2), ran.out
    assert str(tmp_path / "file") in ran.lines[-1]["message"]
    assert ran.lines[-1]["advice"]


def test_a_home_that_cannot_be_used_is_no_traceback(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SABOT_HOME", str(tmp_path / "file"))
    ran = sabot("status", "--device", "sim://", "--json")
    assert ran.code == 1
    assert ran.lines[-1]["advice"]


@pytest.mark.parametrize(
    "arguments", [("-v", "status"), ("status", "-v"), ("service", "-v", "wear"), ("service", "wear", "-v")]
)
def test_more_may_be_asked_for_anywhere(arguments: tuple[str, ...]) -> None:
    ran = warm_run([*arguments, "--device", "sim://"])
    assert ran.returncode == 0
    assert "sabot" in ran.stderr
    quiet = warm_run(["status", "--device", "sim://"])
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_a_shell_completes_commands_options_and_tables(sabot: Sabot, tmp_path: Path) -> None:
    assert "_SABOT_COMPLETE=bash_complete" in sabot("completion", "bash").out
    assert sabot("table", "set", "BAC-07", "--device", "sim://").code == 0

    program = tmp_path / "complete.py"
    program.write_text("from sabot_cli.main import cli; cli.main(prog_name='sabot')")

    def completed(words: str) -> list[str]:
        count = len(words.split(" ")) - 1
        environment = {
            **os.environ,
            "_SABOT_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(count),
        }
        ran = warm_run([], program=str(program), env=environment)
        return [line.partition(",")[2] for line in ran.stdout.splitlines()]

    assert completed("sabot servi") == ["service"]
    assert "self-test" in completed("sabot service ")
    assert completed("sabot status --table BA") == ["BAC-07"]


# -- the journal ---------------------------------------------------------------------------------------


def test_events_of_a_journal_are_read_while_it_is_in_use(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    url = target.listener.url
    assert sabot("service", "locate", "--device", url, "--simulator", "--json").code == 0
    ran = sabot("journal", "events", "--json")
    assert ran.code == 0
    told = ran.of("device_event")
    assert {"booted", "located"} <= {each["name"] for each in told}
    assert [each["id"] for each in told] == sorted(each["id"] for each in told)
    assert {each["serial"] for each in told} == {"SIM00001"}
    read = list(csv.DictReader(io.StringIO(sabot("journal", "events", "--csv").out)))
    assert [row["name"] for row in read] == [each["name"] for each in told]
    assert json.loads(read[0]["fields"]) == told[0]["fields"]
    assert sabot("journal", "events", "--since", "2999-01-01", "--json").lines == []
    assert len(sabot("journal", "events", "--since", "1h", "--json").lines) == len(told)
    shown = sabot("journal", "events")
    assert "located" in shown.out
    assert sabot("journal", "events", "--since", "yesterday").code == 2
    target.close()


def test_a_journal_is_put_aside_and_a_new_one_begins(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator", "--json")
    assert sabot("service", "locate", *device).code == 0
    before = len(sabot("journal", "events", "--json").lines)
    ran = sabot("journal", "aside", "--serial", "SIM00001", "--json")
    assert ran.code == 0, ran.out
    moved = Path(ran.of("aside")[0]["aside"])
    assert len(sabot("journal", "events", "--file", moved, "--json").lines) == before
    assert sabot("journal", "events", "--json").lines == []
    assert sabot("service", "locate", *device).code == 0
    assert sabot("journal", "events", "--json").lines
    assert sabot("journal", "aside").code == 2
    target.close()


def test_a_damaged_journal_can_be_put_aside(sabot: Sabot, home: Path) -> None:
    path = UserFiles().journal(b"SIM00001", simulator=True)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 100)
    assert sabot("journal", "events", "--json").code == 5
    assert sabot("journal", "aside", "--serial", "SIM00001").code == 0
    assert not path.exists()


def test_a_bundle_without_the_device_has_the_journal(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    url = target.listener.url
    assert sabot("play", "--device", url, "--simulator", "--rounds", 1, "--json").code == 0
    whole, alone = tmp_path / "whole.zip", tmp_path / "alone.zip"
    assert sabot("bundle", "--device", url, "--simulator", "--out", whole, "--json").code == 0
    target.close()
    ran = sabot("bundle", "--device", url, "--simulator", "--out", alone, "--json", "--timeout", 1)
    assert ran.code == 0, ran.out
    assert ran.of("warning")
    with zipfile.ZipFile(whole) as archive:
        names = set(archive.namelist())
        wear = json.loads(archive.read("wear.json"))
        components = json.loads(archive.read("components.json"))
        assert json.loads(archive.read("host-log.json"))
    assert wear["rounds"] == 1
    assert set(components) == {"controller", "card_recognition", "rng"}
    with zipfile.ZipFile(alone) as archive:
        less = set(archive.namelist())
        events = json.loads(archive.read("journal-SIM00001.json"))
        commands = json.loads(archive.read("commands-SIM00001.json"))
        record = json.loads(archive.read("record-SIM00001.json"))
        assert "not reached" in json.loads(archive.read("device.json"))
        told = json.loads(archive.read("wear-SIM00001.json"))
        assert any("not reached" in each for each in json.loads(archive.read("host-log.json")))
        everything = "".join(archive.read(name).decode() for name in less)
    assert less < names
    assert told["rollers"]["feed"]["shuffles"] >= 1
    assert (told["rollers"]["feed"]["change_percent"], told["faults"]) == (0.0, {})
    assert {"journal-SIM00001.json", "commands-SIM00001.json", "record-SIM00001.json"} <= less
    assert "round_ended" in {each["name"] for each in events}
    assert "open_round" in {each["request"] for each in commands}
    assert {"settle", "collect"} <= {each["kind"] for each in record["rows"]}
    assert [each["name"] for each in record["machine"]["components"]] == [
        "controller",
        "card_recognition",
        "rng",
    ], "wear needs the device, components are on record"
    for path in (home / "keys" / "simulators").glob("*.key"):
        assert path.read_text().split()[0] not in everything


# -- examples ------------------------------------------------------------------------------------------


def every_command() -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command by its words, those that installed packages add too; groups are left out."""
    found: list[tuple[tuple[str, ...], click.Command]] = []

    def walk(path: tuple[str, ...], command: click.Command) -> None:
        if not isinstance(command, click.Group):
            found.append((path, command))
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            walk((*path, name), each)

    walk((), cli)
    return found


def examples() -> list[str]:
    """The example of every command's help that has one."""
    lines = [each.epilog.rsplit("\n", 1)[-1].strip() for _, each in every_command() if each.epilog]
    return sorted(set(lines))


TABLE = ("sabot table set BAC-07 --device URL --simulator",)
OPEN = (*TABLE, "sabot table open --table BAC-07")
PLAYED = (*TABLE, "sabot play --table BAC-07 --auto --rounds 1 --json")
DANA = ("sabot people add dana --name Dana --role dealer --pin-stdin",)
OFFICE = ("sabot house init office --name Harbour",)
TRUST = "sabot house trust office/house.json --site MAIN"
SIGNED = (
    *OFFICE,
    "sabot house sign office dana --role floor --site MAIN --not-after 2099-12-31 --new-key --out dana.cert",
)
NEEDS: dict[str, tuple[str, ...]] = {
    "sabot service return": ("sabot service out-of-order --device sim://BAC-07",),
    "sabot journal aside": ("sabot service locate --device URL --simulator",),
    "sabot journal prune": ("sabot service locate --device URL --simulator",),
    "sabot audit": ("sabot play --device sim:// --auto --rounds 3 --json > play.jsonl",),
    "sabot replay": ("sabot capture --out wire.pcapng --seconds 0.1 --device sim://",),
    "sabot evidence verify": (*PLAYED, "sabot evidence show > floor.txt"),
    "sabot evidence countersign": (
        *PLAYED,
        "sabot evidence show --json > checkpoints.jsonl",
        "sabot evidence new-key floor.pem",
    ),
    "sabot evidence": PLAYED,
    "sabot shuffle": (*OPEN, "sabot deck receive --back red --bag 1 --table BAC-07"),
    "sabot rounds": PLAYED,
    "sabot round": PLAYED,
    "sabot deck list": PLAYED,
    "sabot deck receive": OPEN,
    "sabot deck retire": (*OPEN, "sabot deck receive --back red --bag 1 --table BAC-07"),
    "sabot fault show": PLAYED,
    "sabot table remove": TABLE,
    "sabot table rename": TABLE,
    "sabot table close": OPEN,
    "sabot table swap-machine": (
        "sabot table set BAC-07 --device sim://?serial=SIM00077",
        "sabot provision --device URL --simulator",
    ),
    "sabot table swap-pc": ("sabot provision --device URL --simulator",),
    "sabot people key": (
        "sabot people add flo --name Flo --role floor --pin-stdin",
        "sabot provision --floor-key flo.key --device sim://",
    ),
    "sabot house sign": OFFICE,
    "sabot house list": SIGNED,
    "sabot house revoke": SIGNED,
    "sabot house rotate": OFFICE,
    "sabot house trust": OFFICE,
    "sabot house bind": OFFICE,
    "sabot house reset": OFFICE,
    "sabot house update": (*OFFICE, TRUST),
    "sabot people enrol": (*SIGNED, TRUST),
    "sabot people badge": DANA,
    "sabot people pin": DANA,
    "sabot people remove": DANA,
}
"""What an example needs before, by its beginning: commands; URL is a device in a process of its own."""
STOPPED = "seed=1&fault=stuck@insertion:9"
"""An emulated machine in which the ninth card sticks."""
NOT_RUN = ("sabot flash", "sabot serve", "sabot fault clear", "sabot lab-package", "sabot floor")
"""Examples that tests of their own run: with a board, until ended, at a stopped machine, on a checkout, with
a NATS server (`tests/floor/test_floor_cli.py`)."""


def run_line(sabot: Sabot, line: str, url: str) -> Ran:
    """Run a line of a shell: words, and perhaps ``> FILE``."""
    words, _, file = line.replace("URL", url).partition(" > ")
    ran = sabot(*words.split()[1:])
    if file:
        Path(file).write_text(ran.out, encoding="utf-8")
    return ran


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize("line", [each for each in examples() if not each.startswith(NOT_RUN)])
def test_the_example_of_a_commands_help_runs(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("2468\n" * 6))
    needed = max((each for each in NEEDS if line.startswith(each)), key=len, default=None)
    with contextlib.ExitStack() as stack:
        url = ""
        if needed is not None and any("URL" in each for each in NEEDS[needed]):
            target = Tcp(tmp_path)
            stack.callback(target.close)
            url = target.listener.url
        for first in NEEDS.get(needed or "", ()):
            prepared = run_line(sabot, first, url)
            assert prepared.code == 0, first + prepared.out + prepared.err
        ran = run_line(sabot, line, url)
    assert ran.code == 0, ran.out + ran.err


def test_the_example_of_fault_clear_runs_at_a_machine_that_has_stopped(sabot: Sabot, tmp_path: Path) -> None:
    target = Tcp(tmp_path, STOPPED)
    url = target.listener.url
    for line in (*OPEN, "sabot deck receive --back red --bag 1 --table BAC-07"):
        assert run_line(sabot, line, url).code == 0
    assert sabot("shuffle", 1, "--table", "BAC-07").code == 7
    (line,) = [each for each in examples() if each.startswith("sabot fault clear")]
    ran = run_line(sabot, line, url)
    assert ran.code == 0, ran.out + ran.err
    again = sabot("fault", "clear", "--table", "BAC-07")
    assert (again.code, "no fault is open" in again.err) == (1, True), again.err
    (told,) = sabot("status", "--table", "BAC-07", "--json").of("status")
    assert told["fault"] is None
    target.close()


def test_the_example_of_serve_runs_until_it_is_ended() -> None:
    (line,) = [each for each in examples() if each.startswith("sabot serve")]
    program = [*line.split()[1:], "--json"]
    with WarmPopen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        process.terminate()
        assert process.wait(60) == 0
    assert said["event"] == "serving"
    assert said["address"].startswith("http://127.0.0.1:")


def test_every_command_has_an_example_json_exit_codes_and_completion() -> None:
    """The tree of commands is walked: a new command without one of these fails here."""
    commands = every_command()
    assert {("play",), ("table", "swap-machine"), ("simulate",), ("fairness",)} <= {
        path for path, _ in commands
    }
    for path, command in commands:
        name = " ".join(path)
        assert command.epilog, f"'{name}' has no example"
        assert f"sabot {name} " in f"{command.epilog} ", f"the example of '{name}' is of another command"
        assert "Exit codes: 0 " in (command.help or ""), f"the help of '{name}' names no exit codes"
        assert any("--json" in each.opts for each in command.params), f"'{name}' has no --json"
        completed = ShellComplete(cli, {}, "sabot", "_SABOT_COMPLETE").get_completions([*path], "--")
        options = {each.value for each in completed}
        assert {"--json", "--help"} <= options, f"a shell completes no option of '{name}'"


def test_exported_samples_have_a_sidecar_that_says_where_they_come_from(sabot: Sabot, tmp_path: Path) -> None:
    out = tmp_path / "noise.bin"
    ran = sabot("rng", "export", "--bytes", 200, "--out", out, "--device", "sim://?seed=1", "--json")
    assert ran.code == 0, ran.out
    about = json.loads((tmp_path / "noise.bin.json").read_text(encoding="utf-8"))
    assert about["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest() == ran.of("exported")[0]["sha256"]
    assert about["device"]["serial"] == "SIM00001"
    assert about["device"]["test_rng"] is True
    assert set(about["device"]["components"]) == {"controller", "card_recognition", "rng"}
    assert about["samples"] == 1600
    assert about["command"].startswith("sabot rng export --bytes 200 --out ")
    assert about["began"] <= about["ended"]


def test_more_players_than_seats_are_refused(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://", "--auto", "--players", 7)
    assert ran.code == 2
    assert "md-three-card-baccarat has 6 seats, not 7" in ran.err
