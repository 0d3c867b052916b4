"""What people type becomes acts; what is shown fits the terminal; money adds up."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click.termui
import pytest
from rich.console import Console

from sabot_cli.at_table.about_round import NothingOpen, SeveralOpen, open_about
from sabot_cli.at_table.act_entry import (
    BadEntry,
    Question,
    ask,
    ask_act,
    parse_hands,
    parse_wagers,
    required,
)
from sabot_cli.at_table.lines_printer import LinesPrinter, cut, fold
from sabot_cli.at_table.one_act import ActingPerson, read_new_pin
from sabot_cli.at_table.round_text import money, signed
from sabot_cli.at_table.terminal_table import TerminalTable, need_line
from sabot_cli.main import run
from sabot_cli.output import Output
from sabot_driver.journal import Journal
from sabot_session.acts import Determine
from sabot_session.needs import Need, NeedKind
from sabot_session.note_acts import ReadNote
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import TableInPlay, open_record, rules_in_play
from sabot_table.errors import ImpossibleCards, WagerRefused
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import Verdict
from sabot_table.ruleset import load

THREE, OTHER = "md-three-card-baccarat", "wa-three-card-baccarat"
USUAL = {1: {"ante": 2_000}, 2: {"ante": 4_000}}


@pytest.mark.parametrize(
    ("text", "wagers"),
    [
        ("1 2", USUAL),
        ("2,1", {2: {"ante": 4_000}, 1: {"ante": 2_000}}),
        ("1 ante 20 tie 5, 3 ante 12.40", {1: {"ante": 2_000, "tie": 500}, 3: {"ante": 1_240}}),
        ("2: ante=20", {2: {"ante": 2_000}}),
    ],
)
def test_seats_and_wagers_are_typed(text: str, wagers: dict[int, dict[str, int]]) -> None:
    assert parse_wagers(text, load(THREE), USUAL) == wagers


@pytest.mark.parametrize("text", ["one", "1 ante", "1 ante 0.005", "1 ante much"])
def test_what_is_no_wager_is_said(text: str) -> None:
    with pytest.raises((BadEntry, WagerRefused)):
        parse_wagers(text, load(THREE), USUAL)


def test_a_question_is_asked_until_the_answer_can_be_taken() -> None:
    asking = ask(Question("bag"), required)
    assert next(asking).wrong == ""
    assert asking.send(" ").wrong == "an answer is needed"
    with pytest.raises(StopIteration) as done:
        asking.send(" A-1 ")
    assert done.value.value == "A-1"


def test_lines_are_folded_at_words_and_equal_ones_are_counted() -> None:
    assert fold("  one two three", 9) == ["  one two", "    three"]
    assert fold("any length", None) == ["any length"]
    assert fold("tie -20.00, dragon-bonus -20.00", 28) == ["tie -20.00,", "  dragon-bonus -20.00"]
    assert fold("1 open the door 2 take out 3 close it", 30) == ["1 open the door 2 take out", "  3 close it"]
    assert fold("countersigned (row 41)", 20) == ["countersigned", "  (row 41)"]
    assert cut("abcdef", 4) == "abc…"
    output = Output()
    shown = io.StringIO()
    output.console = Console(file=shown, force_terminal=False, soft_wrap=True)
    printer = LinesPrinter(output)
    for _ in range(3):
        printer.print("stopped")
    printer.print("cleared")
    assert shown.getvalue() == "stopped\n  (the same 2 more times)\ncleared\n"


def test_amounts_are_money() -> None:
    assert [money(5), money(1_250), signed(-5), signed(0), signed(700)] == [
        "0.05",
        "12.50",
        "-0.05",
        "0.00",
        "+7.00",
    ]


def test_an_open_table_keeps_its_rules_and_a_closed_one_may_change_them(tmp_path: Path) -> None:
    path = tmp_path / "T.table.db"
    journal = Journal(None)
    record, migrated = open_record(path, load(THREE), journal, 1)
    assert migrated is None
    assert rules_in_play(record) is None
    saved = record.load()
    assert saved is not None
    opened = saved.state.replace('"state":"closed"', '"state":"between"', 1)
    assert opened != saved.state
    record.commit([], type(saved)(opened, saved.journal_at))
    record.close()
    with pytest.raises(TableInPlay, match=OTHER):
        open_record(path, load(OTHER), journal, 2)
    with SqliteRecord(path) as again:
        again.commit([], saved)
    other, _ = open_record(path, load(OTHER), journal, 3)
    other.close()


@pytest.mark.slow
def test_the_register_is_changed_by_the_floor_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SABOT_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("13579\n2468\n13579\n2468\n"))
    add = ["people", "add", "--pin-stdin"]
    assert run([*add, "flo", "--name", "Flo", "--role", "floor"]) == 0
    assert run(["people", "badge", "flo", "0012345678"]) == 0
    dana = ["dana", "--name", "Dana", "--role", "dealer"]
    assert run([*add, *dana]) == 5
    assert "nobody authorises" in capsys.readouterr().err
    assert run([*add, *dana, "--by-badge", "0012345678"]) == 5, "the PIN was wrong"
    assert run([*add, *dana, "--by-badge", "0012345678"]) == 0
    capsys.readouterr()
    assert run(["people", "list", "--json"]) == 0
    assert capsys.readouterr().out.count('"event": "person"') == 2


def open_table() -> Any:
    """What `open_about` reads of a table: two rounds, with something open about each."""
    shown = {
        "packs": [{"pack_id": 3, "held_round": 1}, {"pack_id": 4, "held_round": 2}],
        "disputes": [{"row": 6, "round_id": 1}, {"row": 7, "round_id": 1}],
        "corrections": [],
        "countersign": [5, 9],
    }
    rounds = [SimpleNamespace(round_id=1 + (number > 7)) for number in range(1, 12)]
    rows = [SimpleNamespace(number=number, row=each) for number, each in enumerate(rounds, 1)]
    return SimpleNamespace(
        snapshot=lambda: shown, rows=lambda after: [each for each in rows if each.number > after]
    )


def test_an_act_about_a_round_finds_what_is_open_about_it_and_nothing_of_another_round() -> None:
    table = open_table()
    assert open_about(table, "release", 2, {}) == {"pack_id": 4}
    assert open_about(table, "countersign", 2, {}) == {"row": 9}
    assert open_about(table, "countersign", 1, {"row": 5}) == {}
    assert open_about(table, "hold", 1, {}) == {}
    with pytest.raises(SeveralOpen, match="2 rows"):
        open_about(table, "decide_dispute", 1, {})
    assert open_about(table, "decide_dispute", 1, {"row": 7}) == {}
    for name, round_id, told in (
        ("decide_dispute", 2, {}),
        ("confirm_correction", 1, {}),
        ("countersign", 1, {"row": 9}),
        ("release", 3, {}),
    ):
        with pytest.raises(NothingOpen):
            open_about(table, name, round_id, told)


def test_hands_are_typed_in_a_line() -> None:
    rules = load(THREE)
    assert parse_hands("dealer 7S AH JC, 1 8H 6H 10S", rules) == {
        0: ("7S", "AH", "JC"),
        1: ("8H", "6H", "10S"),
    }
    for wrong in (
        "1 8H 6H 10S",
        "dealer 7S AH JC, dealer 8H 6H 10S",
        "dealer 7S 7S JC",
        "dealer",
        "x 7S 8S 9S",
    ):
        with pytest.raises((BadEntry, ImpossibleCards, ValueError)):
            parse_hands(wrong, rules)


def test_a_note_of_the_floor_is_shown_as_text_and_read_by_a_key() -> None:
    text = "[bold]Break[/bold] at six_thirty"
    waiting = [{"note_id": f"{1:016x}", "sender": "anna", "text": text, "sent_s": 0, "at_s": 3720}]
    shown: dict[str, Any] = {"newest_row": 5, "table": {"dealer": "ben"}, "notes": waiting}
    given: list[Any] = []
    face: Any = SimpleNamespace(
        own_client=None, boot_id=0, rules=load(THREE), snapshot=lambda: shown, failure=None,
        rows=lambda *_: [], act=lambda *act: given.append(act),
    )  # fmt: skip
    output = Output()
    output.console = Console(file=io.StringIO(), width=200)
    who: Any = SimpleNamespace(ask=lambda *_: iter(()))
    screen = TerminalTable(face, output, LinesPrinter(output), who, {}, 1.0)
    screen._tell_notes()
    screen._printer.print("play goes on")
    screen._tell_notes()  # each once
    told = f"Note of anna, 01:02 UTC: {text}  (n: it is read)\nplay goes on\n"
    assert output.console.file.getvalue() == told  # type: ignore[attr-defined]
    screen._press("n", [])
    ((_, need, seen, _, act),) = given
    assert (need, seen, act) == (None, 5, ReadNote(f"{1:016x}"))
    waiting.clear()
    screen._press("n", [])
    assert "No note of the floor waits." in output.console.file.getvalue()  # type: ignore[attr-defined]
    assert len(given) == 1


def _need(words: str, *acts: str, kind: NeedKind = NeedKind.EXPOSE, clause: str = "") -> Need:
    return Need("1", kind, (TableRole.DEALER,), words, clause, acts, 0, 0)


def test_enter_never_confirms_what_the_line_does_not_show() -> None:
    expose = _need("expose the hands, settle as shown", "expose", clause="MD3 11.B")
    words = "the machine does not answer: check its cable and power; play goes on then"
    link = _need(words, kind=NeedKind.LINK)
    shown = "DEALER: expose the hands, settle as shown (MD3 11.B)  [Enter] done  [?]"
    assert need_line([link, expose], expose, 80) == shown
    wide = need_line([link, expose], expose, 100)
    assert (wide[:8], wide[-len(shown) - 3 :], len(wide)) == ("the mach", f"…; {shown}", 100)
    tray = _need("lay RED into the tray", kind=NeedKind.LAY_IN)
    bets = _need("no more bets", "close_bets", clause="MD3 7.C")
    both = "lay RED into the tray; DEALER: no more bets (MD3 7.C)"
    assert need_line([tray, bets], bets, 80).startswith(both)
    assert need_line([link], None, 80).endswith("play goes on…  [q] leave")


LOOK = "a card may lie in the shoe's path: open the shoe's door, look, close it, then purge"


def _screen(face: Any, width: int) -> tuple[TerminalTable, io.StringIO]:
    output, said = Output(), io.StringIO()
    output.console = Console(file=said, width=width, force_terminal=True, no_color=True)
    who: Any = SimpleNamespace(ask=lambda *_: iter(()))
    return TerminalTable(face, output, LinesPrinter(output), who, {}, 1.0), said


def test_a_need_that_is_longer_than_the_line_is_told_whole_once() -> None:
    face: Any = SimpleNamespace(
        own_client=None, boot_id=0, rules=load(THREE), rows=lambda *_: [], snapshot=lambda: {"newest_row": 5}
    )
    screen, said = _screen(face, 80)
    purge = _need(LOOK, "purge", clause="MD3 13.D")
    bets = replace(_need("no more bets", "no_more_bets"), id="3")
    assert screen._status([purge]).startswith("DEALER: a card may lie in the shoe's path: open the")
    screen._status([bets])
    screen._status([purge])
    assert " ".join(said.getvalue().split()) == f"DEALER: {LOOK} (MD3 13.D)"
    screen._status([replace(purge, id="2")])
    screen._printer.print("it came again, so it is told again")
    assert said.getvalue().count("the same 1 more time") == 1


def test_an_act_is_given_on_what_the_line_told() -> None:
    """The need changed at row 7, after the line was drawn: the session refuses the act by its 'seen'."""
    given: list[Any] = []
    face: Any = SimpleNamespace(
        own_client=None, boot_id=0, rules=load(THREE), rows=lambda *_: [], failure=None,
        act=lambda *act: given.append(act), snapshot=lambda: {"newest_row": 7, "table": {"dealer": "ben"}},
    )  # fmt: skip
    screen, _ = _screen(face, 80)
    drawn = Need("1", NeedKind.PURGE, (TableRole.FLOOR,), LOOK, "", ("purge",), 0, 6)
    screen._status([drawn])
    screen._press("enter", [drawn])
    ((_, need_id, seen, _, _),) = given
    assert (need_id, seen) == ("1", 6)


def test_what_a_wrong_count_means_is_asked_in_words() -> None:
    details: dict[str, Any] = {
        "count": 51, "expected": 52, "advice": "card_missing",
        "verdicts": ["misdealt", "card_missing", "card_extra"],
    }  # fmt: skip
    need = Need("1", NeedKind.DETERMINE, (TableRole.DEALER,), "", "", ("determine",), 0, 0, details)
    for typed, verdict in (("", "card_missing"), ("Misdealt", "misdealt"), ("card missing", "card_missing")):
        asking = ask_act(Determine, need, load(THREE), {})
        assert str(next(asking)) == "what is it (misdealt, card missing) [card missing]: "
        assert "none of" in asking.send("card extra").wrong
        with pytest.raises(StopIteration) as done:
            asking.send(typed)
        assert done.value.value == Determine(Verdict(verdict))


def test_a_chosen_pin_is_typed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["2580", "2850", "2580", "2580"])
    monkeypatch.setattr(click.termui, "hidden_prompt_func", lambda _: next(typed))
    assert read_new_pin(ActingPerson(), "dana") == "2580"
    assert list(typed) == []
