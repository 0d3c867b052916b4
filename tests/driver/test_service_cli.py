"""``sabot service``: what a technician sees and does, on emulated devices and at a real terminal."""

import os
import pty
import re
import select
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from tests.driver.command import Sabot, simulated
from tests.warm_start import WarmPopen

from sabot_cli.service.bring_up import BY_HAND
from sabot_cli.service.machine_work import NoSelfTest, await_self_test
from sabot_driver import Client, ReceivedEvent
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import Fault, FaultRaised, Half, Place, SelfTested, Sensor
from sabot_protocol.schema import WEAR

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]

AT_REST = {"elevator", "elevator_home", "pusher_home", "shuffler_door", "shoe_door"}


def test_a_self_test_has_a_line_for_each_switch(sabot: Sabot) -> None:
    ran = sabot("service", "self-test", "--device", "sim://", "--json")
    assert ran.code == 0
    assert {each["half"]: each["passed"] for each in ran.of("half_tested")} == {
        "shuffler": True,
        "shoe": True,
    }
    assert [each["sensor"] for each in ran.of("switch")] == [each.name.lower() for each in Sensor]
    assert {each["sensor"] for each in ran.of("switch") if each["level"]} == AT_REST
    assert ran.of("self_test")[-1]["ok"] is True
    shown = sabot("service", "self-test", "--device", "sim://")
    assert re.search(r"^ok +shoe_door +on +the shoe's door is closed$", shown.out, flags=re.MULTILINE)


def test_a_switch_that_does_not_answer_is_named(sabot: Sabot) -> None:
    with simulated("--pty", "--speed", "20", "--no-dealer", "--fault", "missed_switch@elevator+20") as url:
        device = ("--device", url, "--simulator", "--json")
        while sabot("status", *device).of("status")[0]["uptime_s"] < 3:  # 60 s of the machine
            time.sleep(0.1)
        ran = sabot("service", "self-test", *device)
    assert ran.code == 7, ran.out
    assert [each["sensor"] for each in ran.of("switch") if not each["ok"]] == ["elevator", "elevator_home"]
    assert ran.of("self_test")[-1]["ok"] is False


def test_sensors_once(sabot: Sabot) -> None:
    ran = sabot("service", "sensors", "--device", "sim://", "--json")
    assert ran.code == 0
    (read,) = ran.of("sensors")
    assert {name for name, level in read["sensors"].items() if level} == AT_REST
    assert read["rollers_um"] == {"feed": 0, "insert": 0, "deal": 0}


@pytest.mark.parametrize(
    ("part", "direction", "sign"), [("feed", "forward", 1), ("deal", "back", -1), ("insert", "forward", 1)]
)
def test_a_roller_turns_one_step_and_stops(sabot: Sabot, part: str, direction: str, sign: int) -> None:
    ran = sabot("service", "jog", part, direction, "--seconds", 0.1, "--device", "sim://?speed=1", "--json")
    assert ran.code == 0, ran.out
    (step,) = ran.of("jogged")
    assert 50_000 < step["turned_um"] * sign < 400_000
    assert len(ran.of("half_tested")) == 2, "the machine tests itself when service ends"


@pytest.mark.parametrize("part", ["gripper", "shelf", "pusher"])
def test_an_axis_goes_where_it_is_sent(sabot: Sabot, part: str) -> None:
    ran = sabot("service", "jog", part, "forward", "--device", "sim://", "--json")
    assert (ran.code, ran.of("jogged")[0]["arrived"]) == (0, True), ran.out


def test_the_elevator_takes_a_height(sabot: Sabot) -> None:
    ran = sabot("service", "jog", "elevator", "forward", "--to", 5000, "--device", "sim://", "--json")
    assert (ran.code, ran.of("jogged")[0]["arrived"]) == (0, True), ran.out
    assert sabot("service", "jog", "elevator", "forward", "--device", "sim://").code == 2
    assert sabot("service", "jog", "feed", "--device", "sim://").code == 2, "there is no terminal"


def test_a_calibration_has_an_old_value_a_date_and_an_undo(sabot: Sabot) -> None:
    device = ("--device", "sim://CAL-1", "--json")
    ran = sabot("service", "calibrate", "card_um", 305, *device)
    assert ran.code == 0, ran.out
    (set_,) = ran.of("calibrated")
    assert (set_["old"], set_["old_set_at"], set_["value"]) == (300, None, 305)
    assert set_["set_at"] is not None
    assert sabot("service", "calibrate", "card_um", 310, *device).code == 0
    ran = sabot("service", "calibrate", "card_um", "--undo", *device)
    assert (ran.of("calibrated")[0]["old"], ran.of("calibrated")[0]["value"]) == (310, 305)
    assert {
        each["name"]: each["value"] for each in sabot("service", "calibrate", *device).of("calibration")
    } == {
        "blade_um": 0,
        "card_um": 305,
    }


