"""A person authorises what a device guards by a certificate of the house: driver, commands, revocations."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.house.harbour import Harbour, changed
from tests.house.house_device import HouseDevice

from sabot_driver import Certified, Client, LostEvents, Notice, aio, connect
from sabot_driver.errors import CertificateNotAccepted, WrongRole
from sabot_driver.user_files import UserFiles
from sabot_evidence.signing_key import draw_signing_key
from sabot_house import office, on_device, statements
from sabot_house.errors import BadStatement
from sabot_house.errors import WrongRole as RoleMissing
from sabot_house.statements import Statement
from sabot_house.trust import HouseTrust
from sabot_protocol import house_lines
from sabot_protocol.host.messages import (
    CertificateReason,
    HouseKey,
    KeySlots,
    MarkOutOfOrder,
    PlayOneDeck,
    RevocationsTaken,
    Role,
)
from sabot_protocol.schema import MAX_REVOKED

pytestmark = pytest.mark.slow

SITE = "MAIN"
CHECK_S = 60.0


def signed(made: Statement) -> bytes:
    """What the house signs, byte for byte."""
    return statements._signed(made.kind, made.text)


def test_the_device_writes_the_very_lines_that_the_house_signs(harbour: Harbour) -> None:
    house = bytes.fromhex(harbour.office.key.public)
    for roles in (("floor",), ("service", "dealer"), ("floor", "service", "dealer")):
        made = harbour.certificate(roles)
        shown = on_device.certified(made, harbour.key(), Role[made.told["roles"][0].upper()]).certificate
        fields = shown.key, shown.not_after_s, shown.person, shown.roles, shown.site
        assert house_lines.certificate_line(house_lines.certificate_text(house, *fields)) == signed(made)
        harbour.office.revoke("dana")
        listed = harbour.office.revocations()
        ids = b"".join(bytes.fromhex(each) for each in listed.told["revoked"])
        assert b"".join(house_lines.revocation_parts(house, listed.told["number"], ids)) == signed(listed)


def test_what_no_device_can_hold_is_said_at_the_host(harbour: Harbour) -> None:
    for site in ("Zürich", "x" * 25, 'the "old" hall'):
        with pytest.raises(BadStatement, match="cannot be shown to a device"):
            on_device.certified(harbour.certificate(site=site), harbour.key(), Role.FLOOR)
    with pytest.raises(RoleMissing):
        on_device.certified(harbour.certificate(), harbour.key(), Role.SERVICE)
    by = on_device.certified(harbour.certificate(), harbour.key(), Role.FLOOR)
    with pytest.raises(ValueError, match="not for service"):
        Certified(Role.SERVICE, by.certificate, by.sign).check()
    assert "SigningKey" not in repr(by)


def holder(harbour: Harbour, role: Role = Role.FLOOR, made: Statement | None = None) -> Certified:
    """Dana, with a certificate that is good for years on the emulated device's clock."""
    roles = ("floor", "service")
    return on_device.certified(made or harbour.certificate(roles, until_s=0xFFFFFFFF), harbour.key(), role)


def test_a_certificate_authorises_request_by_request(harbour: Harbour, house_client: Client) -> None:
    by = holder(harbour)
    with pytest.raises(WrongRole):
        house_client.ask(PlayOneDeck(1))
    for on in (1, 0, 1):
        house_client.ask(PlayOneDeck(on), by=by)
    house_client.ask(MarkOutOfOrder(), by=holder(harbour, Role.SERVICE))
    with pytest.raises(WrongRole):
        house_client.ask(PlayOneDeck(0))


def test_keys_of_slots_are_changed_by_certificate(harbour: Harbour, house_client: Client) -> None:
    by = holder(harbour, Role.SERVICE)
    slot = house_client.set_key(Role.LAB, b"k" * 32, 7, by=by)
    assert slot in house_client.ask(KeySlots()).slots
    house_client.remove_key(slot, by)
    house_client.set_device_key(b"another key of the device, 32 b.", by)
    house_client.ask(PlayOneDeck(1), by=holder(harbour))  # the session is another one


def test_a_forged_and_a_revoked_certificate_are_told_by_their_reason(
    harbour: Harbour, house_client: Client
) -> None:
    made = harbour.certificate(("floor", "service"), until_s=0xFFFFFFFF)
    house_client.ask(PlayOneDeck(1), by=holder(harbour, made=made))
    harbour.office.revoke("dana")
    assert on_device.hand_over(house_client, harbour.office.revocations())
    assert on_device.hand_over(house_client, harbour.office.revocations())
    with pytest.raises(CertificateNotAccepted, match="the house has revoked it") as told:
        house_client.ask(PlayOneDeck(0), by=holder(harbour, made=made))
    assert told.value.reason is CertificateReason.REVOKED
    forged = changed(harbour.certificate(("dealer",), until_s=0xFFFFFFFF), roles=["floor"])
    with pytest.raises(CertificateNotAccepted) as told:
        house_client.ask(holder(harbour, made=forged).certificate, CHECK_S)
    assert told.value.reason is CertificateReason.FORGED


