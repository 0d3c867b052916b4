"""Errors: each refusal of the schema has its type, says what it knows, and advises."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.targets import Tcp

from sabot_driver import Credential, errors
from sabot_driver.errors import (
    DeviceFaulted,
    NotAllowed,
    OwnerHeld,
    Refused,
    SabotError,
    Stale,
    WrongRole,
    WrongState,
    refusal,
)
from sabot_driver.keyring import Keyring, read_key, write_key
from sabot_driver.user_files import SettingsDamaged, TableEntry, TableUnknown, UserFiles
from sabot_protocol.host import messages
from sabot_protocol.host.messages import Fault, Forbidden, Half, Place, Role, ShoeState, ShufflerState

KINDS = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, SabotError)]


@pytest.mark.parametrize("code", messages.ERRORS_BY_CODE)
def test_every_error_of_the_schema_has_words_and_advice(code: int) -> None:
    kind = messages.ERRORS_BY_CODE[code]
    body = bytes(16)
    error = refusal("shuffle", code, body)
    assert isinstance(error, SabotError)
    assert str(error).startswith("shuffle: ")
    assert error.advice
    if isinstance(error, Refused):
        assert error.detail is not None
        assert error.detail.NAME == kind.NAME


def test_an_error_of_a_later_version_is_told_by_its_number() -> None:
    error = refusal("shuffle", 200, b"whatever")
    assert type(error) is Refused
    assert "error 200" in str(error)


def test_a_wrong_state_tells_the_states_that_would_do() -> None:
    allowed = 1 << ShoeState.READY | 1 << ShoeState.EMPTY
    detail = messages.WrongStateDetail(ShoeState.JAMMED, allowed, Half.SHOE)
    error = refusal("open_round", detail.CODE, detail.pack())
    assert isinstance(error, WrongState)
    assert error.state is ShoeState.JAMMED
    assert error.allowed == [ShoeState.EMPTY, ShoeState.READY]
    assert "The shoe is JAMMED. It would be allowed when EMPTY or READY." in str(error)


def test_a_blocked_shoe_is_refused_with_the_way_out() -> None:
    detail = messages.WrongStateDetail(ShoeState.BLOCKED, 1 << ShoeState.EMPTY, Half.SHOE)
    error = refusal("self_test", detail.CODE, detail.pack())
    assert "The shoe is BLOCKED." in str(error)
    assert "opens the shoe's door" in error.advice
    assert "'purge'" in error.advice


def test_a_wrong_state_of_the_shuffler_is_one_of_its_own() -> None:
    detail = messages.WrongStateDetail(ShufflerState.FEEDING, 1 << ShufflerState.IDLE, Half.SHUFFLER)
    error = refusal("shuffle", detail.CODE, detail.pack())
    assert isinstance(error, WrongState)
    assert (error.state, error.allowed) == (ShufflerState.FEEDING, [ShufflerState.IDLE])


def test_a_rule_that_forbids_is_named() -> None:
    detail = messages.NotAllowedDetail(Forbidden.BETS_OPEN)
    error = refusal("dispense_stack", detail.CODE, detail.pack())
    assert isinstance(error, NotAllowed)
    assert error.reason is Forbidden.BETS_OPEN
    assert "Why: " in str(error)
    unknown = refusal("dispense_stack", detail.CODE, b"\xfa")
    assert isinstance(unknown, NotAllowed)
    assert unknown.reason == 250


def test_a_fault_has_code_place_and_steps() -> None:
    detail = messages.DeviceFaultDetail(Fault.CARD_STUCK)
    error = refusal("dispense_stack", detail.CODE, detail.pack())
    assert isinstance(error, DeviceFaulted)
    assert error.fault is Fault.CARD_STUCK
    told = error.located(Place.EXIT, "Open the shoe door.")
    assert (told.place, told.steps, told.advice) == (Place.EXIT, "Open the shoe door.", "Open the shoe door.")


def test_who_holds_it_and_who_may_and_where_it_is() -> None:
    held = refusal("attach", messages.OwnerHeldDetail.CODE, messages.OwnerHeldDetail(b"TABLE-PC").pack())
    assert isinstance(held, OwnerHeld)
    assert held.holder == b"TABLE-PC".hex()
    role = refusal("register_deck", messages.WrongRoleDetail.CODE, messages.WrongRoleDetail(1).pack())
    assert isinstance(role, WrongRole)
    assert role.may == [Role.FLOOR]
    stale = refusal("dispense_stack", messages.StaleDetail.CODE, messages.StaleDetail(7, 2).pack())
    assert isinstance(stale, Stale)
    assert (stale.round_id, stale.stack) == (7, 2)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_every_error_has_a_docstring_that_says_when(kind: type[SabotError]) -> None:
    assert kind.__doc__
    itself = SabotError, errors.OutcomeUnknown, errors.AmbiguousDevice  # made with advice of their own
    if kind not in itself and not issubclass(kind, errors.Refused):  # which have it from the schema
        assert kind.advice, "and what to do"


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        ("DeviceTimeout", TimeoutError), ("LinkLost", ConnectionError), ("NoDevice", FileNotFoundError),
        ("PortDenied", PermissionError), ("PortBusy", BlockingIOError), ("BadUrl", ValueError),
        ("JournalFull", OSError), ("WrongRole", PermissionError), ("DeviceRebooted", ConnectionResetError),
        ("NotSupported", NotImplementedError),
    ],
)  # fmt: skip
def test_relatives_among_the_built_in(kind: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(errors, kind), builtin)


def test_a_command_under_way_is_not_resolved_twice(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect()
    target.pull()
    number, future = client.submit(messages.Shuffle(1), 30)
    with pytest.raises(SabotError, match="under way"):
        client.resolve(number)
    target.plug()
    assert isinstance(future.exception(35), NotAllowed)
    target.close()


# -- places -------------------------------------------------------------------------------------


def test_tables_are_written_and_read(tmp_path: Path) -> None:
    user_files = UserFiles(tmp_path)
    assert user_files.tables() == {}
    odd = TableEntry('B"A\\C\n7', "socket://h:1", "SB000001")
    plain = TableEntry("BAC-08", "COM3")
    user_files.set_table(odd)
    user_files.set_table(plain)
    assert user_files.tables() == {odd.name: odd, plain.name: plain}
    user_files.set_table(TableEntry("BAC-08", "COM4"))
    assert user_files.table("BAC-08").url == "COM4"
    with pytest.raises(TableUnknown, match="BAC-09"):
        user_files.table("BAC-09")


@pytest.mark.parametrize("text", ["[tables", "[tables.A]\nserial = 'x'", "[tables]\nA = 3"])
def test_a_damaged_file_of_tables_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "tables.toml").write_text(text)
    with pytest.raises(SettingsDamaged, match=r"tables\.toml"):
        UserFiles(tmp_path).tables()


def test_a_serial_number_that_is_no_file_name(tmp_path: Path) -> None:
    ring = Keyring(tmp_path / "keys")
    serial = b"../../x\x00"
    path = ring.keep(serial, bytes(range(32)))
    assert path.parent == tmp_path / "keys"
    assert ring.find(serial) == bytes(range(32))
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "zz", "00" * 31])
def test_a_key_file_without_a_key(tmp_path: Path, text: str) -> None:
    path = tmp_path / "X.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(errors.KeyMissing):
        Keyring(tmp_path).find(b"X")


def test_a_persons_key_file_that_is_not_there_is_named_with_its_role(tmp_path: Path) -> None:
    with pytest.raises(errors.KeyMissing, match=r"^the key of floor, /.*flo\.key: No such file") as raised:
        Credential.read(Role.FLOOR, tmp_path / "flo.key")
    assert "this person's key file" in raised.value.advice
    (tmp_path / "flo.key").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.KeyMissing, match=r"floor, .*not a key"):
        Credential.read(Role.FLOOR, tmp_path / "flo.key")


def test_a_key_that_the_device_does_not_have_is_named_with_role_and_file() -> None:
    held = messages.KeySlotsAre(0, (0, 2, 3), (Role.TABLE, Role.FLOOR, Role.SERVICE), (0, 2, 3))
    with pytest.raises(errors.KeyMissing, match=r"person 2 as service, whose key file is flo\.key$"):
        Credential(Role.SERVICE, bytes(32), 2, source="flo.key").slot_among(held)
    with pytest.raises(errors.KeyMissing, match=r"no key of person 9 as floor$"):
        Credential(Role.FLOOR, bytes(32), 9).slot_among(held)


@pytest.mark.parametrize(
    ("state", "allowed", "helps"),
    [
        (ShoeState.READY, ShoeState.EMPTY, True),
        (ShoeState.JAMMED, ShoeState.EMPTY, False),
        (ShoeState.READY, ShoeState.ROUND_OPEN, False),
    ],
)
def test_a_machine_with_cards_inside_is_emptied_by_a_command(
    state: ShoeState, allowed: ShoeState, helps: bool
) -> None:
    detail = messages.WrongStateDetail(state, 1 << allowed, Half.SHOE)
    error = WrongState("self_test", detail, detail.CODE)
    assert ("sabot service empty" in error.advice) is helps


def test_two_who_write_a_key_at_once_do_not_fall_over_each_other(tmp_path: Path) -> None:
    path = tmp_path / "one.key"
    keys = [bytes([number]) * 32 for number in range(4)]

    def write(key: bytes) -> None:
        for _ in range(50):
            write_key(path, key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, keys))
    assert read_key(path) in keys
    assert [each.name for each in tmp_path.iterdir()] == ["one.key"]
