"""A simulator that is started again: with its memory in a file, and without it."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.driver.command import Sabot, simulated
from tests.warm_start import WarmPopen

from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.python_device import WiredPythonDevice
from sabot_simulators.saved_memory import HEADER_BYTES, SLOT_BYTES, MemoryFile

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


def play(sabot: Sabot, url: str, rounds: int = 1) -> list[dict[str, object]]:
    """The lines of a game; it ends well."""
    ran = sabot("play", "--device", url, "--simulator", "--rounds", rounds, "--players", 2, "--json")
    assert ran.code == 0, ran.out
    return ran.lines


def verdicts(sabot: Sabot, option: str, path: Path) -> dict[int, str]:
    """What an audit says of each shuffle."""
    told = sabot("audit", option, path, "--json").of("shuffle_audited")
    return {each["shuffle_id"]: each["verdict"] for each in told}


def test_a_seeded_simulator_that_starts_anew_is_played_again(sabot: Sabot) -> None:
    for _ in range(2):
        with simulated("--pty", "--seed", "7") as url:
            play(sabot, url)


def test_an_audit_tells_two_lives_of_a_memory_apart(sabot: Sabot, tmp_path: Path) -> None:
    lines = tmp_path / "lines.json"
    for rounds in (2, 5):
        # a speed that leaves time to ask for reveals: with "max" the next deck may always wait already
        with simulated("--pty", "--seed", "7", "--speed", "100") as url:
            ran = sabot("play", "--device", url, "--simulator", "--rounds", rounds, "--players", 2, "--json")
            assert ran.code == 0, ran.out
            with lines.open("a", encoding="utf-8") as file:
                file.write(ran.out)
            last = ran
    ran = sabot("audit", "--journal", next((Path(tmp_path) / "home").rglob("SIM00001.db")), "--json")
    told = ran.of("shuffle_audited")
    lives = {each["memory_id"] for each in told}
    assert len(lives) == 2
    assert "wrong" not in {each["verdict"] for each in told}, "an honest device is not accused"
    assert {"secret", "not_kept"} <= {each["verdict"] for each in told}
    assert ran.of("audit")[0]["memory_lives"] == 2
    shown = sabot("audit", "--journal", next((Path(tmp_path) / "home").rglob("SIM00001.db")))
    assert "reveal not kept here" in shown.out
    assert "its deck was not fed again yet" in shown.out
    assert "of memory 2 of 2" in shown.out
    proofs = tmp_path / "last.json"
    proofs.write_text(last.out, encoding="utf-8")
    ran = sabot("audit", proofs, "--journal", next((Path(tmp_path) / "home").rglob("SIM00001.db")), "--json")
    assert ran.code == 0, ran.out
    newest = [each for each in ran.of("shuffle_audited") if each["memory_id"] == told[-1]["memory_id"]]
    assert "proved" in {each["verdict"] for each in newest}
    assert ran.of("audit")[0]["wrong"] == 0


def test_memory_in_a_file_outlives_the_program(sabot: Sabot, tmp_path: Path) -> None:
    state = tmp_path / "device.state"
    with simulated("--pty", "--state", str(state)) as url:
        play(sabot, url)
        assert sabot("service", "calibrate", "card_um", 305, "--device", url, "--simulator").code in (0, 1)
    assert state.stat().st_mode & 0o077 == 0, "it holds keys"
    journal, record = (next((tmp_path / "home").rglob(name)) for name in ("SIM00001.db", "SIM00001.table.db"))
    first_life = verdicts(sabot, "--journal", journal)
    assert "secret" in first_life.values()
    with simulated("--pty", "--state", str(state)) as url:
        ran = sabot("service", "wear", "--device", url, "--simulator", "--json")
        assert [each["roller"] for each in ran.of("roller_time")][:2] == ["feed", "insert"]
        assert all(40 < each["last_ms"] < 130 for each in ran.of("roller_time"))
        wear = ran.of("wear")
        assert next(each["value"] for each in wear if each["name"] == "rounds") == 1
        lines = play(sabot, url)
        assert not [each for each in lines if each["event"] == "error"]
    for source in ("--journal", journal), ("--record", record):
        told = verdicts(sabot, *source)
        # on a busy computer the machine was fed its first deck again before the program ended
        after = {told[shuffle_id] for shuffle_id in first_life}
        assert "lost" in after, "a seed ends with the start that made it"
        assert after <= {"lost", "not_kept", "proved"}
        assert told[max(told)] == "secret", "its deck is still there"
    events = [each["name"] for each in sabot("journal", "events", "--json").lines]
    assert "lost_events" not in events or events.count("booted") == 2


def test_a_table_goes_on_when_journal_and_machine_begin_anew(sabot: Sabot, tmp_path: Path) -> None:
    """The record's place in the old journal was beyond all of the new one: the session heard no event."""
    options = ("--pty", "--state", str(tmp_path / "device.state"))
    with simulated(*options) as url:
        play(sabot, url, 2)
    assert sabot("journal", "aside", "--serial", "SIM00001").code == 0
    with simulated(*options) as url:
        lines = play(sabot, url)
    assert [each["event"] for each in lines].count("journal_anew") == 1
    assert [each["round_id"] for each in lines if each["event"] == "round"] == [3]