def test_a_device_without_a_house_is_handed_nothing(harbour: Harbour) -> None:
    with connect("sim://?seed=1") as client:
        assert not on_device.hand_over(client, harbour.office.revocations())
        with pytest.raises(CertificateNotAccepted, match="no house"):
            client.ask(PlayOneDeck(1), by=holder(harbour))


def test_a_list_that_is_too_long_is_said_at_the_host(harbour: Harbour, house_client: Client) -> None:
    harbour.office._revoke(2, [f"{each:032x}" for each in range(MAX_REVOKED)])
    assert on_device.hand_over(house_client, harbour.office.revocations())
    harbour.office._revoke(3, [f"{each:032x}" for each in range(MAX_REVOKED + 1)])
    with pytest.raises(BadStatement, match="names 251 certificates, and a device keeps 250"):
        on_device.hand_over(house_client, harbour.office.revocations())


def test_a_program_hands_over_each_new_list_by_itself(harbour: Harbour, house_client: Client) -> None:
    """Also after the device has a session of another time."""
    newest = [harbour.office.revocations()]

    def taken(number: int) -> None:
        for event in house_client.events(after=0, timeout=30):
            assert not isinstance(event, LostEvents)
            if isinstance(event.message, RevocationsTaken) and event.message.number == number:
                return
        raise AssertionError(f"list {number} was not handed over")

    with on_device.RevocationsKept(house_client, lambda: newest[0], look_s=0.05) as kept:
        taken(0)
        harbour.office._revoke(1, [])
        newest[0] = harbour.office.revocations()
        taken(1)
        kept._heard(Notice("up", "a new session"))  # the device has the list
        harbour.office._revoke(2, [])
        newest[0] = harbour.office.revocations()
        taken(2)


def test_a_refused_list_is_handed_over_once_in_a_session(
    harbour: Harbour, house_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try with another house's list is a wrong proof on the device's record."""
    other = office.begin(tmp_path / "other", "Other", draw_signing_key)
    other._revoke(5, [])
    tries, refused, looked = [], threading.Event(), threading.Event()

    def counted(client: Client, made: Statement) -> bool:
        tries.append(made.told["number"])
        try:
            return hand_over(client, made)
        finally:
            refused.set()

    def newest() -> Statement:
        if refused.is_set() and len(tries) < 3:
            looked.set()
        return other.revocations()

    hand_over = on_device.hand_over
    monkeypatch.setattr(on_device, "hand_over", counted)
    with on_device.RevocationsKept(house_client, newest, look_s=0.01) as kept:
        assert looked.wait(30)
        assert tries == [5]
        refused.clear()
        kept._heard(Notice("up", "a new session"))
        assert refused.wait(30)
    assert tries == [5, 5]
    assert any(each.name == "proofs_refused" for each in house_client.events(after=0, timeout=0.5))


def test_with_asyncio(harbour: Harbour) -> None:
    async def act() -> None:
        async with await aio.connect("sim://?seed=1") as client:
            await client.ask(HouseKey(bytes.fromhex(harbour.office.key.public), SITE, 0, 0, b""), CHECK_S)
            with pytest.raises(CertificateNotAccepted) as told:
                await client.ask(PlayOneDeck(1), by=holder(harbour))
            assert told.value.reason is CertificateReason.NO_REVOCATIONS

    asyncio.run(act())


def test_the_commands_take_a_certificate(
    house_device: HouseDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command hands over the list that the computer has, and shows the certificate."""
    run, device = house_device.run, ("--device", house_device.url, "--simulator")
    run(
        "house", "sign", "office", "tess", "--role", "service", "--site", SITE, "--not-after", "2100-01-01",
        "--new-key", "--out", "tess.cert",
    )  # fmt: skip
    by = ("--service-key", "tess.cert")
    told = run("service", "out-of-order", *device, *by, code=1).lines[-1]
    assert told["error"] == "CertificateNotAccepted"
    assert "has no list of revocations" in told["message"]
    with HouseTrust(UserFiles().house) as trust:
        trust.trust(statements.read_file(tmp_path / "office" / "house.json", statements.HOUSE), SITE)
        trust.add_revocations(
            statements.read_file(tmp_path / "office" / "revocations.json", statements.REVOCATIONS)
        )
    run("service", "out-of-order", *device, *by)
    watched = run("watch", *device, "--all", "--seconds", 1)
    used = [each["fields"] for each in watched.of("device_event") if each["name"] == "certificate_used"]
    assert [(each["person"], each["role"]) for each in used] == [("tess", "service")]
    monkeypatch.setattr(on_device, "MAX_REVOKED", -1)  # the computer's list is longer than a device keeps
    run("service", "return", *device, *by)
    run("house", "rotate", "office", "--old-until", "2100-01-01", "--out", "rotation.json")
    bind = ("house", "bind", "office/house.json", "--site", SITE, "--rotation", "rotation.json")
    assert "--rotation takes service's key file" in run(*bind, *device, *by, code=2).out
    run(*bind, *device, "--service-key", "service.key")
