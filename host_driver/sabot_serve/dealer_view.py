"""What the dealer's page shows: a pure function of a snapshot.

The view has one word with a tone, one sentence (who does what now), buttons for what is allowed, the card
path with faults, seats and packs. It holds nothing that the snapshot does not hold, so no card before the
dealer exposed it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sabot_serve import act_forms, phrases
from sabot_serve.act_forms import Form
from sabot_serve.phrases import Say, said
from sabot_serve.session_words import in_words
from sabot_session.acts import ACTS
from sabot_table.cards import cards
from sabot_table.errors import TableError
from sabot_table.hand_ranking import HAND_CARDS, HandCategory, rank_hand

Json = Mapping[str, Any]
PLAY, ACT, FLOOR, STOP, WAIT = "play", "act", "floor", "stop", "wait"
"""Tones: each has a colour and a shape of its own."""
SHAPES = {PLAY: "circle", ACT: "triangle", FLOOR: "diamond", STOP: "octagon", WAIT: "ring"}
LAMP = {PLAY: "playing", WAIT: "playing", ACT: "dealer", FLOOR: "floor", STOP: "floor"}
VOIDS = ("report_face_up", "report_wrong_number", "report_shoe_failed", "void_round")
"""Acts that void a round: they are confirmed by holding the button."""
LATCHED = ("remove_pack", "determine")
"""Needs that come from a wrong count: they stay on top until somebody has met them."""
STOP_ACT = "stop_machine"
NOTE_ACT = "read_note"
APART = (
    *("call_floor", "sign_in", "sign_out", "open_bets", "place_wager", "withdraw_wager"),
    STOP_ACT,
    NOTE_ACT,
)
"""Offers that have a place of their own on the page, or that "no more bets" tells with the seats."""
SHOE_BUSY = {
    "loading": ("pusher",),
    "dispensing": ("deal", "exit"),
    "ejecting": ("deal", "exit"),
}
SHUFFLER_BUSY = {"feeding": ("feed", "entry", "insertion", "chamber"), "storing": ("chamber", "store")}
CARDS_WAIT = ("stack_waiting", "stub_waiting")
NUMBERED = re.compile(r"(?:^|\s)[1-9]\s")
"""How the device separates the steps of a fault: "1 open the shoe door 2 take out every card"."""


def dealer_view(snapshot: Json, say: Say = str) -> dict[str, Any]:
    """The dealer's page; each top-level part is replaced as a whole when it changes."""
    needs = [each for each in snapshot["needs"] if each["kind"] != "countersign"]
    needs.sort(key=_rank)
    head = head_of(snapshot, needs, say)
    return {
        "head": head,
        "buttons": _main_buttons(snapshot, needs, say),
        "also": [*notes_view(snapshot, say), *(_also(snapshot, each, say) for each in needs[1:5])],
        "more": _more(snapshot, say),
        "stop": _stop(snapshot, say),
        "people": people_view(snapshot),
        "path": _path(snapshot, say),
        "steps": _steps(snapshot, say),
        "seats": [_seat(snapshot, seat, say) for seat in snapshot["table"]["seats"]],
        "hands": table_hands(snapshot, say),
        "packs": [pack_view(snapshot, each, say) for each in snapshot["packs"]],
        "table": table_view(snapshot, say),
    }


def _rank(need: Json) -> int:
    """What the dealer sees first: wrong counts, then the dealer's own, then what others must do."""
    if need["kind"] in LATCHED:
        return 0
    return 1 if tone_of(need) == STOP or "dealer" in need["roles"] else 2


# -- the word and the sentence ------------------------------------------------------------------


