"""The register of people: who somebody is, by which proof, and what that proof allows."""

import hashlib
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_session import pin_hash
from sabot_session.errors import (
    BadPerson,
    NotAuthenticated,
    NothingHeld,
    PeopleFailed,
    PersonUnknown,
    PinDelayed,
    WrongPin,
)
from sabot_session.people import PeopleRegister, Presented
from sabot_session.rows import Authentication
from sabot_table.procedure import TableRole

D, F, S = TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE
FLOORS = Credential(Role.FLOOR, b"f" * 32)
BADGE = "0012345678"


def test_a_pin_alone_signs_a_dealer_in_and_allows_no_other_role(register: PeopleRegister) -> None:
    for person, pin in (("dana", "2468"), ("flo", "13579")):
        who = register.authenticate(Presented(pin, person), 200)
        assert (who.person, set(who.roles), who.how) == (person, {D}, Authentication.PIN)
        assert who.key is None


def test_whoever_is_no_dealer_can_do_nothing_with_a_pin_alone(register: PeopleRegister) -> None:
    register.enrol("tech", "Tess", [S], "97531", "flo", 100)
    with pytest.raises(NothingHeld, match="tech is no dealer"):
        register.authenticate(Presented("97531", "tech"), 200)


@pytest.mark.parametrize(
    ("shown", "how", "has_key"),
    [
        ({"badge": BADGE}, Authentication.BADGE_AND_PIN, False),
        ({"badge": f"{BADGE}\r\n", "person": "flo"}, Authentication.BADGE_AND_PIN, False),
        ({"key": FLOORS}, Authentication.KEY_AND_PIN, True),
        ({"key": FLOORS, "badge": BADGE}, Authentication.KEY_AND_PIN, True),
    ],
)
def test_what_is_held_and_the_pin_allow_all_roles(
    register: PeopleRegister, shown: dict[str, Any], how: Authentication, has_key: bool
) -> None:
    who = register.authenticate(Presented("13579", **shown), 200)
    assert (who.person, set(who.roles), who.how) == ("flo", {D, F}, how)
    assert who.key == (FLOORS if has_key else None)
    with pytest.raises(WrongPin):
        register.authenticate(Presented("13578", **shown), 200)


@pytest.mark.parametrize(
    "shown",
    [
        {"badge": "0012345679"},
        {"key": Credential(Role.FLOOR, b"g" * 32)},
        {"key": Credential(Role.SERVICE, b"f" * 32)},  # the right key in another role
        {"person": "nobody"},
        {},
    ],
)
def test_what_nobody_holds_is_refused(register: PeopleRegister, shown: dict[str, Any]) -> None:
    with pytest.raises((PersonUnknown, NothingHeld)):
        register.authenticate(Presented("13579", **shown), 200)


def test_a_borrowed_badge_with_the_borrowers_pin_is_refused(register: PeopleRegister) -> None:
    with pytest.raises(WrongPin):
        register.authenticate(Presented("2468", badge=BADGE), 200)
    with pytest.raises(NotAuthenticated, match="different people"):
        register.authenticate(Presented("2468", person="dana", badge=BADGE), 200)


@pytest.mark.usefixtures("_quick_hashes")
def test_wrong_pins_are_delayed_and_the_delay_is_written_down(path: Path) -> None:
    wrong, right = Presented("1111", "dana"), Presented("2468", "dana")
    with PeopleRegister(path) as register:
        register.enrol("dana", "Dana", [D], "2468", "", 1)
        waits = []
        for _ in range(3):
            with pytest.raises(WrongPin) as refused:
                register.authenticate(wrong, 1000)
            waits.append(refused.value.wait_s)
    assert waits == [0, 0, 30]
    with PeopleRegister(path) as register:  # the program was ended and started again
        with pytest.raises(PinDelayed) as delayed:
            register.authenticate(right, 1029)
        assert delayed.value.wait_s == 1
        now, waits = 1030, []
        for _ in range(7):
            with pytest.raises(WrongPin) as refused:
                register.authenticate(wrong, now)
            waits.append(refused.value.wait_s)
            now += refused.value.wait_s
        assert waits == [60, 120, 240, 480, 900, 900, 900]
        assert register.authenticate(right, now).person == "dana"
        with pytest.raises(WrongPin) as refused:
            register.authenticate(wrong, now)
        assert refused.value.wait_s == 0  # the right PIN begins the count anew