def test_the_first_calibration_is_undone_to_a_new_machines_value(sabot: Sabot) -> None:
    device = ("--device", "sim://CAL-2", "--json")
    assert sabot("service", "calibrate", "blade_um", -50, *device).code == 0
    assert sabot("service", "calibrate", "blade_um", "--undo", *device).of("calibrated")[0]["value"] == 0


def test_a_calibration_never_set_has_nothing_to_undo(sabot: Sabot) -> None:
    ran = sabot("service", "calibrate", "card_um", "--undo", "--device", "sim://", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (1, "NoEarlierValue")
    assert "calibrate" in ran.lines[-1]["advice"]


def test_a_value_outside_its_limits_changes_nothing(sabot: Sabot) -> None:
    ran = sabot("service", "calibrate", "card_um", 331, "--device", "sim://CAL-3")
    assert ran.code == 2
    assert "270 to 330" in ran.err
    assert (
        sabot("service", "calibrate", "--device", "sim://CAL-3", "--json").of("calibration")[1]["value"]
        == 300
    )


def test_wear_has_names_and_limits(sabot: Sabot) -> None:
    assert sabot("play", "--device", "sim://WEAR", "--rounds", 1, "--json").code == 0
    ran = sabot("service", "wear", "--device", "sim://WEAR", "--json")
    assert ran.code == 0
    read = {each["name"]: each for each in ran.of("wear")}
    assert list(read) == list(WEAR)
    assert read["rounds"]["value"] == 1
    assert read["feed_permille"]["limit"] == [950, 1050]
    assert read["feed_permille"]["drift_permille"] is not None


def test_the_log_is_decoded(sabot: Sabot) -> None:
    ran = sabot("service", "log", "--from", 1, "--last", 3, "--device", "sim://", "--json")
    assert [each["n"] for each in ran.of("log_row")] == [1, 2, 3]
    assert (ran.of("log_row")[0]["name"], ran.of("log_row")[0]["fields"]) == ("booted", {"reason": "power"})
    last = sabot("service", "log", "--last", 2, "--device", "sim://", "--json").of("log_row")
    assert [each["name"] for each in last] == ["key_changed", "key_changed"]


def test_the_evidence_is_decoded(sabot: Sabot) -> None:
    ran = sabot("service", "log", "--evidence", "--device", "sim://", "--json")
    names = [each["name"] for each in ran.of("log_row")]
    assert names[0] == "chain_begun"
    assert "key_changed" in names
    assert "booted" not in names


def test_emptying_counts_what_came_out(sabot: Sabot) -> None:
    assert sabot("play", "--device", "sim://FULL", "--rounds", 1, "--json").code == 0
    ran = sabot("service", "empty", "--device", "sim://FULL", "--json")
    # the deck of the round may have been fed again before the table closed
    assert (ran.code, ran.of("emptied")[0]["cards"] in (52, 104)) == (0, True), ran.out


def test_out_of_order_lasts_until_service_returns_it(sabot: Sabot) -> None:
    device = ("--device", "sim://OUT", "--json")
    assert sabot("service", "out-of-order", *device).code == 0
    assert sabot("status", *device).of("status")[0]["shoe"] == "out_of_order"
    assert sabot("service", "self-test", *device).code == 1
    ran = sabot("service", "return", *device)
    assert (ran.code, ran.of("returned")[0]["ok"]) == (0, True)
    assert sabot("status", *device).of("status")[0]["shoe"] == "empty"


def test_bring_up_writes_a_sheet_that_fits_on_paper(sabot: Sabot, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.txt"
    ran = sabot("service", "bring-up", "--skip-hands", "--sheet", sheet, "--device", "sim://", "--json")
    assert ran.code == 0, ran.out
    checks = ran.of("bring_up_check")
    assert sum(each["ok"] is None for each in checks) == len(BY_HAND) + 2
    assert sum(each["ok"] is True for each in checks) == 3 + 6 + 3
    text = sheet.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80
    assert all(word in text for word in ("SIM00001", "SIMULATOR", "SHA-256", "signature", "[ ] shoe_door"))


def test_a_sheet_that_cannot_be_written_is_an_error_with_advice(sabot: Sabot, tmp_path: Path) -> None:
    ran = sabot("service", "bring-up", "--sheet", tmp_path / "no" / "s.txt", "--device", "sim://", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (1, "CannotWrite")
    assert not ran.of("bring_up_check"), "told before the work, not after it"


# -- at a terminal ------------------------------------------------------------------------------------------


class Terminal:
    """A program at a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *arguments: str) -> None:
        self.said = ""
        self._end, inner = pty.openpty()
        os.set_blocking(self._end, False)
        environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
        streams: dict[str, Any] = {"stdin": inner, "stdout": inner, "stderr": inner}
        self.process = WarmPopen(list(arguments), terminal=True, env=environment, **streams)
        os.close(inner)

    def expect(self, pattern: str, limit_s: float = 60.0) -> str:
        """What was said up to a text that comes now; it is taken away."""
        ends = time.monotonic() + limit_s
        while (found := re.search(pattern, self.said)) is None:
            assert time.monotonic() < ends, f"{pattern!r} did not come in {self.said!r}"
            if select.select([self._end], [], [], 0.2)[0]:
                try:
                    self.said += os.read(self._end, 4096).decode(errors="replace")
                except OSError:
                    break
        assert found is not None, f"{pattern!r} did not come in {self.said!r}"
        before, self.said = self.said[: found.end()], self.said[found.end() :]
        return before

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def end(self) -> int:
        """The exit code, once it has ended by itself."""
        try:
            return self.process.wait(60)
        finally:
            os.close(self._end)


def test_the_sensors_on_a_screen(home: Path) -> None:
    with simulated("--pty", "--speed", "1") as url:
        shown = Terminal("service", "sensors", "--device", url, "--simulator")
        text = shown.expect("deal roller")
        assert "shoe_door" in text
        shown.press("q")
        assert "none" in shown.expect("changes seen: none")
        assert shown.end() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 80


TRIES = 10  # a busy computer renews its lease too late: then the roller stops sooner, also without a key


def _turned(shown: Terminal) -> float:
    return float(re.findall(r"turned ([0-9.]+) mm", shown.expect(r"turned ([0-9.]+) mm"))[-1])


def test_an_arrow_is_one_step_and_any_key_stops_it(home: Path) -> None:
    with simulated("--pty", "--speed", "1") as url:
        shown = Terminal("service", "jog", "feed", "--device", url, "--simulator")
        shown.expect("q ends")
        for _ in range(TRIES):
            shown.press("\x1b[C")
            whole = _turned(shown)
            shown.press("f")
            time.sleep(0.3)
            shown.press(" ")
            stopped = _turned(shown)
            assert 0 < whole <= 1050, "one step is one second at most; rollers are 5 % faster at most"
            if stopped < 0.8 * whole:
                break
        else:
            pytest.fail("no key has stopped a step")
        shown.press("\x1b[D")
        assert "turned -" in shown.expect(r"turned -[0-9.]+ mm")
        shown.press("q")
        shown.expect("shoe half: .*passed")
        assert shown.end() == 0


def test_a_calibration_is_guided(home: Path) -> None:
    with simulated("--pty") as url:
        shown = Terminal("service", "calibrate", "card_um", "--device", url, "--simulator")
        assert "caliper" in shown.expect("new card_um in um")
        shown.press("303\n")
        shown.expect("set card_um to 303")
        shown.press("y\n")
        assert "it was 300" in re.sub(r"\s+", " ", shown.expect("--undo"))
        assert shown.end() == 0


# -- results of a self-test ---------------------------------------------------------------------------------


class ToldEvents:
    """A client that has been told these events."""

    def __init__(self, *messages: Message) -> None:
        now = datetime(2026, 11, 17, tzinfo=UTC)
        self._events = [
            ReceivedEvent(at, each, 1, at, 0, None, 0, now, (each.ID, b""))
            for at, each in enumerate(messages, 1)
        ]

    def events(self, after: int, timeout: float) -> list[ReceivedEvent]:
        return [each for each in self._events if each.id > after]


def test_a_half_that_failed_and_its_fault_are_in_the_result() -> None:
    fault = FaultRaised(Fault.SWITCH_MISSED, Place.PUSHER, 0, "call service")
    told = ToldEvents(SelfTested(Half.SHUFFLER, 1), fault, SelfTested(Half.SHOE, 0))
    result = await_self_test(cast(Client, told), 0)
    assert result.passed == {Half.SHUFFLER: True, Half.SHOE: False}
    assert result.faults == [fault]
    assert not result.ok
    assert await_self_test(
        cast(Client, ToldEvents(SelfTested(Half.SHOE, 1), SelfTested(Half.SHUFFLER, 1))), 0
    ).ok


def test_a_self_test_that_never_ends_is_an_error() -> None:
    with pytest.raises(NoSelfTest):
        await_self_test(cast(Client, ToldEvents(SelfTested(Half.SHOE, 1))), 0, limit_s=0.05)
