"""What the technician's page shows: a pure function of the snapshot and of what the machine was asked."""

from collections.abc import Mapping
from typing import Any

from sabot_driver.calibration import GUIDES, LIMITS_UM
from sabot_driver.device_values import meaning_of, name_of
from sabot_driver.jogging import MOST_ELEVATOR_UM, ROLLER_OF
from sabot_protocol.host.messages import Calibration, Part
from sabot_serve import phrases
from sabot_serve.dealer_view import buttons_of, head_of, offer_button, sentence_of, table_view, tone_of
from sabot_serve.machine_watch import PART
from sabot_serve.phrases import Say

Json = Mapping[str, Any]
SERVICE = "service"
ACTS = ("begin_service", "end_service", "self_test", "calibrate", "jog")
AT = {
    "tray": ("tray",),
    "feed": ("feed_stall",),
    "entry": ("entry",),
    "insertion": ("insertion", "insert_stall"),
    "chamber": ("chamber", "elevator", "elevator_home", "gripper", "height"),
    "store": ("store", "shelf"),
    "pusher": ("pusher_home", "pusher_end"),
    "shoe": ("shoe",),
    "deal": ("deal_stall",),
    "exit": ("exit",),
    "exit_tray": ("exit_tray",),
    "controller": ("shuffler_door", "shoe_door", "left_button", "right_button", "hot", "supply_low"),
}
"""Where each sensor is on the drawing."""
TIMES_WORDS = "mean and spread of a card's time at this roller, one point a shuffle"


def technician_view(snapshot: Json, say: Say = str) -> dict[str, Any]:
    """The technician's page; each top-level part is replaced as a whole when it changes."""
    machine = snapshot.get(PART) or {"error": ""}
    offered = {each["act"]: each for each in snapshot["offers"]}
    return {
        "head": head_of(snapshot, list(snapshot["needs"]), say),
        "table": table_view(snapshot, say),
        "device": _device(snapshot),
        "places": _places(machine, snapshot),
        "motion": {"height_um": machine.get("height_um"), "rollers_um": machine.get("rollers_um")},
        "acts": {
            name: offer_button(snapshot, {**offered[name], "roles": [SERVICE]}, say)
            if name in offered
            else None
            for name in ACTS
        },
        "needs": _needs(snapshot, say),
        "parts": [_part(each) for each in Part],
        "calibration": [_calibration(each) for each in machine.get("calibration", ())],
        "wear": machine.get("wear", []),
        "trends": machine.get("trends", []),
        "faults": [_fault(each, say) for each in machine.get("faults", ())],
        "tested": machine.get("tested", {}),
        "error": machine["error"],
    }


def _device(snapshot: Json) -> dict[str, Any]:
    device = snapshot["device"]
    return {
        "serial": device["serial"],
        "up": device["up"],
        "shuffler": phrases.plain(device["shuffler"]),
        "shoe": phrases.plain(device["shoe"]),
        "in_service": (device["shuffler"], device["shoe"]) == (SERVICE, SERVICE),
    }


def _places(machine: Json, snapshot: Json) -> list[dict[str, Any]]:
    known = {each["name"]: each for each in machine.get("sensors", ())}
    faults = {each["place"] for each in snapshot["device"]["faults"]}
    return [
        {
            "place": place,
            "label": phrases.PLACES[place],
            "fault": place in faults,
            "sensors": [known[name] for name in names if name in known],
        }
        for place, names in AT.items()
    ]


def _needs(snapshot: Json, say: Say) -> list[dict[str, Any]]:
    """What service is needed for, with the acts that service may give."""
    found = []
    for need in snapshot["needs"]:
        if SERVICE in need["roles"]:
            mine = {**need, "roles": [SERVICE]}
            found.append(
                {
                    "id": need["id"],
                    "tone": tone_of(need),
                    "sentence": sentence_of(mine, say),
                    "buttons": buttons_of(snapshot, mine, say),
                }
            )
    return found


def _part(part: Part) -> dict[str, Any]:
    most = MOST_ELEVATOR_UM if part is Part.ELEVATOR else 1
    return {"name": name_of(part), "words": meaning_of(part), "roller": part in ROLLER_OF, "most": most}


def _calibration(read: Json) -> dict[str, Any]:
    what = Calibration[read["name"].upper()]
    lowest, highest = LIMITS_UM[what]
    return {**read, "lowest": lowest, "highest": highest, "guide": GUIDES[what]}


def _fault(each: Json, say: Say) -> dict[str, Any]:
    words = say(phrases.FAULT_NAMES.get(each["fault"], phrases.plain(each["fault"])))
    return {**each, "words": words, "where": say(phrases.PLACES.get(each["place"], each["place"]))}