def test_memory_in_a_file_outlives_a_kill(sabot: Sabot, tmp_path: Path) -> None:
    state = tmp_path / "device.state"
    options = ["simulate", "--json", "--pty", "--speed", "max", "--state", str(state)]
    process = WarmPopen(options, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    assert sabot("service", "out-of-order", "--device", url, "--simulator").code == 0
    process.send_signal(signal.SIGKILL)  # at once: what was answered is in the file
    process.wait(120)
    process.stdout.close()
    with simulated("--pty", "--state", str(state)) as url:
        shown = sabot("status", "--device", url, "--simulator", "--json").of("status")[0]
        assert (shown["shuffler"], shown["shoe"]) == ("out_of_order", "out_of_order")


def settings() -> DeviceSettings:
    """A simulator with a serial number of its own."""
    return DeviceSettings.from_query({"serial": ["SIM00001"]})


def emulated() -> WiredPythonDevice:
    """An emulated device; its people are at the table."""
    device = emulate(settings(), 0)
    assert isinstance(device, WiredPythonDevice)
    return device


def test_people_remember_decks_and_the_last_rounds(tmp_path: Path) -> None:
    path = tmp_path / "device.state"
    device = emulated()
    MemoryFile(path, device).open()
    people = device.people
    assert people is not None
    people.command_accepted("set_game", (2, 0, 8, 0, 0))
    people.command_accepted("register_deck", (7, 1, 0))
    for number in range(1, 40):
        people.hands[number] = [["Q♠" * 1000]]
        people.command_accepted("open_round", (number + 1,))
    again = emulated()
    kept = MemoryFile(path, again)
    kept.open()
    assert kept.loaded
    assert again.people is not None
    known = again.people.memory()
    assert (known.backs, known.cards) == ({7: 1}, 416)
    assert known.hands[40] == []
    assert set(known.hands) < {37, 38, 39, 40}, "what does not fit is left out, the oldest first"


def test_a_slot_that_was_cut_off_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "device.state"
    device = emulated()
    MemoryFile(path, device).open()
    assert device.people is not None
    for deck_id in (1, 2):
        device.people.command_accepted("register_deck", (deck_id, deck_id, 0))
    whole = path.read_bytes()
    newer = max(HEADER_BYTES, HEADER_BYTES + SLOT_BYTES, key=lambda at: whole[at + 4])
    path.write_bytes(whole[: newer + 20] + b"?" + whole[newer + 21 :])
    again = emulated()
    MemoryFile(path, again).open()
    assert again.people is not None
    assert again.people.memory().backs == {1: 1}


@pytest.mark.parametrize("content", ["", "{}", '{"version": 9}', "\xff"])
def test_a_file_that_is_no_memory_is_refused(sabot: Sabot, tmp_path: Path, content: str) -> None:
    state = tmp_path / "device.state"
    state.write_text(content, encoding="latin-1")
    ran = sabot("simulate", "--pty", "--state", state)
    assert ran.code == 2
    assert "device.state" in ran.err


def test_the_memory_of_another_device_is_refused(sabot: Sabot, tmp_path: Path) -> None:
    state = tmp_path / "device.state"
    with simulated("--pty", "--state", str(state)):
        pass
    ran = sabot("simulate", "--pty", "--serial", "SIM00002", "--state", state)
    assert ran.code == 2
    assert "another device" in ran.err
    assert sabot("simulate", "--pty", "--firmware", "micropython", "--state", state).code == 2
