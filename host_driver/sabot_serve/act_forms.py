"""What a page must ask before it can give an act: made from the act's type, so new acts need no code here.

A field whose name is among a need's details is filled from there. One choice that is left becomes a button
for each of its values. Anything else that is required is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from sabot_session.acts import ACTS

EDITORS = ("wagers", "hands")
"""Fields for which pages have an editor of their own; other composed values are typed as JSON."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value that an act has."""

    name: str
    kind: str  # text, number, yes_no, choice, json, or an editor's name
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """One way to give an act: what is known of it, and what must be asked."""

    act: str
    data: Mapping[str, Any] = field(default_factory=dict)
    asks: tuple[Field, ...] = ()
    choice: str = ""
    """The value that this way chose, where a choice was all that was left."""


@cache
def fields_of(act: str) -> tuple[Field, ...]:
    """The values of an act, in its order."""
    schema = TypeAdapter(ACTS[act]).json_schema()
    required = schema.get("required", [])
    found = []
    for name, part in schema.get("properties", {}).items():
        part = _resolved(part, schema)
        kind = {"string": "text", "integer": "number", "boolean": "yes_no"}.get(part.get("type", ""), "json")
        if "enum" in part:
            kind = "choice"
        elif name in EDITORS:
            kind = name
        found.append(Field(name, kind, name in required, tuple(part.get("enum", ()))))
    return tuple(found)


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in part:
        return part
    found: Mapping[str, Any] = schema["$defs"][str(part["$ref"]).rsplit("/", 1)[-1]]
    return found


def whole_form(act: str) -> Form:
    """The one way to give an act that no need asks for: everything that is required is asked."""
    return Form(act, {}, tuple(each for each in fields_of(act) if each.required))


def forms(act: str, details: Mapping[str, Any]) -> Sequence[Form]:
    """The ways to give an act that meets a need with these details."""
    if act not in ACTS:
        return ()
    fields = fields_of(act)
    data = {each.name: details[each.name] for each in fields if each.name in details}
    left = [each for each in fields if each.required and each.name not in data]
    asks = tuple(each for each in left if each.kind != "choice")
    choices = [each for each in left if each.kind == "choice"]
    if len(choices) == 1 and not asks:
        only = choices[0]
        offered = details.get(f"{only.name}s", only.choices)
        return [Form(act, {**data, only.name: value}, (), str(value)) for value in offered]
    return [Form(act, data, (*asks, *choices))]


def description() -> dict[str, Any]:
    """Every act with its values as JSON Schema, for programs that use this service."""
    return {name: TypeAdapter(kind).json_schema() for name, kind in ACTS.items()}