def head_of(snapshot: Json, needs: Sequence[Json], say: Say) -> dict[str, Any]:
    """The word, the sentence and the tone of a table with these needs."""
    playing = _shown_round(snapshot)
    clause = ""
    if needs:
        word, sentence, tone = word_of(needs[0], say), sentence_of(needs[0], say), tone_of(needs[0])
        clause = needs[0]["clause"]
    else:
        state = snapshot["table"]["state"]
        known = phrases.TABLE.get(state)
        word = phrases.plain(state).upper() if known is None else say(known[0])
        sentence = "" if known is None else say(known[1])
        tone = STOP if state == "voided" else WAIT
    void = ""
    if playing is not None and playing["void_clause"]:
        void = say(phrases.N_("Round %(round)s is void (%(clause)s): return every wager.")) % {
            "round": playing["round_id"],
            "clause": playing["void_clause"],
        }
        clause = clause or playing["void_clause"]
    return {
        "word": word,
        "sentence": sentence,
        "tone": tone,
        "shape": SHAPES[tone],
        "lamp": LAMP[FLOOR if snapshot["called"] else tone],
        "clause": clause,
        "void": void,
        "notice": snapshot["notice"],
        "announce": _announce(str(snapshot["announce"]), say),
        "latched": bool(needs) and needs[0]["kind"] in LATCHED,
    }


def _announce(text: str, say: Say) -> str:
    """What the dealer says aloud now."""
    return say(phrases.N_("Say: %(words)s")) % {"words": in_words(say, text)} if text else ""


def tone_of(need: Json) -> str:
    """Whom a need is for, as colour and shape tell it."""
    if need["kind"] == "bets":
        return PLAY
    if need["kind"] in ("clear_fault", "link", "out_of_order") or not need["roles"]:
        return STOP
    return ACT if "dealer" in need["roles"] else FLOOR


def word_of(need: Json, say: Say) -> str:
    """The one word of a need."""
    kind, values = need["kind"], _values(need, say)
    if kind == "prepare_pack":
        return said(say, phrases.STEPS, str(values.get("step", kind)), values).upper()
    if kind == "remove_pack" and "count" in values:
        return (say(phrases.WRONG_COUNT) % values).upper()
    if kind == "clear_fault":
        return say(phrases.FAULTS.get(str(need["details"].get("fault")), phrases.FAULT))
    try:
        return said(say, phrases.WORDS, kind, values).upper()
    except KeyError:
        return phrases.plain(kind).upper()


def sentence_of(need: Json, say: Say) -> str:
    """Who does what now."""
    who = say(phrases.ROLES.get(need["roles"][0], phrases.plain(need["roles"][0]))) if need["roles"] else ""
    what = _what(need, say)
    return say(phrases.WHO_WHAT) % {"who": who, "what": what} if who else what


def _what(need: Json, say: Say) -> str:
    kind, values = need["kind"], _values(need, say)
    details = need["details"]
    key = kind
    if kind == "prepare_pack":
        key = values.get("step", kind)
    elif kind == "bets":
        key = "bets" if details.get("seats") else "bets_new"
    elif kind == "take_stack":
        key = "take_seat" if details.get("seat") else "take_dealer"
    elif kind == "clear_fault":
        key = "fault"
    known = phrases.SPECIAL.get(key) or phrases.SENTENCES.get(key)
    try:
        return in_words(say, need["words"]) if known is None else say(known) % values
    except KeyError:  # this need has not all that the phrase names
        return in_words(say, need["words"])


def _values(need: Json, say: Say) -> dict[str, Any]:
    values = dict(need["details"])
    if "back" in values:
        values["back"] = said(say, phrases.BACKS, str(values["back"]))
    if "place" in values:
        values["place"] = said(say, phrases.PLACES, str(values["place"])).lower()
    if "fault" in values:
        values["fault"] = said(say, phrases.FAULT_NAMES, str(values["fault"]))
    if "why" in values:
        values["why"] = in_words(say, str(values["why"]))
    return values


# -- buttons ------------------------------------------------------------------------------------


def _main_buttons(snapshot: Json, needs: Sequence[Json], say: Say) -> list[dict[str, Any]]:
    """Those of the first need; where the machine senses it, also those of the next need of the dealer."""
    for at, need in enumerate(needs):
        made = buttons_of(snapshot, need, say) if at == 0 or "dealer" in need["roles"] else []
        if made or (at == 0 and not need["sensed"]):
            return made
    return []


