"""The state of a table as the floor sees it: a pure function of the session's snapshot and the level."""

from collections.abc import Mapping
from typing import Any

from sabot_table.rule_texts import FloorLevel
from sabot_table.ruleset import RuleSet

Json = Mapping[str, Any]


def state_entry(snapshot: Json, rules: RuleSet, level: FloorLevel) -> dict[str, Any]:
    """What the floor may see; it never has a card. `FloorLevel.NONE` gives nothing."""
    if level is FloorLevel.NONE:
        return {}
    device = snapshot["device"]
    found: dict[str, Any] = {
        "device": {
            "serial": device["serial"],
            "up": device["up"],
            "shoe": device["shoe"],
            "shuffler": device["shuffler"],
            "faults": [
                {"fault": each["fault"], "place": each["place"], "cards": each["cards"]}
                for each in device["faults"]
            ],
            "emulated": device["emulated"],
        }
    }
    if level is FloorLevel.MACHINE:
        return found
    table, playing = snapshot["table"], snapshot["round"]
    return {
        **found,
        "name": table["name"],
        "game": str(rules.game),
        "rule_text": table["rule_text"],
        "ruleset": table["ruleset"],
        "state": table["state"],
        "dealer": table["dealer"],
        "round": 0 if playing is None else playing["round_id"],
        "last_round": _round_id(snapshot["last_round"]),
        "needs": [_need(each, level) for each in snapshot["needs"]],
        "packs": [
            {name: each[name] for name in ("pack_id", "back", "state", "must_leave", "counted", "until_s")}
            for each in snapshot["packs"]
        ],
        "called": bool(snapshot["called"]),
        "notes": len(snapshot["notes"]),
        "disputes": len(snapshot["disputes"]),
        "countersign": len(snapshot["countersign"]),
        "newest_row": snapshot["newest_row"],
    }


def _need(need: Json, level: FloorLevel) -> dict[str, Any]:
    names = ["id", "kind", "roles", "clause", "since_s"]
    if level is FloorLevel.ALL:
        names.append("words")  # a need may name cards that people type again
    return {name: need[name] for name in names}


def _round_id(last: Any) -> int:
    if isinstance(last, Mapping):
        return int(last.get("round_id", 0))
    return int(last or 0)
