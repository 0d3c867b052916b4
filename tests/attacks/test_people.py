"""A colleague at the table PC: other people's PINs, badges and acts."""

import stat
from pathlib import Path

import pytest

from sabot_driver.credentials import Credential
from sabot_protocol.host.messages import Role
from sabot_session import pin_hash
from sabot_session.errors import BadRow, NothingHeld, PinDelayed, WrongPin
from sabot_session.people import PeopleRegister, Presented
from sabot_session.record import SqliteRecord
from sabot_session.row_kinds import KINDS, By
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_table.procedure import TableRole

pytestmark = pytest.mark.slow

FLOORS = Credential(Role.FLOOR, bytes(range(32)))


def _register(folder: Path) -> Path:
    path = folder / "people.db"
    with PeopleRegister(path) as people:
        people.enrol("flo", "Flo", [TableRole.FLOOR, TableRole.DEALER], "739518", "", 1)
        people.give_badge("flo", "badge-0042", "", 1)
        people.give_key("flo", FLOORS, "", 1)
    return path


def test_guessing_a_pin_takes_days_also_with_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There were no PINs before. Tries that only a program counted would begin anew with each start."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)
    path = _register(tmp_path)
    looked_at, hour_s = 0, 3600
    for second in range(0, hour_s, 60):
        with PeopleRegister(path) as people:
            try:
                people.authenticate(Presented("1357", "flo"), second)
            except PinDelayed:
                continue
            except WrongPin:
                looked_at += 1
    assert looked_at <= 12  # 10,000 PINs of four digits take more than a month


def test_a_watched_pin_gives_no_act_of_the_floor(tmp_path: Path) -> None:
    """The floor's name was an option of the command line: everybody was the floor."""
    with PeopleRegister(_register(tmp_path)) as people:
        who = people.authenticate(Presented("739518", "flo"), 5)
        assert set(who.roles) == {TableRole.DEALER}
        people.enrol("gus", "Gus", [TableRole.SERVICE], "739518", "flo", 6)
        with pytest.raises(NothingHeld):
            people.authenticate(Presented("739518", "gus"), 7)
    floor = Actor("flo", TableRole.FLOOR, who.how)
    with SqliteRecord(None) as record, pytest.raises(BadRow, match="cannot be known by 'pin'"):
        record.commit([Row("verify", 8, floor, {"pack_id": 1})], SavedSession("", 0))


def test_a_found_badge_without_its_pin_gives_nothing(tmp_path: Path) -> None:
    """A badge alone would be the person."""
    with PeopleRegister(_register(tmp_path)) as people:
        for pin in ("", "0000", "739517"):
            with pytest.raises(WrongPin):
                people.authenticate(Presented(pin, badge="badge-0042"), 5)


def test_the_register_tells_no_secret(tmp_path: Path) -> None:
    """A PIN in a file or in an error's text is everybody's PIN."""
    path = _register(tmp_path)
    with PeopleRegister(path) as people:
        with pytest.raises(WrongPin) as refused:
            people.authenticate(Presented("739519", badge="badge-0042"), 5)
        files = list(tmp_path.iterdir())
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
        kept = b"".join(each.read_bytes() for each in files)
        said = f"{refused.value!r} {refused.value.advice} {people.people()} {people.changes()}".encode()
    for secret in (b"739518", b"739519", b"badge-0042", FLOORS.key, FLOORS.key.hex().encode()):
        assert secret not in kept + said


def test_the_record_takes_no_act_of_a_person_without_one() -> None:
    """The older program wrote that the floor verified both decks, a second after it was started."""
    nobody = [
        Actor("", TableRole.FLOOR, Authentication.KEY_AND_PIN),
        Actor("", TableRole.DEALER, Authentication.SIGNED_IN),
        Actor("flo", TableRole.FLOOR, Authentication.PROGRAM),
        Actor("flo", TableRole.FLOOR, Authentication.SENSED),
        Actor("ana", TableRole.DEALER, Authentication.PROGRAM),
        Actor("ana", TableRole.DEALER, Authentication.SENSED),
        Actor("", TableRole.PROGRAM, Authentication.PROGRAM),
        Actor("", TableRole.DEVICE, Authentication.SENSED),
    ]
    kinds = [each for each in KINDS if each.by in (By.PEOPLE, By.FLOOR)]
    assert len(kinds) > 30
    with SqliteRecord(None) as record:
        for kind in kinds:
            for actor in nobody:
                with pytest.raises(BadRow, match=r"its actor is|cannot be known|is nobody|no event"):
                    record.commit([Row(kind.name, 5, actor, {}, 7)], SavedSession("", 0))
        assert record.newest() == 0