def buttons_of(snapshot: Json, need: Json, say: Say) -> list[dict[str, Any]]:
    """A button for each way to meet a need."""
    made = []
    for act in need["acts"]:
        for form in act_forms.forms(act, need["details"]):
            if _fits(form, need["details"]):
                made.append(_button(form, need["roles"], need["clause"], need["id"], need["seen"], say))
    if need["kind"] == "bets" and not need["details"].get("seats"):
        made = [{**each, "editor": "wagers"} for each in made]
    return made


def _fits(form: Form, details: Json) -> bool:
    """Too few cards are not a card too many."""
    count, expected = details.get("count"), details.get("expected")
    if count is None or expected is None:
        return True
    return form.choice != ("card_extra" if count < expected else "card_missing")


def _button(
    form: Form, roles: Sequence[str], clause: str, need_id: str | None, seen: int, say: Say
) -> dict[str, Any]:
    label = said(say, phrases.CHOICES, form.choice) if form.choice else said(say, phrases.ACTS, form.act)
    asks = [
        {
            "name": each.name,
            "label": said(say, phrases.FIELDS, each.name).capitalize(),
            "kind": each.kind,
            "choices": {value: said(say, phrases.CHOICES, value).capitalize() for value in each.choices},
        }
        for each in form.asks
    ]
    editor = next((each["kind"] for each in asks if each["kind"] in act_forms.EDITORS), "")
    return {
        "key": f"{need_id or ''} {form.act} {form.choice}",
        "act": form.act,
        "data": dict(form.data),
        "asks": asks,
        "editor": editor,
        "label": label[:1].upper() + label[1:],
        "detail": said(say, phrases.CHOICE_DETAILS, form.choice)
        if form.choice in phrases.CHOICE_DETAILS
        else "",
        "roles": list(roles),
        "credential": "dealer" not in roles or form.act == "sign_in",
        "who": say(phrases.ROLES.get(roles[0], phrases.plain(roles[0]))) if roles else "",
        "clause": clause,
        "need": need_id,
        "seen": seen,
        "hold": form.act in VOIDS,
    }


def _also(snapshot: Json, need: Json, say: Say) -> dict[str, Any]:
    return {
        "id": need["id"],
        "tone": tone_of(need),
        "shape": SHAPES[tone_of(need)],
        "sentence": sentence_of(need, say),
        "buttons": buttons_of(snapshot, need, say),
    }


def notes_view(snapshot: Json, say: Say, roles: Sequence[str] = ("dealer", "floor")) -> list[dict[str, Any]]:
    """The oldest note of the floor that nobody has read, as plain text; nothing if none waits."""
    waiting = snapshot["notes"]
    if not waiting:
        return []
    note = waiting[0]
    at = datetime.fromtimestamp(note["at_s"], UTC).strftime("%H:%M")
    words = {"sender": note["sender"], "time": at, "text": note["text"], "count": len(waiting)}
    one, several = phrases.NOTE, phrases.NOTES
    form = Form(NOTE_ACT, {"note_id": note["note_id"]})
    return [
        {
            "id": f"note {note['note_id']}",
            "tone": ACT,
            "shape": SHAPES[ACT],
            "sentence": say(one if len(waiting) == 1 else several) % words,
            "clause": "",
            "buttons": [_button(form, roles, "", None, snapshot["newest_row"], say)],
        }
    ]


def _more(snapshot: Json, say: Say) -> list[dict[str, Any]]:
    """What may be told although no need asks for it; what voids a round comes first."""
    offered = [
        each
        for each in snapshot["offers"]
        if each["act"] not in APART and each["act"] in ACTS and set(each["roles"]) != {"service"}
    ]
    offered.sort(key=lambda each: each["act"] not in VOIDS)
    return [offer_button(snapshot, each, say) for each in offered]


def _stop(snapshot: Json, say: Say) -> dict[str, Any] | None:
    """The button that stops the machine; None while a round is open, or nothing can be stopped."""
    found = next((each for each in snapshot["offers"] if each["act"] == STOP_ACT), None)
    return None if found is None else offer_button(snapshot, found, say)


def offer_button(snapshot: Json, offer: Json, say: Say) -> dict[str, Any]:
    """The button of an act that no need asks for."""
    form = act_forms.whole_form(offer["act"])
    button = _button(form, offer["roles"], offer["clause"], None, snapshot["newest_row"], say)
    if form.act in VOIDS:
        button["gives_back"] = _given_back(snapshot, say)
    return button


