"""The dealer's view: a pure function of a snapshot that shows whatever needs, acts and states there are."""

import copy
import json
import re
from typing import Any

import pytest

from sabot_serve import act_forms, phrases
from sabot_serve.dealer_view import SHAPES, VOIDS, dealer_view, money
from sabot_serve.floor_view import floor_view
from sabot_serve.languages import say_in
from sabot_session.acts import ACTS
from sabot_session.needs import NeedKind
from sabot_table.text_vocabulary import PACK_STATES, TABLE_STATES

FACE = re.compile(r'"(A|[2-9]|10|J|Q|K)[CDHS]"')


def with_need(snapshot: Any, kind: str, *, acts: Any = (), roles: Any = ("dealer",), **details: Any) -> Any:
    changed = copy.deepcopy(snapshot)
    changed["needs"] = [
        {
            "id": f"{kind}-1",
            "kind": kind,
            "roles": list(roles),
            "words": f"words of {kind}",
            "clause": "MD3 1.A",
            "acts": list(acts),
            "sensed": not acts,
            "since_s": 0,
            "seen": 5,
            "details": details,
        }
    ]
    return changed


def test_a_view_is_json_and_the_same_for_the_same_snapshot(snapshots: dict[str, Any]) -> None:
    for each in snapshots.values():
        before = copy.deepcopy(each)
        assert json.dumps(dealer_view(each)) == json.dumps(dealer_view(each))
        assert each == before


def test_no_face_before_the_hands_are_exposed(snapshots: dict[str, Any]) -> None:
    assert not FACE.search(json.dumps(dealer_view(snapshots["expose"])["seats"]))
    assert not FACE.search(json.dumps(dealer_view(snapshots["expose"])["hands"]))
    assert FACE.search(json.dumps(dealer_view(snapshots["settled"])["seats"]))


def test_what_the_dealer_announces_is_shown(snapshots: dict[str, Any]) -> None:
    said = {**snapshots["settled"], "announce": "Player 5, Banker 4: Player wins"}
    assert dealer_view(said)["head"]["announce"] == "Say: Player 5, Banker 4: Player wins"
    assert dealer_view(snapshots["settled"])["head"]["announce"] == ""
    chinese = dealer_view(said, say_in("zh-Hans"))["head"]["announce"]
    assert ("闲 5 点" in chinese, "庄 4 点" in chinese, chinese.endswith("闲赢")) == (True, True, True)


def test_the_results_stay_until_the_next_round(snapshots: dict[str, Any]) -> None:
    view = dealer_view(snapshots["settled"])
    assert view["hands"][0]["hand"]["cards"]
    lines = view["seats"][0]["lines"]
    assert {each["do"] for each in lines} <= {"PAY", "TAKE", "RETURN", "VIG"}
    assert lines


@pytest.mark.parametrize("kind", list(NeedKind))
def test_every_need_has_a_word_a_sentence_and_a_tone(snapshots: dict[str, Any], kind: NeedKind) -> None:
    if kind is NeedKind.COUNTERSIGN:
        return  # the floor's; the dealer's page only counts them
    view = dealer_view(with_need(snapshots["bets"], kind, back="red", fault="misfeed", place="shoe"))
    assert view["head"]["word"] == view["head"]["word"].upper()
    assert view["head"]["word"]
    assert view["head"]["sentence"].startswith("Dealer: ")
    assert view["head"]["shape"] == SHAPES[view["head"]["tone"]]


