"""Everything that comes out of the schema is up to date, complete, and keeps its promises."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sabot_protocol import meanings, schema
from sabot_protocol.generate import __main__ as command
from sabot_protocol.generate import artefacts, canonical_schema, checkout, typed_messages
from sabot_protocol.generate.artefacts import ARTEFACTS
from sabot_protocol.generate.checkout import Artefact, repository_root
from sabot_protocol.host import messages as typed
from sabot_protocol.schema_hash import SCHEMA_HASH

# What is frozen for ever, by its SHA-256. These lines are never edited, only the error codes' are redone when
# new errors are added behind the old ones.
FROZEN_MESSAGES = "182dcdd8e701fb1e097c1ca153064b5ca8289912a66140d9261eec264e1cf9d0"
FROZEN_ERRORS = 20
FROZEN_ERROR_CODES = "4bae2d6bf0eed8a9e4a6c36e9552d8db4ae94feb53d972bc5e398cea22683879"


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda artefact: artefact.path)
def test_the_checked_in_file_is_what_the_schema_gives(artefact: Artefact) -> None:
    assert not artefact.is_stale(repository_root()), "run 'python -m sabot_protocol.generate' and commit"


def test_check_names_what_is_stale_and_writing_cures_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two = (Artefact("a/one.txt", lambda: "one\n"), Artefact("two.txt", lambda: "two\n"))
    monkeypatch.setattr(artefacts, "ARTEFACTS", two)
    monkeypatch.setattr(command, "SCHEMA_HASH", two[1])
    monkeypatch.setattr(command, "repository_root", lambda: tmp_path)
    (tmp_path / "two.txt").write_text("two\n")
    assert command.main(["--check"]) == 1
    assert not (tmp_path / "a").exists()
    said = capsys.readouterr().out
    assert "a/one.txt" in said
    assert "two.txt" not in said
    assert command.main([]) == 0
    assert (tmp_path / "a" / "one.txt").read_text() == "one\n"
    assert capsys.readouterr().out == "wrote a/one.txt\n"
    assert command.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_outside_a_checkout_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "site-packages" / "artefacts.py"))
    assert command.main([]) == 2
    assert "not in a checkout" in capsys.readouterr().err


def test_the_command_can_be_started() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "sabot_protocol.generate", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


# -- meanings -----------------------------------------------------------------------------------


def _members(groups: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]) -> list[str]:
    return [f"{name}.{member}" for name, members in groups for member, _ in members]


FIELDS = [f"{row[1]}.{field[0]}" for row in schema.MESSAGES for field in row[5]]
DETAILS = [f"{row[1]}.{field[0]}" for row in schema.ERRORS for field in row[2]]


@pytest.mark.parametrize(
    ("things", "texts"),
    [
        pytest.param([row[1] for row in schema.MESSAGES], meanings.MESSAGES, id="messages"),
        pytest.param(FIELDS, meanings.FIELDS, id="fields"),
        pytest.param([name for name, _ in schema.ENUMS], meanings.ENUMS, id="enums"),
        pytest.param(_members(schema.ENUMS), meanings.MEMBERS, id="members"),
        pytest.param([name for name, _ in schema.FLAGS], meanings.FLAGS, id="flags"),
        pytest.param(_members(schema.FLAGS), meanings.FLAG_MEMBERS, id="flag members"),
        pytest.param([row[1] for row in schema.ERRORS], meanings.ERRORS, id="errors"),
        pytest.param([row[1] for row in schema.ERRORS], meanings.REMEDIES, id="remedies"),
        pytest.param(DETAILS, meanings.DETAILS, id="details"),
        pytest.param(list(schema.COUNTERS), meanings.COUNTERS, id="counters"),
        pytest.param(list(schema.WEAR), meanings.WEAR, id="wear"),
    ],
)
def test_everything_has_a_meaning_and_every_meaning_a_thing(things: list[str], texts: dict[str, str]) -> None:
    assert [thing for thing in things if thing not in texts] == [], "without a meaning"
    assert [name for name in texts if name not in things] == [], "meanings of nothing"
    assert [name for name, text in texts.items() if not text.strip() or "\n" in text] == [], "not one line"


def test_quantities_have_a_unit_and_units_a_quantity() -> None:
    known = FIELDS + DETAILS
    assert [name for name in meanings.UNITS if name not in known] == []
    quantities = [name for name in known if name.endswith(("_s", "_ms", "seconds"))]
    assert [name for name in quantities if meanings.UNITS.get(name) not in ("s", "ms")] == []


# -- what never changes -------------------------------------------------------------------------


def test_frozen_messages_have_not_changed() -> None:
    rows = [row for row in schema.MESSAGES if row[0] < 0x40]
    pinned = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    assert pinned == FROZEN_MESSAGES, (
        "a message with an id below 0x40 was added or changed. These are frozen for ever: devices of every "
        "version are updated with them. Put the new thing into a new message from 0x40 up, and undo this one"
    )


def test_error_codes_have_not_changed() -> None:
    known = [(code, name) for code, name, _ in schema.ERRORS]
    pinned = hashlib.sha256(json.dumps(known[:FROZEN_ERRORS]).encode()).hexdigest()
    assert pinned == FROZEN_ERROR_CODES, (
        "an error's code or name was changed or removed. They are frozen for ever; new errors go to the end"
    )
    codes = [code for code, _ in known]
    assert codes == sorted(set(codes)), "new errors go to the end"


def test_frozen_messages_hold_no_enums() -> None:
    assert schema.FROZEN_BELOW == 0x40
    for id, name, _, _, _, fields in schema.MESSAGES:
        if id < schema.FROZEN_BELOW:
            assert [field[0] for field in fields if field[1] in ("enum", "flags")] == [], name


# -- the schema hash ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", ["MAJOR", "MINOR", "ENUMS", "FLAGS", "MESSAGES", "SINCE", "ERRORS", "COUNTERS", "WEAR"]
)
def test_the_schema_hash_covers_every_part(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert canonical_schema.schema_hash() == SCHEMA_HASH
    assert len(SCHEMA_HASH) == 8
    before = getattr(schema, part)
    changed = before + 1 if isinstance(before, int) else before + (("new", ()),)
    monkeypatch.setattr(schema, part, changed)
    assert canonical_schema.schema_hash() != SCHEMA_HASH


# -- the typed classes --------------------------------------------------------------------------


def test_typed_classes_say_what_the_schema_says() -> None:
    assert list(typed.BY_ID) == [row[0] for row in schema.MESSAGES]
    for id, name, kind, answer, roles, _ in schema.MESSAGES:
        made = typed.BY_ID[id]
        assert (id, name, kind) == (made.ID, made.NAME, made.KIND)
        assert (id < 0x40) == made.FROZEN
        assert typed.BY_NAME[name] is made
        assert made.__doc__ == meanings.MESSAGES[name]
        if answer:
            assert vars(made)["ANSWER"] is typed.BY_NAME[answer]
        if kind in ("query", "command"):
            wanted = [number for role, number in dict(schema.ENUMS)["Role"] if role in roles.split()]
            assert sorted(vars(made)["ROLES"]) == (list(range(6)) if roles == "any" else wanted)


def test_error_classes_say_what_the_schema_says() -> None:
    assert [(code, each.NAME) for code, each in typed.ERRORS_BY_CODE.items()] == [
        (row[0], row[1]) for row in schema.ERRORS
    ]
    for code, each in typed.ERRORS_BY_CODE.items():
        assert code == each.CODE
        assert meanings.REMEDIES[each.NAME] == each.REMEDY
        assert meanings.ERRORS[each.NAME] == each.MEANING


def test_enums_have_the_numbers_of_the_schema() -> None:
    for name, members in schema.ENUMS + schema.FLAGS:
        made = getattr(typed, name)
        assert [(member.name.lower(), int(member)) for member in made] == list(members)


def test_messages_are_values_that_cannot_be_changed() -> None:
    one = typed.DispenseStack(7, 2)
    assert one == typed.DispenseStack(round_id=7, stack=2)
    assert len({one, typed.DispenseStack(7, 2)}) == 1
    with pytest.raises(AttributeError):
        one.stack = 3  # type: ignore[misc]
    assert not hasattr(one, "__dict__")


def test_unpacking_gives_members_of_enums() -> None:
    raised = typed.FaultRaised.unpack(bytes((3, 3, 1, 0, 0)))
    assert raised.fault is typed.Fault.CARD_STUCK
    assert raised.place is typed.Place.ENTRY
    pressed = typed.Buttons.unpack(b"\x03\x00").pressed
    assert pressed == typed.ButtonFlag.LEFT | typed.ButtonFlag.RIGHT
    assert type(pressed) is typed.ButtonFlag
    assert typed.IdentityFlag(0x8001) & typed.IdentityFlag.PROVISIONED  # a later version's flag is kept


def test_a_thing_without_a_meaning_is_not_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "ERRORS", schema.ERRORS + ((21, "out_of_cards", ()),))
    with pytest.raises(ValueError, match="out_of_cards has no meaning yet"):
        typed_messages.render()


def test_two_things_of_one_name_are_not_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "ERRORS", schema.ERRORS + ((21, "BUSY", ()),))
    with pytest.raises(ValueError, match="two things would be called BusyDetail"):
        typed_messages.render()