def _given_back(snapshot: Json, say: Say) -> str:
    playing = snapshot["round"]
    if playing is None or not playing["wagers_known"]:
        return say(phrases.N_("Every wager goes back."))
    made = playing["wagers"]
    cents = sum(sum(each.values()) for each in made.values())
    return say(phrases.N_("Every wager goes back: %(money)s at %(seats)s seats.")) % {
        "money": money(cents),
        "seats": len(made),
    }


def people_view(snapshot: Json) -> dict[str, Any]:
    """Who deals, and what people at the page may do about it."""
    offered = {each["act"] for each in snapshot["offers"]}
    asked = {act for each in snapshot["needs"] for act in each["acts"]}
    return {
        "dealer": snapshot["table"]["dealer"],
        "may_sign_in": "sign_in" in offered | asked,
        "may_sign_out": "sign_out" in offered,
        "call_floor": "call_floor" in offered,
        "called": snapshot["called"],
        "countersign": len(snapshot["countersign"]),
    }


# -- the machine --------------------------------------------------------------------------------


def _path(snapshot: Json, say: Say) -> list[dict[str, Any]]:
    device = snapshot["device"]
    faults = {each["place"] for each in device["faults"]}
    busy = {*SHOE_BUSY.get(device["shoe"], ()), *SHUFFLER_BUSY.get(device["shuffler"], ())}
    backs = {each["pack_id"]: each["back"] for each in snapshot["packs"]}
    holds = {}
    if device["in_shoe"]:
        holds["shoe"] = backs.get(device["in_shoe"], "unknown")
    if device["in_shuffler"]:
        stored = device["shuffler"] in ("stored", "holding")
        holds["store" if stored else "chamber"] = backs.get(device["in_shuffler"], "unknown")
    if device["shoe"] in CARDS_WAIT:
        holds["exit_tray"] = backs.get(device["in_shoe"], "unknown")
    found = []
    for place, label in phrases.PLACES.items():
        state = "fault" if place in faults else "busy" if place in busy else ""
        if place == "controller" and not state:
            continue
        found.append({"place": place, "label": say(label), "state": state, "holds": holds.get(place, "")})
    return found


def _steps(snapshot: Json, say: Say) -> list[str]:
    """The clearing steps of the first fault, three at most."""
    for each in snapshot["device"]["faults"]:
        if each["steps"]:
            found = [step.strip() for step in NUMBERED.split(str(each["steps"]))]
            return [in_words(say, step) for step in found if step][:3]
    return []


# -- seats and packs ----------------------------------------------------------------------------


def money(cents: int) -> str:
    """An amount as dealers read it."""
    whole, part = divmod(abs(cents), 100)
    text = f"{whole:,}" + (f".{part:02}" if part else "")
    return f"-{text}" if cents < 0 else text


def _seat(snapshot: Json, seat: int, say: Say) -> dict[str, Any]:
    playing, shown, table = snapshot["round"], _shown_round(snapshot), snapshot["table"]
    bets = table["bets"]
    made = bets if playing is None else playing["wagers"]
    lines = [] if shown is None else shown["settlement"] or shown.get("due") or []
    return {
        "seat": seat,
        "bets": str(seat) in made,
        "made": dict(made.get(str(seat), {})),
        "kept": dict(bets[str(seat)]) if str(seat) in bets else None,
        "hand": _hand(snapshot, seat, say),
        "lines": [step for each in lines if each["seat"] == seat for step in _steps_of(each, say)],
    }


