"""The ``sabot`` command as a user and as a program sees it."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot, simulated
from tests.sweeps import Amount

from sabot_cli.output import exit_code
from sabot_driver import errors
from sabot_driver.discovery import DiscoveredDevice
from sabot_driver.errors import NoAnswer
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.user_files import UserFiles
from sabot_protocol.host import messages
from sabot_protocol.host.capture import read_capture

CARD = re.compile(r"[A23456789TJQK][SHDC]")

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


# -- play ---------------------------------------------------------------------------------------


def test_play_says_hello_first_tells_rounds_that_add_up_and_sums_up_last(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://", "--seed", 6, "--rounds", 3, "--players", 3, "--json")
    assert ran.code == 0
    assert ran.lines[0]["event"] == "hello"
    assert ran.lines[-1]["event"] == "summary"
    assert all(each["v"] == 1 and each["at"].endswith("Z") for each in ran.lines)
    assert all(each["simulator"] is True for each in ran.lines)
    assert ran.lines[-1]["rounds"] == 3
    rounds = ran.of("round")
    assert [each["round"] for each in rounds] == [1, 2, 3]
    assert [each["deck"] for each in rounds] == ["RED", "BLUE", "RED"]
    for each in rounds:
        assert each["seats"] == [1, 2, 3, "dealer"]
        assert (each["count"], each["expected"], each["stub"]) == (52, 52, 40)
        assert (each["void"], each["void_reason"], each["card_source"]) == (False, None, "reader")
        cards = list(itertools.chain(*each["hands"]))
        assert len(each["hands"]) == 4
        assert all(CARD.fullmatch(card) for card in cards)
        assert len(set(cards)) == 12
    assert len({each["shuffle_id"] for each in rounds}) == 3
    assert len({each["round_id"] for each in rounds}) == 3


def test_a_seed_makes_it_repeatable(sabot: Sabot) -> None:
    def hands(seed: int) -> list[Any]:
        return [each["hands"] for each in sabot(
            "play", "--device", "sim://", "--seed", seed, "--rounds", 1, "--json"
        ).of("round")]  # fmt: skip

    first = hands(11)
    assert hands(11) == first
    assert hands(12) != first


def test_a_planned_fault_voids_a_round_and_play_goes_on(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 2, "--fault", "stuck@exit:5", "--json")
    assert ran.code == 0
    first, *others = ran.of("round")
    assert (first["void"], first["void_reason"], first["count"]) == (True, "shoe_failed", None)
    assert [each["void"] for each in others] == [False]
    assert ran.of("fault")[0]["place"] == "exit"
    assert ran.of("fault_cleared")
    assert (ran.lines[-1]["rounds"], ran.lines[-1]["void"]) == (2, 1)


@pytest.mark.parametrize(
    "fault", ["misfeed@tray:3", "double_feed@tray:17", "stuck@insertion:60", "motor_stall@feed:9"]
)
def test_faults_of_the_shuffler_are_survived(sabot: Sabot, fault: str) -> None:
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 2, "--fault", fault, "--json")
    assert ran.lines[-1]["event"] == "summary"
    assert ran.code in (0, 7)
    assert all(each["count"] in (52, None) for each in ran.of("round"))


def test_play_for_a_person_is_labelled_and_uncoloured(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://", "--seed", 1, "--rounds", 1)
    assert ran.code == 0
    assert "SIMULATOR" in ran.out
    assert "\x1b" not in ran.out
    assert "21 dealt + stub 31 = 52" in ran.out


def test_play_over_emulated_usb(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "usb://?backend=sim", "--simulator", "--seed", 2, "--rounds", 2, "--json")
    assert ran.code == 0
    assert [each["count"] for each in ran.of("round")] == [52, 52]


def test_a_seed_is_for_emulators(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "/dev/ttyACM0", "--seed", 1)
    assert ran.code == 2
    assert "emulated" in ran.err


@pytest.mark.parametrize("fault", ["flood", "stuck@moon", "stuck@exit:none"])
def test_a_fault_that_is_not_there_is_a_bad_url(sabot: Sabot, fault: str) -> None:
    assert sabot("play", "--device", "sim://", "--fault", fault).code == 2


# -- a simulator in another process --------------------------------------------------------------


@pytest.mark.parametrize("way", [["--pty"], ["--tcp", "0"]])
def test_a_served_simulator_is_played_watched_and_asked(sabot: Sabot, tmp_path: Path, way: list[str]) -> None:
    with simulated(*way, "--seed", "1") as url:
        ran = sabot("devices", "--device", url, "--json")
        assert ran.code == 0
        assert ran.of("device")[0]["simulator"] is True
        ran = sabot("play", "--device", url, "--simulator", "--rounds", 1, "--players", 2, "--json")
        assert ran.code == 0, ran.out
        assert [(each["count"], each["deck"]) for each in ran.of("round")] == [(52, "RED")]
        assert {each["card_source"] for each in ran.of("round")} == {"reader"}
        ran = sabot("play", "--device", url, "--simulator", "--rounds", 1, "--players", 2, "--json")
        assert ran.code == 0, ran.out
        assert ran.of("round")[0]["deck"] == "BLUE", "it goes on where it was"
        ran = sabot("status", "--device", url, "--simulator", "--json")
        assert ran.code == 0
        # RED is there if the machine had counted it before the first program closed the table.
        assert ran.of("status")[0]["shoe"] in ("ready", "empty")
        ran = sabot("watch", "--device", url, "--simulator", "--all", "--seconds", "0.5", "--json")
        assert ran.code == 0
        assert {"round_ended", "deck_counted"} <= {each["name"] for each in ran.of("device_event")}
        ran = sabot("doctor", "--device", url, "--json")
        assert next(each for each in ran.of("check") if each["check"] == url)["result"] == "ok"


def test_status_for_a_person(sabot: Sabot) -> None:
    ran = sabot("status", "--device", "sim://")
    assert ran.code == 0
    assert "SIMULATOR" in ran.out
    assert re.search(r"^shoe +empty: no cards in it", ran.out, flags=re.MULTILINE)
    assert re.search(r"^clock +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", ran.out, flags=re.MULTILINE)
    assert re.search(r"^running +\d+ s", ran.out, flags=re.MULTILINE)


# -- which device -------------------------------------------------------------------------------


def test_no_device(sabot: Sabot) -> None:
    ran = sabot("status", "--json")
    assert ran.code == 3
    assert ran.lines[-1]["error"] == "NoDevice"
    assert ran.lines[-1]["advice"]
    assert sabot("devices").code == 3
    assert sabot("status", "--device", "/dev/ttyNOT-THERE").code == 3


def test_two_devices_are_an_error_that_lists_them(sabot: Sabot, mocker: MockerFixture) -> None:
    found = [DiscoveredDevice("/dev/ttyACM0", None), DiscoveredDevice("/dev/ttyACM1", None)]
    mocker.patch("sabot_cli.device_access.find_devices", return_value=found)
    ran = sabot("status", "--json")
    assert ran.code == 4
    assert "/dev/ttyACM0, /dev/ttyACM1" in ran.lines[-1]["message"]


@pytest.mark.parametrize(
    "serial", ["E6615342800000FF", pytest.param("SIM00042", marks=pytest.mark.full)]
)
def test_a_table_has_a_name(sabot: Sabot, tmp_path: Path, home: Path, serial: str) -> None:
    """The first is one of a real board: any eight bytes."""
    target = Tcp(tmp_path, f"seed=1&serial={serial}")
    url = target.listener.url
    assert sabot("table", "set", "BAC-07", "--device", url, "--simulator").code == 0
    assert sabot("table", "list", "--json").lines[0]["serial"] == serial
    assert sabot("status", "--table", "BAC-07", "--json").of("status")[0]["serial"] == serial
    played = sabot("play", "--table", "BAC-07", "--rounds", 3, "--json")
    assert played.of("summary")[0]["rounds"] == 3
    assert sabot("journal", "show", "--table", "BAC-07", "--json").lines[0]["serial"] == serial
    told = tmp_path / "play.jsonl"
    told.write_text(played.out)
    ran = sabot("audit", told, "--json")
    assert (ran.code, ran.lines[-1]["serial"], ran.lines[-1]["ok"]) == (0, serial, True), ran.out + ran.err
    assert sabot("status", "--table", "BAC-08").code == 1
    assert sabot("status", "--table", "BAC-07", "--device", url).code == 2
    assert '[tables."BAC-07"]' in (home / "tables.toml").read_text()
    assert (home / "keys" / "simulators" / f"{serial}.key").stat().st_mode & 0o777 == 0o600
    target.close()


def test_a_table_takes_only_its_own_device(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path, "seed=1&serial=SIM00042")
    sabot("table", "set", "BAC-07", "--device", target.listener.url, "--simulator")
    text = (home / "tables.toml").read_text()
    (home / "tables.toml").write_text(text.replace("SIM00042", "SIM00043"))
    ran = sabot("status", "--table", "BAC-07", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (5, "WrongDevice")
    target.close()


def test_a_key_that_was_given_unheard_is_proved_and_not_sent_again(
    sabot: Sabot, tmp_path: Path, home: Path, mocker: MockerFixture
) -> None:
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator", "--json")
    give = UnsecuredExchange.provision

    def unheard(asking: UnsecuredExchange, serial: bytes, key: bytes) -> None:
        give(asking, serial, key)
        raise NoAnswer("the cable was pulled")

    patched = mocker.patch.object(UnsecuredExchange, "provision", autospec=True, side_effect=unheard)
    assert sabot("provision", *device).code != 0
    keyring = UserFiles(home).keyring
    assert keyring.find(b"SIM00001", True) is None
    pending = keyring.find_next(b"SIM00001", True)
    assert pending is not None
    assert sabot("provision", *device).code == 0
    assert patched.call_count == 1
    assert (keyring.find(b"SIM00001", True), keyring.find_next(b"SIM00001", True)) == (pending, None)
    target.close()


def test_people_get_keys_and_can_then_use_them(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    url, floor, service = target.listener.url, tmp_path / "anna.key", tmp_path / "service.key"
    device = ("--device", url, "--simulator")
    ran = sabot("provision", *device, "--floor-key", floor, "--service-key", service, "--json")
    assert [each["role"] for each in ran.of("key_given")] == ["floor", "service"]
    assert floor.stat().st_mode & 0o777 == 0o600
    assert floor.read_text() != service.read_text()
    played = sabot("play", "--device", url, "--simulator", "--rounds", 1, "--floor-key", floor, "--json")
    assert played.code == 0, played.out + played.err
    kept = floor.read_text()
    again = sabot("provision", "--device", url, "--simulator", "--floor-key", floor, "--json")
    assert (again.code, again.lines[-1]["error"]) == (1, "KeyIsSet"), "only service changes a key that is set"
    assert floor.read_text() == kept
    other = tmp_path / "other.key"
    assert sabot("provision", "--device", url, "--simulator", "--floor-key", other, "--json").code == 1
    assert not other.exists()
    for _ in range(6):  # nothing is tried, so nobody is locked out
        ran = sabot("play", "--device", url, "--simulator", "--rounds", 1, "--json")
        assert (ran.lines[-1]["error"], "--floor-key" in ran.lines[-1]["advice"]) == ("KeyMissing", True)
    assert sabot("play", *device, "--rounds", 1, "--floor-key", floor, "--json").code == 0
    refused = sabot("play", "--device", url, "--simulator", "--rounds", 1, "--floor-key", service, "--json")
    assert refused.code != 0
    target.close()


def test_a_simulator_never_touches_the_key_of_a_device_of_its_name(
    sabot: Sabot, tmp_path: Path, home: Path
) -> None:
    target = Tcp(tmp_path, "seed=1&serial=SIM00042")
    assert sabot("status", "--device", target.listener.url, "--simulator").code == 0
    assert sabot("status", "--device", "sim://?serial=SIM00042").code == 0
    assert sabot("status", "--device", target.listener.url, "--simulator").code == 0, "nor another's"
    key = home / "keys" / "SIM00042.key"
    assert not key.exists()
    key.write_text("ab" * 32 + "\n")
    key.chmod(0o600)
    ran = sabot("status", "--device", "sim://?serial=SIM00042", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (5, "WrongDevice"), "a machine of that name is known"
    assert key.read_text() == "ab" * 32 + "\n"
    target.close()


def test_journals_are_told_from_what_lies_beside_them(sabot: Sabot, tmp_path: Path) -> None:
    target = Tcp(tmp_path, "seed=1&serial=SIM00042")
    assert sabot("play", "--device", target.listener.url, "--simulator", "--rounds", 1).code == 0
    ran = sabot("journal", "show", "--json")
    assert (ran.code, [each["serial"] for each in ran.lines]) == (0, ["SIM00042"])
    target.close()


def test_watch_begins_with_what_comes_unless_it_is_asked_for_all(
    sabot: Sabot, tmp_path: Path, amount: Amount
) -> None:
    target = Tcp(tmp_path, "seed=1")
    assert sabot("play", "--device", target.listener.url, "--simulator", "--rounds", 1).code == 0
    watch = ("watch", "--device", target.listener.url, "--simulator", "--seconds", 2, "--json")
    for _ in range(amount(1, full=3)):
        assert sabot(*watch).of("device_event") == []
    assert len(sabot(*watch, "--all").of("device_event")) > 20
    target.close()


def test_an_audit_says_that_nothing_is_proved(sabot: Sabot, tmp_path: Path) -> None:
    told = tmp_path / "play.jsonl"
    told.write_text(sabot("play", "--device", "sim://", "--seed", 3, "--rounds", 1, "--json").out)
    ran = sabot("audit", told)
    assert ran.code == 5
    assert "nothing is proved" in ran.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("play", "--device", "sim://", "--wagers", "wagers.toml"), "wagers.toml cannot be read"),
        (("simulate", "--speed", "0"), "'0' is no value for 'speed'"),
        (("simulate", "--seconds", "0"), "0.0 is not in the range x>0"),
        (("simulate", "--board", "rp2040", "--firmware", "python"), "leave out --firmware"),
        (("simulate", "--board", "rp2040", "--speed", "10"), "its speed is 1 at most, or 'max'"),
        (("simulate", "--tcp", "0", "--link", "x"), "--link names a pseudo-terminal"),
        (("simulate", "--link", "no/such/folder/x"), "No such file"),
        (("simulate", "--link", "docs"), "File exists"),
        (("watch", "--seconds", "-5"), "not in the range x>0"),
    ],
)
def test_options_that_could_not_work_are_refused(sabot: Sabot, arguments: tuple[str, ...], why: str) -> None:
    ran = sabot(*arguments)
    assert ran.code == 2
    assert why in " ".join((ran.out + ran.err).split())


def test_a_device_another_host_owns_is_in_progress(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    target.keyring.folder.parent.mkdir(parents=True, exist_ok=True)
    assert sabot("provision", "--device", target.listener.url, "--simulator").code == 0
    key_file = home / "keys" / "simulators" / "SIM00001.key"
    target.connect(key=bytes.fromhex(key_file.read_text()))
    ran = sabot("play", "--device", target.listener.url, "--simulator", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (6, "OwnerHeld")
    assert sabot("status", "--device", target.listener.url, "--simulator").code == 0, "watching is allowed"
    target.close()


def test_usage_errors_are_two(sabot: Sabot) -> None:
    assert sabot("play", "--rounds", "none").code == 2
    assert sabot("nothing").code == 2
    ran = sabot("play", "--json", "--rounds", "0", "--device", "sim://")
    assert (ran.code, ran.lines[-1]["error"]) == (2, "UsageError")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadUrl("x"), 2), (errors.NoDevice("x"), 3), (errors.PortBusy("x"), 3),
        (errors.PortDenied("x"), 3), (errors.NoAnswer("x"), 3), (errors.LinkLost("x"), 3),
        (errors.DeviceTimeout("x", None, "y"), 3), (errors.AmbiguousDevice(["a", "b"]), 4),
        (errors.WrongDevice("x"), 5), (errors.KeyMissing("x"), 5), (errors.VersionMismatch("x"), 5),
        (errors.refusal("attach", messages.OwnerHeldDetail.CODE, bytes(8)), 6),
        (errors.refusal("shuffle", messages.DeviceFaultDetail.CODE, bytes((messages.Fault.MISFEED,))), 7),
        (errors.JournalFull("x"), 1),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)  # fmt: skip
def test_errors_have_their_exit_codes(error: errors.SabotError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    "command",
    [
        "devices",
        "status",
        "watch",
        "play",
        "shuffle",
        "simulate",
        "doctor",
        "capture",
        "replay",
        "bundle",
        "table list",
        "table set",
        "provision",
        "journal show",
        "journal prune",
    ],
)
def test_every_command_takes_json_and_explains_itself(sabot: Sabot, command: str) -> None:
    ran = sabot(*command.split(), "--help")
    assert ran.code == 0
    assert "--json" in ran.out


# -- shuffle, capture, bundle ---------------------------------------------------------------------


def test_a_shuffle_refused_says_why(sabot: Sabot) -> None:
    ran = sabot("shuffle", "1", "--device", "sim://", "--json")
    assert ran.code == 1
    assert ran.lines[-1]["error"] == "NotAllowed"


def test_a_shuffle_is_counted(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    url = target.listener.url
    device = ("--device", url, "--simulator")
    assert sabot("table", "open", *device).code == 0
    assert sabot("deck", "receive", "--back", "red", "--bag", 1, *device).code == 0
    ran = sabot("shuffle", "1", *device, "--json")
    assert ran.code == 0, ran.out
    assert (ran.lines[-1]["count"], ran.lines[-1]["expected"]) == (52, 52)
    target.close()


def test_a_capture_is_replayed(sabot: Sabot, tmp_path: Path) -> None:
    out = tmp_path / "wire.pcapng"
    ran = sabot("capture", "--device", "sim://", "--out", out, "--seconds", "0.3", "--json")
    assert ran.code == 0
    with out.open("rb") as stream:
        frames = list(read_capture(stream))
    assert len(frames) == ran.lines[-1]["frames"] > 4
    again = sabot("replay", out, "--json")
    assert again.code == 0
    assert again.of("frame")[0]["name"] == "identify"
    assert len(again.of("frame")) == len(frames)
    assert "identify" in sabot("replay", out).out


def test_a_key_is_never_in_a_capture(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    out = tmp_path / "wire.pcapng"
    assert sabot("play", "--device", "sim://", "--rounds", 1, "--capture", out).code == 0
    keys = [bytes.fromhex(path.read_text()) for path in (home / "keys" / "simulators").glob("*.key")]
    assert len(keys) == 2
    data = out.read_bytes()
    assert len(data) > 1000
    for key in keys:
        assert key[:8] not in data
        assert key[8:24] not in data


def test_tshark_reads_a_capture(sabot: Sabot, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    out = tmp_path / "wire.pcapng"
    ran = sabot("capture", "--device", "sim://", "--out", out, "--seconds", "0.3", "--json")
    read = subprocess.run(
        ["tshark", "-r", str(out), "-T", "fields", "-e", "frame.len"],
        env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(read.stdout.split()) == ran.lines[-1]["frames"]


def test_a_damaged_capture_says_where(sabot: Sabot, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pcapng"
    bad.write_bytes(b"not a capture at all")
    ran = sabot("replay", bad)
    assert ran.code == 1
    assert "byte 0" in ran.err


def test_the_bundle_has_no_secrets(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    target = Tcp(tmp_path)
    out = tmp_path / "support.zip"
    assert sabot("play", "--device", target.listener.url, "--simulator", "--rounds", 1, "--json").code == 0
    ran = sabot("bundle", "--device", target.listener.url, "--simulator", "--out", out, "--json")
    assert ran.code == 0, ran.out
    with zipfile.ZipFile(out) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {"status.json", "events.json", "device-counters.json", "doctor.json"} <= set(parts)
    everything = "".join(parts.values())
    for path in (home / "keys" / "simulators").glob("*.key"):
        assert path.read_text().strip() not in everything
    people = target.device.people
    assert people is not None
    assert not CARD.search(parts["events.json"]), "no card is named"
    hosts = [
        each["fields"]["host_id"]
        for each in json.loads(parts["events.json"])
        if "host_id" in each.get("fields", {})
    ]
    assert set(hosts) == {"…"}
    target.close()


def test_doctor_finds_a_key_others_can_read(sabot: Sabot, home: Path) -> None:
    (home / "keys").mkdir(parents=True)
    (home / "keys" / "X.key").write_text("00" * 32)
    (home / "keys" / "X.key").chmod(0o644)
    ran = sabot("doctor", "--json")
    assert ran.code == 5
    (check,) = [each for each in ran.of("check") if each["check"] == "keys"]
    assert (check["result"], "chmod 600" in check["advice"]) == ("problem", True)


def test_doctor_says_who_has_a_port(sabot: Sabot, tmp_path: Path) -> None:
    with simulated("--pty") as url:
        held = subprocess.Popen(
            [
                sys.executable,
                "-uc",
                f"import serial; p = serial.Serial({url!r}, exclusive=True); print(1); input()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert held.stdout is not None
        held.stdout.readline()
        ran = sabot("doctor", "--device", url, "--json")
        held.communicate(b"\n")
    (check,) = [each for each in ran.of("check") if each["check"] == url]
    assert check["result"] == "warning"
    assert f"process {held.pid}" in check["text"]


def test_it_runs_as_a_script() -> None:
    script = Path(sys.executable).with_name("sabot")
    ran = subprocess.run(
        [str(script), "status", "--device", "sim://", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert "status" in [json.loads(line)["event"] for line in ran.stdout.splitlines()]
