"""The wall in a real browser: 300 tables, two people at one alarm, silence, blindness, the keyboard alone."""

from collections.abc import Callable
from typing import Any

from tests.wall.floor_of_tables import need
from tests.wall.served_wall import PEOPLE, ServedWall

FAULTY = {
    "serial": "S1", "up": True, "shoe": "stopped", "shuffler": "idle",
    "faults": [{"fault": "card_stuck", "place": "exit", "cards": 1}],
}  # fmt: skip
GAMES = ("three-card", "mini-baccarat")
STATES = ("betting", "dealing", "settling", "between", "idle")


def _three_hundred(wall: ServedWall) -> None:
    for pit in range(1, 11):
        names = [f"t{number:03}" for number in range(30 * pit - 29, 30 * pit + 1)]
        for at, state in enumerate(STATES):
            told = {"pit": str(pit), "game": GAMES[pit % 2], "state": state, "round": 100 + pit}
            wall.spoken.tables(names[at::5], **told)
    closed = [f"t{number:03}" for number in range(291, 301)]
    wall.spoken.tables(closed, pit="10", game=GAMES[0], state="closed", round=0, dealer=None)
    wall.wait(lambda: [each["hearing"] for each in wall.rows()] == ["live"] * 300)


def test_three_hundred_tables_are_sorted_live_and_filtered(
    served: ServedWall, open_wall: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    _three_hundred(served)
    page = open_wall(served).enter()
    page.page.wait_for_function("() => document.querySelectorAll('#tables > li').length === 300")
    page.shot("quiet")
    served.spoken.tell("t150", pit="5", game=GAMES[1], called=True)
    page.wait_first("t150")
    served.spoken.tell("t007", pit="1", game=GAMES[1], device=FAULTY, state="voided")
    page.wait_first("t150", "t007")
    words = "release RED, which is held: a card was seen"
    held = need("release", "floor", words=words)
    served.spoken.tell("t222", pit="8", game=GAMES[0], state="dealing", needs=[held])
    page.wait_first("t150", "t007", "t222")
    served.spoken.beat("t031", rows=4100, published=880, waiting_s=412)
    page.wait_first("t150", "t007", "t222", "t031")
    assert page.text('#tables > li[data-key="t007"] .words') == "A card is stuck (exit)"
    assert "3220 rows are not published" in page.text('#tables > li[data-key="t031"] .words')
    page.shot("needs")
    check(page.page)
    served.spoken.tell("t150", pit="5", game=GAMES[1])
    page.wait_first("t007", "t222", "t031")
    page.page.select_option("#pit", "8")
    page.wait_first("t222")
    assert len(page.order()) == 30
    page.page.select_option("#state", "DEALING")
    page.page.wait_for_function("() => document.querySelectorAll('#tables > li').length === 6")
    page.shot("filtered")
    page.page.reload()
    page.page.wait_for_function("() => document.querySelectorAll('#tables > li').length === 6")
    assert page.errors == []


def test_an_alarm_that_two_people_take_at_once_belongs_to_one_of_them(
    served: ServedWall, open_wall: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    served.spoken.tables(["t1", "t2", "t3", "t4"], round=8)
    served.spoken.tell("t2", called=True, round=8)
    served.spoken.tell("t4", device=FAULTY, round=8)
    served.wait_order("t2", "t4")
    anna, ben = (open_wall(served).enter() for _ in range(2))
    anna.wait_first("t2", "t4")
    anna.page.click(anna.take("t2"))  # nobody is signed in: the page asks who it is
    anna.wait("#ask[open]")
    check(anna.page)
    anna.page.keyboard.press("Escape")
    anna.sign_in("anna")
    ben.sign_in("ben").wait_first("t2", "t4")
    send = """(at) => new Promise((done) => setTimeout(() => {
      document.querySelector('#tables > li[data-key="t2"] button.take').click(); done();
    }, at - Date.now()))"""
    at = anna.page.evaluate("() => Date.now()") + 1500
    for each in (anna, ben):  # both clicks at the same moment, in two browsers
        each.page.evaluate(f"(at) => {{ ({send})(at); }}", at)
    for each in (anna, ben):
        each.wait('#tables > li[data-key="t2"][data-rank="taken"]')
    entry = served.spoken.entry_of("t2", "person_needed")
    assert entry is not None
    first, second = (anna, ben) if entry.taken_by == "anna" else (ben, anna)
    second.wait(f'#message:text-matches("^{entry.taken_by} has taken this alarm", "i")')
    assert first.text("#message") == ""
    second.wait_first("t4", "t2")  # what nobody has taken comes first
    assert second.text('#tables > li[data-key="t2"] .taker') == f"Taken by {entry.taken_by}"
    second.wait(second.take("t2"), state="hidden")
    second.shot("taken")
    check(second.page)
    first.page.click(first.take("t2"))  # gives it back
    second.wait('#tables > li[data-key="t2"][data-rank="waits"]')
    assert first.errors == second.errors == []


def test_a_silent_table_and_a_blind_floor_are_told_apart(
    served: ServedWall, open_wall: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    names = [f"t{number:02}" for number in range(1, 41)]
    served.spoken.tables(names, round=31)
    served.wait(lambda: [each["hearing"] for each in served.rows()] == ["live"] * 40)
    page = open_wall(served).enter()
    served.spoken.mute("t17")
    page.wait_first("t17")
    assert page.text('#tables > li[data-key="t17"] .kind') == "TABLE SILENT"
    assert not page.page.is_visible("#blind")
    page.shot("silent")
    check(page.page)
    served.spoken.mute(*names)
    page.wait("#blind:visible")
    assert page.text("#blind-words").startswith("40 of 40 tables are not heard at once")
    silent = '#tables .kind:text-is("TABLE SILENT")'
    assert page.page.locator(silent).count() <= 1  # the one from before; not 40
    page.wait('#floor-alarms .kind:text-is("FLOOR BLIND")')
    page.shot("blind")
    check(page.page)
    served.spoken.tables(names, round=31)
    page.wait("#blind", state="hidden")
    served.stop()
    page.wait("body.stale")
    page.shot("stale")
    assert page.errors == []


def test_the_keyboard_alone_is_enough(served: ServedWall, open_wall: Callable[..., Any]) -> None:
    served.spoken.tables(["t1", "t2", "t3"])
    served.spoken.tell("t3", called=True)
    served.wait_order("t3")
    page = open_wall(served).enter()
    page.wait_first("t3")
    keys = page.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(40):
            if page.page.evaluate(f"() => document.activeElement.matches('{selector}')"):
                return
            keys.press("Tab")
        raise AssertionError(f"{selector} is not reached")

    tab_to("#sign")
    keys.press("Enter")
    page.wait("#ask[open]")
    badge, pin = PEOPLE["ben"]
    tab_to("#ask-badge")
    keys.type(badge)
    keys.press("Tab")
    keys.type(pin)
    keys.press("Enter")
    page.wait('#who:text-is("You are ben")')
    tab_to('li[data-key="t3"] button.take')
    served.spoken.tell("t1", called=True)  # the list is sorted anew, and the focus stays where it was
    page.wait_first("t3", "t1")
    assert page.page.evaluate("""() => document.activeElement.matches('li[data-key="t3"] button.take')""")
    keys.press("Enter")
    page.wait('#tables > li[data-key="t3"][data-rank="taken"]')
    page.wait_first("t1", "t3")
    assert page.page.evaluate("""() => document.activeElement.matches('li[data-key="t3"] button.take')""")
    tab_to('li[data-key="t2"] a')
    keys.press("Enter")
    page.page.wait_for_url("**/table/t2")
    page.wait("body:not(.waiting)")
    assert page.errors == []


def test_one_tables_page_history_and_evidence(
    served_archive: ServedWall, open_wall: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    wall = served_archive
    packs = [
        {"pack_id": 1, "back": "red", "state": "in_shoe", "counted": True, "until_s": 1_800_020_000},
        {"pack_id": 2, "back": "blue", "state": "stored", "counted": True, "until_s": 1_800_030_000},
    ]
    wall.spoken.tables(
        ["t07"], packs=packs, device=FAULTY, needs=[need("clear_fault", "dealer", words="clear it")]
    )
    wall.wait_order("t07")
    page = open_wall(wall).enter().sign_in("anna")
    page.page.click('#tables > li[data-key="t07"] a')
    page.wait("body:not(.waiting)")
    page.wait("#rounds tr")
    page.page.click("#attentions button.take")
    page.wait('#attentions .taker:text-is("Taken by anna")')
    page.wait('#rounds td:text-is("settled")')
    page.shot("table")
    check(page.page)
    page.page.click('nav a:text-is("History")')
    page.wait("#rounds tr")
    looked = page.page.locator("#rounds tr").count()
    assert page.text("#looked") == f"{looked} rounds, of {looked} looked at"
    page.page.select_option("#result", "void")
    page.page.click("#search button")
    page.wait(f'#looked:text-matches("^0 rounds, of {looked} ")')
    page.page.select_option("#result", "settled")
    page.page.click("#search button")
    page.wait(f'#looked:text-matches("^2 rounds, of {looked} ")')
    page.page.click("#rounds tr:first-child button")
    page.wait('#found th:text-is("Wager")')
    assert not page.page.is_visible("#found pre")
    page.shot("history")
    check(page.page)
    page.page.click('nav a:text-is("Evidence")')
    page.wait("body.evidence-page:not(.waiting)")
    page.page.click("#check")
    page.wait('#result:text-matches("everything fits$")')
    page.shot("evidence")
    check(page.page)
    assert page.errors == []


def test_a_note_is_sent_by_a_person_and_its_sender_hears_what_became_of_it(
    served: ServedWall, open_wall: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    served.spoken.tables(["t1", "t2", "t3"])
    served.spoken.tell("t1", takes_notes=True, notes=2)
    served.wait(lambda: len(served.rows()) == 3)
    page = open_wall(served).enter()
    page.page.goto(f"{served.address}/table/t2")
    page.wait('#facts dd:text-is("this table takes no notes")')
    assert not page.page.is_visible("#note")
    page.page.goto(f"{served.address}/table/t1")
    page.wait("#note:visible")
    page.page.fill("#note-text", "Break at <i>six</i>")
    page.page.keyboard.press("Enter")  # nobody is signed in: the page asks who it is
    page.wait("#ask[open]")
    page.page.keyboard.press("Escape")
    page.sign_in("anna")
    page.page.click("#note button")
    page.wait('#message:text-matches("^Table t1 is off, or takes no notes")')
    assert page.page.input_value("#note-text") == "Break at <i>six</i>"
    heard = served.spoken.answer_notes("t1")
    page.page.click("#note button")
    page.wait('#note-message:text-matches("shows it")')
    assert [(each.sender, each.text) for each in heard] == [("anna", "Break at <i>six</i>")]
    assert page.page.input_value("#note-text") == ""
    page.shot("note")
    check(page.page)
    assert page.errors == []