def _steps_of(line: Json, say: Say) -> list[dict[str, Any]]:
    """What the dealer does with one wager."""
    outcome = str(line["outcome"])
    cents = line["pays_cents"] if outcome == "win" else line["stake_cents"]
    # Chips that nobody counted are paid by odds, such as "1 to 1, less 5 %".
    odds, _, less = str(line.get("odds", "")).partition(", less ")
    much = odds.replace(" to ", ":") if cents is None else money(cents)
    vigorish = (
        money(line["vig_cents"]) if line["vig_cents"] else less.removesuffix(" vigorish").replace(" ", "")
    )
    short = phrases.SHORT_WAGERS if line["wager"] in phrases.SHORT_WAGERS else phrases.WAGERS
    wager, do = said(say, short, line["wager"]), said(say, phrases.DO, outcome)
    steps = [{"outcome": outcome, "do": do, "wager": wager, "money": much}]
    if vigorish:
        do = say(phrases.VIGORISH)
        steps.append({"outcome": "vigorish", "do": do, "wager": "", "money": vigorish})
    return steps


def _shown_round(snapshot: Json) -> Json | None:
    """The round in play; between rounds the one before, whose results stay on the screen."""
    found: Json | None = snapshot["round"] or snapshot["last_round"]
    return found


def table_hands(snapshot: Json, say: Say) -> list[dict[str, Any]]:
    """The hands that are no seat's: the dealer's; in mini baccarat Player and Banker."""
    if snapshot["table"]["coup"]:
        shown = _shown_round(snapshot) or {}
        return [
            {"name": say(phrases.WAGERS[of]), "hand": _lain(shown.get(of), say)}
            for of in ("player", "banker")
        ]
    return [{"name": say(phrases.ROLES["dealer"]), "hand": _hand(snapshot, 0, say)}]


def _lain(names: Sequence[str] | None, say: Say) -> dict[str, Any] | None:
    return {"cards": list(names), "points": str(coup_points(names))} if names else None


def coup_points(names: Sequence[str]) -> int:
    """What a hand of mini baccarat counts."""
    return sum(each.value for each in cards(" ".join(names))) % 10


def _hand(snapshot: Json, seat: int, say: Say) -> dict[str, Any] | None:
    playing = _shown_round(snapshot)
    if playing is None:
        return None
    names = playing["dealer"] if seat == 0 else (playing["hands"] or {}).get(str(seat))
    if not names:
        return None
    return {"cards": list(names), "points": points_of(names, say)}


def points_of(names: Sequence[str], say: Say) -> str:
    """What a hand counts, in words where it is no number."""
    try:
        hand = cards(" ".join(names))
    except TableError:
        return ""
    if len(hand) != HAND_CARDS:
        return str(sum(each.value for each in hand) % 10)
    rank = rank_hand(hand)
    if rank.kind is HandCategory.THREE_KINGS:
        return say(phrases.N_("3 kings"))
    if rank.kind is HandCategory.THREE_FACES:
        return say(phrases.N_("3 faces"))
    return str(rank.points)


def pack_view(snapshot: Json, pack: Json, say: Say) -> dict[str, Any]:
    """A pack: state, count once it is proved, hours."""
    playing, count = snapshot["round"], pack["cards"] if pack["counted"] else None
    if playing is not None and playing["pack_id"] == pack["pack_id"] and playing["count"] is not None:
        count = playing["count"]
    return {
        "id": pack["pack_id"],
        "back": pack["back"],
        "name": said(say, phrases.BACKS, pack["back"]),
        "state": said(say, phrases.PACKS, pack["state"]),
        "count": "" if count is None else str(count),
        "until_s": pack["until_s"],
        "must_leave": in_words(say, pack["must_leave"]),
    }


def table_view(snapshot: Json, say: Say) -> dict[str, Any]:
    """The table's name, rules, seats and wagers."""
    playing, shown, wagers = snapshot["round"], _shown_round(snapshot), snapshot["table"]["wagers"]
    return {
        "name": snapshot["table"]["name"],
        "rules": snapshot["table"]["ruleset"],
        "round": None if shown is None else shown["round_id"],
        "over": playing is None,
        "state": snapshot["table"]["state"],
        "seats": snapshot["table"]["seats"],
        "bets_known": snapshot["table"]["bets_known"],
        "wagers": wagers,
        "wager_names": {each: said(say, phrases.WAGERS, each) for each in wagers},
        "simulator": snapshot["device"]["emulated"],
        "serial": snapshot["device"]["serial"],
        "up": snapshot["device"]["up"],
        "newest_row": snapshot["newest_row"],
        "version": snapshot["version"],
    }