def test_a_try_counts_before_the_pin_is_looked_at(
    register: PeopleRegister, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ending the program in the midst of a check saves nobody the delay."""

    def die(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pin_hash, "matches", die)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                register.authenticate(Presented("2468", "dana"), 1000)
    with pytest.raises(PinDelayed):
        register.authenticate(Presented("2468", "dana"), 1001)


def test_one_persons_wrong_pins_delay_nobody_else(register: PeopleRegister) -> None:
    for _ in range(3):
        with pytest.raises(WrongPin):
            register.authenticate(Presented("1111", "dana"), 1000)
    assert register.authenticate(Presented("13579", badge=BADGE), 1000).person == "flo"


def test_a_clock_set_back_delays_once_and_not_for_ever(register: PeopleRegister) -> None:
    for _ in range(3):
        with pytest.raises(WrongPin):
            register.authenticate(Presented("1111", "dana"), 1_000_000)
    with pytest.raises(PinDelayed) as delayed:
        register.authenticate(Presented("2468", "dana"), 500)
    assert delayed.value.wait_s == 30
    assert register.authenticate(Presented("2468", "dana"), 530).person == "dana"


@pytest.mark.parametrize("pin", ["", "123", "1234567890123", "12a4", "1111", "1234", "8765", "١٢٣٥"])
def test_pins_that_are_no_pins_or_too_simple(register: PeopleRegister, pin: str) -> None:
    with pytest.raises(BadPerson):
        register.enrol("new", "New", [D], pin, "flo", 1)
    with pytest.raises(BadPerson):
        register.set_pin("dana", pin, "flo", 1)
    assert register.authenticate(Presented("2468", "dana"), 2).person == "dana"


@pytest.mark.parametrize(
    ("person", "name", "roles"),
    [
        ("", "X", [D]), ("a b", "X", [D]), ("x" * 33, "X", [D]), ("x", " ", [D]), ("x", "X", []),
        ("x", "X", [TableRole.DEVICE]), ("dana", "Other", [D]),
    ],
)  # fmt: skip
def test_entries_that_cannot_be(
    register: PeopleRegister, person: str, name: str, roles: list[TableRole]
) -> None:
    with pytest.raises(BadPerson):
        register.enrol(person, name, roles, "2468", "flo", 1)
    assert [each.name for each in register.people()] == ["Dana Deal", "Flo Or"]


def test_a_pin_is_changed_with_the_old_one_or_set_by_somebody_else(register: PeopleRegister) -> None:
    with pytest.raises(WrongPin):
        register.change_pin("dana", "9999", "8642", 300)
    register.change_pin("dana", "2468", "8642", 301)
    with pytest.raises(WrongPin):
        register.authenticate(Presented("2468", "dana"), 302)
    for _ in range(2):
        with pytest.raises(WrongPin):
            register.authenticate(Presented("2468", "dana"), 303)
    register.set_pin("dana", "7913", "flo", 304)  # ends the delay too
    assert register.authenticate(Presented("7913", "dana"), 304).person == "dana"
    assert [(each.by, each.what) for each in register.changes() if each.person == "dana"] == [
        ("service1", "enrolled as dealer"), ("dana", "changed the PIN"), ("flo", "got a new PIN"),
    ]  # fmt: skip


def test_badge_and_key_belong_to_one_person(register: PeopleRegister) -> None:
    with pytest.raises(BadPerson, match="flo holds this badge"):
        register.give_badge("dana", BADGE, "flo", 1)
    with pytest.raises(BadPerson, match="dana is not floor"):
        register.give_key("dana", FLOORS, "flo", 1)
    register.enrol("fred", "Fred", [F], "2468", "flo", 1)
    with pytest.raises(BadPerson, match="flo holds this key"):
        register.give_key("fred", FLOORS, "flo", 1)
    with pytest.raises(BadPerson, match="at least 4"):
        register.give_badge("dana", " 1 ", "flo", 1)


def test_a_new_badge_or_key_replaces_the_old_one(register: PeopleRegister) -> None:
    register.give_badge("flo", "other badge", "service1", 1)
    register.give_key("flo", Credential(Role.FLOOR, b"n" * 32), "service1", 1)
    for shown in (Presented("13579", badge=BADGE), Presented("13579", key=FLOORS)):
        with pytest.raises(PersonUnknown):
            register.authenticate(shown, 2)
    assert register.authenticate(Presented("13579", badge="other badge"), 2).person == "flo"
    register.take_badge("flo", "service1", 3)
    with pytest.raises(PersonUnknown):
        register.authenticate(Presented("13579", badge="other badge"), 4)


def test_a_removed_person_can_do_nothing_and_stays_known_by_name(register: PeopleRegister) -> None:
    register.remove("flo", "service1", 500)
    for shown in ({"badge": BADGE}, {"key": FLOORS}, {"person": "flo"}):
        with pytest.raises(PersonUnknown):
            register.authenticate(Presented("13579", **shown), 501)
    assert [each.person for each in register.people()] == ["dana"]
    gone = register.find("flo")
    assert (gone.name, gone.removed, gone.has_badge, gone.keys) == ("Flo Or", True, False, ())
    with pytest.raises(BadPerson, match="given before"):
        register.enrol("flo", "Another", [D], "2468", "service1", 502)
    with pytest.raises(PersonUnknown):
        register.set_pin("flo", "2468", "service1", 503)


def test_the_file_holds_no_pin_no_badge_and_no_key_and_only_its_owner_reads_it(path: Path) -> None:
    """With the real cost of scrypt."""
    with PeopleRegister(path) as register:
        register.enrol("flo", "Flo", [F], "73951846", "", 1)
        register.give_badge("flo", "badge-9876", "", 1)
        register.give_key("flo", FLOORS, "", 1)
        assert register.authenticate(Presented("73951846", key=FLOORS), 2).roles == {F}
        files = list(path.parent.iterdir())
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
        kept = b"".join(each.read_bytes() for each in files)
    for secret in (b"73951846", b"badge-9876", FLOORS.key, FLOORS.key.hex().encode()):
        assert secret not in kept
    db = sqlite3.connect(path)
    pins = db.execute("SELECT pin, badge FROM people").fetchone()
    db.close()
    assert all(each.startswith("scrypt$14$8$1$") for each in pins)
    _, _, _, _, salt, digest = pins[0].split("$")
    again = hashlib.scrypt(b"73951846", salt=bytes.fromhex(salt), n=2**14, r=8, p=1, dklen=32)
    assert again.hex() == digest


@pytest.mark.usefixtures("_quick_hashes")
def test_equal_pins_have_different_hashes() -> None:
    assert pin_hash.hash_secret("2468", pin_hash.new_salt()) != pin_hash.hash_secret(
        "2468", pin_hash.new_salt()
    )


def test_secrets_are_in_no_text_of_what_was_shown() -> None:
    assert "2468" not in repr(Presented("2468", "dana", "badge", FLOORS))
    assert "badge" not in repr(Presented("2468", "dana", "b-a-d-g-e")).replace("badge=", "")


def test_a_file_where_the_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(PeopleFailed, match=r"File exists$") as refused:
        PeopleRegister(tmp_path / "home" / "people.db")
    assert "SABOT_HOME must name a folder" in refused.value.advice


def test_a_register_that_cannot_be_used_is_said(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a register" * 100)
    with pytest.raises(PeopleFailed, match="not a database"):
        PeopleRegister(path)
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=9")
    db.close()
    with pytest.raises(PeopleFailed, match="version 9"):
        PeopleRegister(path)