def test_a_need_and_an_act_that_nobody_knows_here_appear(
    snapshots: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = dealer_view(
        with_need(snapshots["bets"], "polish_shoe", acts=["report_shoe_failed"], roles=["floor"])
    )
    assert view["head"]["word"] == "POLISH SHOE"
    assert view["head"]["sentence"] == "Floor: words of polish_shoe"
    assert view["head"]["tone"] == "floor"
    monkeypatch.delitem(phrases.ACTS, "report_shoe_failed")
    (button,) = dealer_view(with_need(snapshots["bets"], "x", acts=["report_shoe_failed"]))["buttons"]
    assert button["label"] == "Report shoe failed"


@pytest.mark.parametrize("act", list(ACTS))
def test_every_act_has_a_form(act: str) -> None:
    for form in act_forms.forms(act, {}):
        assert {each.name for each in form.asks} <= {each.name for each in act_forms.fields_of(act)}


def test_what_a_need_tells_is_not_asked_again(snapshots: dict[str, Any]) -> None:
    need = with_need(snapshots["bets"], "receive_pack", acts=["receive_pack"], roles=["floor"], back="red")
    (button,) = dealer_view(need)["buttons"]
    assert button["data"] == {"back": "red"}
    assert [each["name"] for each in button["asks"]] == ["bag"]
    assert button["credential"]


def test_a_wrong_count_has_two_answers(snapshots: dict[str, Any]) -> None:
    verdicts = ["misdealt", "card_missing", "card_extra"]
    for count, other in ((51, "card_missing"), (53, "card_extra")):
        need = with_need(
            snapshots["expose"], "determine", acts=["determine"], count=count, expected=52, verdicts=verdicts
        )
        view = dealer_view(need)
        assert view["head"]["word"] == f"{count} SEEN \u2013 COUNT THE HANDS"
        assert [each["data"] for each in view["buttons"]] == [{"verdict": "misdealt"}, {"verdict": other}]
        assert view["head"]["latched"]


def test_a_void_is_held_and_names_clause_and_what_goes_back(snapshots: dict[str, Any]) -> None:
    offers = [each for each in dealer_view(snapshots["expose"])["more"] if each["act"] in VOIDS]
    assert {each["act"] for each in offers} == {"report_wrong_number", "report_shoe_failed", "void_round"}
    for each in offers:
        assert each["hold"]
        assert each["clause"].startswith("MD3 13.")
        assert each["gives_back"] == "Every wager goes back: 160 at 2 seats."
    assert not [each for each in dealer_view(snapshots["bets"])["more"] if each["act"] in VOIDS]


def test_where_the_machine_senses_the_first_need_the_next_one_has_its_buttons(
    snapshots: dict[str, Any],
) -> None:
    feed = with_need(snapshots["bets"], "feed", back="red")["needs"]
    view = dealer_view({**snapshots["bets"], "needs": [*feed, *snapshots["bets"]["needs"]]})
    assert view["head"]["word"] == "LAY IN RED"
    assert [each["act"] for each in view["buttons"]] == ["no_more_bets"]


def test_a_fault_is_lit_at_its_place_with_three_steps(snapshots: dict[str, Any]) -> None:
    snapshot = copy.deepcopy(snapshots["bets"])
    steps = "1 open the shoe door 2 take out every card 3 close it"
    snapshot["device"]["faults"] = [{"fault": "card_stuck", "place": "exit", "cards": 1, "steps": steps}]
    view = dealer_view(snapshot)
    assert [each["place"] for each in view["path"] if each["state"] == "fault"] == ["exit"]
    assert view["steps"] == ["open the shoe door", "take out every card", "close it"]


@pytest.mark.parametrize("state", list(TABLE_STATES))
def test_every_state_of_a_table_without_needs_has_a_word(snapshots: dict[str, Any], state: str) -> None:
    snapshot = {**copy.deepcopy(snapshots["bets"]), "needs": []}
    snapshot["table"]["state"] = state
    head = dealer_view(snapshot)["head"]
    assert head["word"]
    assert head["word"] == head["word"].upper()


@pytest.mark.parametrize("state", list(PACK_STATES))
def test_every_state_of_a_pack_is_shown_in_words(snapshots: dict[str, Any], state: str) -> None:
    snapshot = copy.deepcopy(snapshots["bets"])
    snapshot["packs"][0]["state"] = state
    assert "_" not in dealer_view(snapshot)["packs"][0]["state"]


@pytest.mark.parametrize(
    ("cents", "text"), [(0, "0"), (2500, "25"), (50, "0.50"), (123456789, "1,234,567.89"), (-125, "-1.25")]
)
def test_money(cents: int, text: str) -> None:
    assert money(cents) == text


def test_the_lamp_says_floor_once_the_dealer_has_called(snapshots: dict[str, Any]) -> None:
    assert dealer_view(snapshots["bets"])["head"]["lamp"] != "floor"
    assert dealer_view({**snapshots["bets"], "called": "a question"})["head"]["lamp"] == "floor"


def with_notes(snapshot: Any, *texts: str) -> Any:
    notes = [
        {"note_id": f"{at:016x}", "sender": "anna", "text": text, "sent_s": 0, "at_s": 86400 + 3720 + at}
        for at, text in enumerate(texts)
    ]
    return {**snapshot, "notes": notes}


@pytest.mark.parametrize("state", ["bets", "settled"])
def test_the_oldest_note_of_the_floor_is_shown_with_sender_and_time(
    snapshots: dict[str, Any], state: str
) -> None:
    plain = dealer_view(snapshots[state])["also"]
    text = "<b>Break</b> 100%(sender)s"
    (first, *rest) = dealer_view(with_notes(snapshots[state], text, "Second"))["also"]
    assert first["sentence"] == f"Note of anna, 01:02 UTC (2 wait): {text}"
    assert rest == plain
    (button,) = first["buttons"]
    assert (button["act"], button["data"]) == ("read_note", {"note_id": f"{0:016x}"})
    assert (button["asks"], button["credential"], button["roles"]) == ([], False, ["dealer", "floor"])
    (only, *_) = dealer_view(with_notes(snapshots[state], text))["also"]
    assert only["sentence"] == f"Note of anna, 01:02 UTC: {text}"
    (shown, *_) = floor_view(with_notes(snapshots[state], text))["needs"]
    assert shown["sentence"] == only["sentence"]
    assert (shown["buttons"][0]["roles"], shown["buttons"][0]["credential"]) == (["floor"], True)


def test_reading_a_note_is_in_no_menu(snapshots: dict[str, Any]) -> None:
    offer = {"act": "read_note", "roles": ["dealer", "floor"], "clause": ""}
    noted = with_notes(snapshots["bets"], "Break")
    noted["offers"] = [*noted["offers"], offer]
    assert all(each["act"] != "read_note" for each in dealer_view(noted)["more"])
    assert all(each["act"] != "read_note" for each in floor_view(noted)["offers"])
