"""The dealer's page in a real browser: every state, by touch and by keyboard."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.serve.served_table import EVERYBODY, OTHERS

from sabot_firmware import hardware
from sabot_session.needs import NeedKind
from sabot_session.notes import Note
from sabot_table.procedure import TableRole

Serve = Callable[..., Any]
OpenPage = Callable[..., Any]
BLUR_MS = 400
OVERLAPS = """() => [...document.querySelectorAll(".seat")].filter((seat) => {
  const points = seat.querySelector(".points");
  points.textContent = "three faces";
  points.classList.add("words");
  const box = points.getBoundingClientRect();
  const covered = [...seat.querySelectorAll(".card, .name")].some((each) => {
    const other = each.getBoundingClientRect();
    return box.left < other.right && other.left < box.right && box.top < other.bottom
      && other.top < box.bottom;
  });
  return covered || points.scrollWidth > points.clientWidth || box.right > seat.getBoundingClientRect().right;
}).map((seat) => seat.innerText)"""
"""The seats in which a hand's rank in words would lie over its cards or stick out."""


def test_a_whole_round_in_two_touches(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter()
        page.wait_word("SIGN IN", "act")
        page.shot("sign-in")
        page.sign_in()
        page.wait('body[data-lamp="dealer"]')
        page.shot("prepare")
        page.prepare()
        page.shot("bets-first")
        page.bet(1, 3, 6)
        page.shot("bets-chosen")
        page.act("No more bets")
        page.wait_word("EXPOSE", "act")
        page.shot("expose")
        assert page.page.locator(".card").count() == 0
        page.act("Exposed, settled")
        page.wait_word("BETS", "play")
        page.wait('.seat[data-key="6"] .card')
        assert page.page.locator(".card").count() == 12
        assert page.page.locator(".line.win, .line.lose, .line.push").count() == 12
        page.shot("settled")
        assert page.page.evaluate(OVERLAPS) == []
        page.touches = 0
        page.act("No more bets")
        page.wait_word("EXPOSE", "act")
        page.act("Exposed, settled")
        page.wait_word("BETS", "play")
        table.wait(lambda found: len(found.rows("settle")) == 2)
        assert page.touches == 2
        assert {each.row.actor.person for each in table.rows("no_more_bets", "reveal")} == {"dealer"}


def test_wagers_with_amounts(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare()
        page.touch("#more")
        page.touch("#amounts")
        page.touch('button.seat[data-key="2"]')
        for label in ("More for Ante 25", "More for Ante 5", "More for Tie 5", "Less for Tie"):
            page.touch(f'button[aria-label="{label}"]')
        page.shot("wagers")
        page.touch("#wagers button[data-close]")
        assert page.text('.seat[data-key="2"]').split() == ["Seat", "2", "Ante", "30"]
        page.act("No more bets")
        page.wait_word("EXPOSE")
        page.act("Exposed, settled")
        page.wait_word("BETS")
        table.wait(lambda found: bool(found.rows("settle")))
        assert table.snapshot()["table"]["bets"] == {"2": {"ante": 3000}}
        page.wait('.seat[data-key="2"] .line:text-is("Next bet 30")')
        page.shot("settled-amounts")


def test_a_jam_voids_the_round_and_lights_its_place(serve: Serve, open_page: OpenPage) -> None:
    with serve("seed=1&fault=stuck@exit:5", leave=[NeedKind.CLEAR_FAULT]) as table:
        page = open_page(table).enter().sign_in().prepare().bet(1, 2)
        page.act("No more bets")
        page.wait('body[data-tone="stop"] #path g.fault[data-place]')
        page.wait('body[data-lamp="floor"]')
        assert page.page.locator("#steps li").count() == 3
        assert "is void (MD3 13.D)" in page.text("#void")
        page.shot("jam")
        page.act("Steps done")
        page.wait("#path:not(:has(g.fault))")
        table.wait(lambda found: bool(found.rows("fault_cleared")))
        (cleared,) = table.rows("clear_fault")
        assert cleared.row.actor.person == "dealer"


def test_a_wrong_count_after_the_shuffle_latches_until_the_floor_removes_the_pack(
    serve: Serve, open_page: OpenPage
) -> None:
    with serve("seed=1&fault=missing_card@tray:9", leave=[NeedKind.REMOVE_PACK]) as table:
        page = open_page(table).enter().sign_in()

        def removed(found: Any) -> bool:
            for need in found.needs():
                if need.kind is NeedKind.REMOVE_PACK:
                    return True
                if need.kind is NeedKind.PREPARE_PACK and "dealer" in need.roles:
                    button = page.page.locator("button.act:enabled").filter(
                        has_text=str(need.acts[0])[:5].capitalize()
                    )
                    if button.count():
                        button.first.tap()
            return False

        table.wait(removed)
        page.wait('#word:text-matches("^(RED|BLUE): 51 CARDS \u2013 REMOVE$")')
        assert "51" in page.text("#sentence")
        page.shot("wrong-count-shuffle")
        page.page.reload()
        page.wait('#word:text-matches("51 CARDS \u2013 REMOVE$")')
        page.act("Floor: Removed")
        page.wait("#ask[open]")
        page.floor()
        page.wait("#ask", state="hidden")
        table.wait(lambda found: bool(found.rows("remove")))
        assert table.rows("remove")[-1].row.actor.person == "floor"


def test_a_wrong_count_after_the_stub_has_two_answers(serve: Serve, open_page: OpenPage) -> None:
    with serve("seed=1&fault=missing_card@shoe:30", leave=[NeedKind.DETERMINE]) as table:
        page = open_page(table).enter().sign_in().prepare().bet(1, 2)
        page.act("No more bets")
        page.wait_word("51 SEEN \u2013 COUNT THE HANDS", "act")
        labels = [each.inner_text() for each in page.page.locator("#buttons .label").all()]
        assert labels == ["Misdealt", "Not misdealt"]
        page.shot("wrong-count-stub")
        page.act("Misdealt")
        table.wait(lambda found: bool(found.rows("determine")))
        page.wait('#void:text-matches("is void")')
        page.shot("void")


def test_a_power_cut_in_a_round(serve: Serve, open_page: OpenPage) -> None:
    with serve("seed=1&dealer_ms=60000&speed=20") as table:
        page = open_page(table).enter().sign_in().prepare().bet(1, 2)
        page.act("No more bets")
        page.wait_word("TAKE", "act")
        page.shot("take")
        table.cut_power()
        page.wait('#void:text-matches("is void")')
        page.shot("power-cut")


def test_a_pulled_cable_and_its_return(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare()
        table.pull_cable()
        page.wait_word("NO LINK", "stop")
        page.wait('body[data-lamp="floor"]')
        page.shot("no-link")
        table.pull_cable(out=False)
        page.wait_word("BETS", "play")


def test_a_stopped_service_greys_the_page_which_recovers_by_itself(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare()
        table.stop()
        page.wait("body.stale")
        assert "may be old" in page.text("#stale")
        for each in page.page.locator("button.act, button.seat, #call, #sign").all():
            assert each.is_disabled()
        page.shot("stale")
        table.restart()
        page.wait("body:not(.stale)")
        page.wait_word("BETS", "play")
        page.bet(1)
        page.act("No more bets")  # the dealer is still signed in at the page
        page.wait_word("EXPOSE")


def test_wrong_and_right_credentials(serve: Serve, open_page: OpenPage) -> None:
    with serve(simulated=(TableRole.SERVICE,)) as table:
        page = open_page(table).enter()
        page.wait_word("CLOSED", "floor")
        page.shot("closed")
        page.act("Floor: Open the table")
        page.shot("floor-credential")
        page.floor(pin="0001")
        page.wait('#ask-message:text-matches("^Wrong PIN")')
        assert page.page.input_value("#ask-pin") == ""
        page.shot("wrong-pin")
        page.floor()
        page.wait("#ask", state="hidden")
        page.wait_word("SIGN IN", "act")
        page.touch("#sign")
        for digit in "0001":
            page.touch(f'#keypad button:text-is("{digit}")')
        page.fill(person="dealer")
        page.touch("#ask-ok")
        page.wait('#ask-message:text-matches("^Wrong PIN")')
        page.fill(pin=table.pin("dealer"))
        page.touch("#ask-ok")
        page.wait('#who:text-is("Dealer: dealer")')
        page.wait_word("NEW RED", "floor")
        page.act("Floor: Pack received")
        page.fill(bag="B-17")
        page.shot("new-pack")
        page.floor()
        page.wait("#ask", state="hidden")
        table.wait(lambda found: bool(found.rows("receive_pack")))
        assert table.rows("receive_pack")[0].row.data["bag"] == "B-17"


def test_a_void_is_held_to_confirm(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare().bet(1, 2)
        page.act("No more bets")
        page.wait_word("EXPOSE")
        page.touch("#more")
        button = '#menu-list button.act:has(.label:text-is("Wrong number of cards"))'
        assert "MD3 13.C. Every wager goes back." in page.text(button)
        page.shot("more")
        page.hold(button, BLUR_MS)
        page.page.wait_for_timeout(BLUR_MS)
        assert not table.rows("void")
        page.hold(button, 2500)
        table.wait(lambda found: bool(found.rows("void")))
        page.wait('#void:text-matches("void .MD3 13.C.")')


def test_two_pages_on_one_table(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        first = open_page(table).enter().sign_in().prepare()
        second = open_page(table).enter().sign_in()
        second.wait_word("BETS")
        first.page.evaluate("() => { window.stop(); }")  # it misses what the other page does
        first.page.context.set_offline(False)
        second.bet(2)
        second.act("No more bets")
        second.wait_word("EXPOSE")
        first.wait_word("EXPOSE")
        assert first.page.locator('.seat[data-key="2"].empty').count() == 0
        second.act("Exposed, settled")
        first.wait(".card")
        assert len(table.rows("settle")) == 1


def test_an_act_on_a_need_that_is_gone_names_who_met_it(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare().bet(1)
        other = open_page(table).enter().sign_in()
        other.wait_word("BETS")
        # The page's last news: it hears nothing of what the other one does.
        page.page.route(
            "**/api/acts", lambda route: (other.bet(2), other.act("No more bets"), route.continue_())
        )
        page.act("No more bets")
        page.wait('#message:text-matches("^This was done before by dealer")')
        page.shot("need-gone")
        assert len(table.rows("no_more_bets")) == 1


def test_a_lost_answer_repeats_the_same_act(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table).enter().sign_in().prepare().bet(1)
        seen: list[Any] = []

        def lose_first(route: Any) -> None:
            seen.append(route.request.post_data_json["act_id"])
            if len(seen) == 1:
                route.fetch()  # the service did it, and the answer is lost
                route.abort()
            else:
                route.continue_()

        page.page.route("**/api/acts", lose_first)
        page.act("No more bets")
        page.wait_word("EXPOSE")
        while len(seen) < 2:
            page.page.wait_for_timeout(50)
        assert seen[0] == seen[1]
        assert len(table.rows("no_more_bets")) == 1
        page.wait('#message:text-is("")', state="attached")


def test_keyboard_alone(serve: Serve, open_page: OpenPage) -> None:
    with serve() as table:
        page = open_page(table)
        page.page.goto(f"{table.address}/enter")
        page.page.keyboard.press("Tab")
        page.page.keyboard.type(table.token())
        page.page.keyboard.press("Enter")
        page.wait("body.dealer:not(.waiting)")
        keys = page.page.keyboard

        def focus(selector: str) -> None:
            for _ in range(60):
                keys.press("Tab")
                if page.page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
                    return
            raise AssertionError(f"Tab does not reach {selector}")

        focus("#sign")
        keys.press("Enter")
        keys.type("dealer")
        keys.press("Tab")
        keys.press("Tab")
        keys.type(table.pin("dealer"))
        keys.press("Enter")
        page.wait('#who:text-is("Dealer: dealer")')
        page.prepare()
        focus('button.seat[data-key="1"]')
        keys.press("Space")
        focus("#buttons button.act")
        outline = page.page.evaluate("() => getComputedStyle(document.activeElement).outlineWidth")
        assert outline != "0px"
        keys.press("Enter")
        page.wait_word("EXPOSE")
        focus("#more")
        keys.press("Enter")
        focus("#menu-list button.hold")
        keys.down("Enter")
        page.page.wait_for_timeout(2500)
        keys.up("Enter")
        table.wait(lambda found: bool(found.rows("void")))


def test_dealers_change_between_rounds_only(serve: Serve, open_page: OpenPage) -> None:
    with serve(simulated=EVERYBODY, pace_s=0.05) as table:
        page = open_page(table).enter()
        page.wait('#who:text-is("Dealer: simulated dealer")')
        page.shot("simulated")
        table.wait(lambda found: bool(found.rows("settle")))

        def relieved(found: Any) -> bool:
            if page.text("#who") == "Dealer: dealer":
                return True
            if not page.page.locator("#ask[open]").count():
                page.touch("#sign")
                page.fill(person="dealer", pin=found.pin("dealer"))
                page.touch("#ask-ok")
                page.wait("#ask", state="hidden")
                page.page.wait_for_timeout(200)
            return False

        table.wait(relieved)
        page.wait('#sign:enabled:text-is("Sign out")')
        page.touch("#sign")
        page.wait('#who:text-is("Nobody deals")')


def test_call_floor_hold_and_dispute(serve: Serve, open_page: OpenPage) -> None:
    kinds = [NeedKind.RELEASE, NeedKind.DECIDE_DISPUTE, NeedKind.FLOOR_COMES]
    with serve(leave=kinds) as table:
        page = open_page(table).enter().sign_in().prepare().bet(1)
        page.touch("#call")
        table.wait(lambda found: bool(found.rows("call_floor")))
        page.wait('#call:text-is("Floor called")')
        page.act("No more bets")
        page.wait_word("EXPOSE")
        page.touch("#more")
        page.act("Keep these cards out of the tray (hold)", "#menu-list")
        table.wait(lambda found: bool(found.rows("hold")))
        page.act("Exposed, settled")
        page.wait(".card")
        page.touch("#more")
        page.act("Screen is wrong (dispute)", "#menu-list")
        table.wait_need(NeedKind.DECIDE_DISPUTE)
        page.wait('#also li[data-tone="floor"], body[data-tone="floor"]')
        page.shot("hold-and-dispute")


def test_the_stop_is_there_only_while_no_round_is_open(serve: Serve, open_page: OpenPage) -> None:
    with serve(leave=[NeedKind.CLEAR_FAULT]) as table:
        page = open_page(table).enter().sign_in().prepare().bet(1)
        page.wait("#stop:visible")
        page.act("No more bets")
        page.wait_word("EXPOSE")
        assert page.page.locator("#stop").is_hidden()
        page.act("Exposed, settled")
        page.wait("#stop:visible")
        page.touch("#stop")
        page.wait_word("STOPPED", "stop")
        page.shot("stopped")
        (stopped,) = table.rows("stop_machine")
        assert stopped.row.actor.person == "dealer"
        assert not table.rows("void")


def test_the_lamp_in_each_of_its_states(serve: Serve, open_page: OpenPage) -> None:
    """What the page says of the lamp, and the lamp of the emulated machine."""
    query = "seed=1&dealer_ms=60000&speed=20"
    with serve(query, leave=[NeedKind.FLOOR_COMES]) as table:
        page = open_page(table).enter().sign_in().prepare().bet(1)
        page.wait('body[data-lamp="playing"]')
        table.wait(lambda found: found.lamp() == hardware.GREEN)
        page.act("No more bets")
        page.wait_word("TAKE", "act")
        page.wait('body[data-lamp="dealer"]')
        table.wait(lambda found: found.lamp() == hardware.AMBER)
        page.touch("#call")
        page.wait('body[data-lamp="floor"]')
        table.wait(lambda found: found.lamp() == hardware.RED_LIGHT)
        page.shot("floor-called")


@pytest.mark.parametrize("reduced", ["reduce", "no-preference"])
def test_nothing_moves_by_itself(serve: Serve, open_page: OpenPage, reduced: str) -> None:
    with serve(simulated=OTHERS) as table:
        page = open_page(table, reduced_motion=reduced).enter()
        moving = page.page.evaluate("() => document.getAnimations().length")
        assert moving == 0


def test_a_note_of_the_floor_is_shown_as_text_until_the_dealer_has_read_it(
    serve: Callable[..., Any], open_page: Callable[..., Any], check: Callable[[Any], None]
) -> None:
    text = "<img src=x onerror=alert(1)> " + "Break at six, then pit 3. " * 6
    with serve() as table:
        dealer = open_page(table).enter().sign_in().prepare()
        table.run.receive_note(Note("0" * 16, "anna", text, 0))
        table.run.receive_note(Note("1" * 16, "ben", "Second", 0))
        dealer.wait('#also p:text-matches("Note of anna.*2 wait")')
        assert text.strip() in dealer.text("#also")
        assert dealer.page.locator("#also img").count() == 0
        dealer.shot("note")
        check(dealer.page)
        dealer.act("Note is read", "#also")
        dealer.wait('#also p:text-matches("Note of ben")')
        (row,) = table.rows("note_read")
        assert (row.row.actor.person, row.row.data["sender"]) == ("dealer", "anna")
        assert dealer.errors == []
