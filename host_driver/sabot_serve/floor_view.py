"""What the floor's page shows: every need of the table with the acts that floor or service may give."""

from collections.abc import Mapping
from typing import Any

from sabot_serve.dealer_view import (
    NOTE_ACT,
    SHAPES,
    buttons_of,
    head_of,
    notes_view,
    offer_button,
    pack_view,
    people_view,
    sentence_of,
    table_view,
    tone_of,
)
from sabot_serve.phrases import Say
from sabot_session.acts import ACTS

Json = Mapping[str, Any]
DEALER = "dealer"


def floor_view(snapshot: Json, say: Say = str) -> dict[str, Any]:
    """The floor's page; each top-level part is replaced as a whole when it changes."""
    return {
        "head": head_of(snapshot, list(snapshot["needs"]), say),
        "needs": [
            *notes_view(snapshot, say, ("floor",)),
            *(_need(snapshot, each, say) for each in snapshot["needs"]),
        ],
        "offers": _offers(snapshot, say),
        "people": people_view(snapshot),
        "packs": [pack_view(snapshot, each, say) for each in snapshot["packs"]],
        "table": table_view(snapshot, say),
    }


def _need(snapshot: Json, need: Json, say: Say) -> dict[str, Any]:
    """A need; the dealer's own acts are given at the dealer's page."""
    roles = [each for each in need["roles"] if each != DEALER]
    mine = {**need, "roles": roles}
    tone = tone_of(need)
    return {
        "id": need["id"],
        "tone": tone,
        "shape": SHAPES[tone],
        "sentence": sentence_of(need, say),
        "clause": need["clause"],
        "buttons": buttons_of(snapshot, mine, say) if roles else [],
    }


def _offers(snapshot: Json, say: Say) -> list[dict[str, Any]]:
    found = []
    for each in snapshot["offers"]:
        roles = [role for role in each["roles"] if role != DEALER]
        if roles and each["act"] in ACTS and each["act"] != NOTE_ACT:
            found.append(offer_button(snapshot, {**each, "roles": roles}, say))
    return found
