"""What a colleague types at the table PC: names, texts and amounts, and acts where another process runs."""

import os
import time
from pathlib import Path

import pytest
from tests.driver.command import Sabot
from tests.house.harbour import PIN, Harbour
from tests.serve.page_client import PageClient

from sabot_cli.at_table.act_entry import BadEntry, parse_wagers
from sabot_cli.at_table.attached_table import AttachedTable
from sabot_cli.output import NOT_VERIFIED, Output, exit_code
from sabot_driver.errors import SabotError
from sabot_driver.private_files import open_new
from sabot_driver.user_files import UserFiles
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress
from sabot_session.acts import CallFloor, NotAnAct, parse_act
from sabot_session.errors import BadPerson
from sabot_session.needs import NeedKind
from sabot_session.people import PeopleRegister, Presented
from sabot_table.procedure import TableRole
from sabot_table.ruleset import load
from sabot_web.access import MOST_BROWSERS

pytestmark = pytest.mark.slow
STEERING = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\r"
"""A title, an erased screen, a colour by a C1 character, another reading direction, an overwritten line."""


def _address(page: PageClient) -> ServiceAddress:
    """What ``service.json`` tells programs of this computer."""
    return ServiceAddress(page.table.address, os.getpid(), page.table.service.app.access.local_token)


def test_an_act_with_a_pin_relieves_no_dealer(attacked: PageClient, tmp_path: Path) -> None:
    """An act with ``--person eve`` at a served table, such as a dispute, made Eve its dealer.

    The command signed her in at the table first. So the record said that the dealer was relieved, and named
    Eve as the dealer of whatever the machine sensed next.
    """
    table = attacked.table
    table.wait_need(NeedKind.SIGN_IN)
    assert attacked.sign_in().json()["deals"]
    table.shown.register.enrol("eve", "Eve", [TableRole.DEALER], "739518", "floor", int(time.time()))
    with AttachedTable(tmp_path, _address(attacked)) as attached:
        seen = int(attached.snapshot()["newest_row"])
        attached.act("call-00001", None, seen, Presented("739518", "eve"), CallFloor("a card fell"))
    assert table.dealer() == "dealer"
    assert [each.row.actor.person for each in table.rows("sign_in")] == ["dealer"]
    (called,) = table.rows("call_floor")
    assert (called.row.actor.person, called.row.actor.how) == ("eve", "pin")


def test_a_wrong_pin_is_told_alike_at_every_table(attacked: PageClient) -> None:
    """At a served table the command ended with 1, as for an act that the rules refuse; elsewhere with 5."""
    client = ServiceClient(_address(attacked))
    body: dict[str, object] = {
        "act_id": "open-0001",
        "need": None,
        "seen": 0,
        "act": "open_table",
        "data": {},
    }
    for badge in (attacked.table.badge("floor"), "nobody's"):
        with pytest.raises(SabotError) as refused:
            client.post("/api/acts", {**body, "credential": {"pin": "1", "badge": badge}})
        assert exit_code(refused.value) == NOT_VERIFIED
    for _ in range(8):  # until it must wait
        with pytest.raises(SabotError) as refused:
            client.post("/api/sign-in", {"person": "dealer", "pin": "1"})
        assert exit_code(refused.value) == NOT_VERIFIED


def test_programs_that_come_and_go_push_no_page_out(attacked: PageClient) -> None:
    """Each act from the command line was let in as a browser for 12 hours, and 64 are let in at most.

    After 64 commands the dealer's page, which had entered first, was no longer let in.
    """
    assert attacked.sign_in().status_code == 200
    for _ in range(MOST_BROWSERS + 1):
        ServiceClient(_address(attacked))._enter()
    assert attacked.http.get("/api/snapshot").status_code == 200


def test_two_tables_never_share_a_place(home: Path) -> None:
    """The folder of a running table was its name without what is no ASCII letter, digit, dot or dash.

    So two tables with names in Chinese had one folder, as had ``BAC 07`` and ``BAC_07``: an act for one was
    given at the process that ran the other.
    """
    names = ("桌七", "桌八", "BAC 07", "BAC_07", "BAC/07", "_BAC_07", "bac-07", "BAC-07", "..", "", "table")
    files = UserFiles(home)
    folders = {str(files.table_folder(name)).lower() for name in names}
    assert len(folders) == len(names) - 1  # upper and lower case are one name for some disks, as before
    assert files.table_folder("BAC-07").name == "BAC-07"
    for name in (*names, "../../x", "x" * 400, "socket://10.0.0.7:5000"):
        folder = files.table_folder(name)
        assert folder.parent == home / "tables"
        assert len(folder.name.encode()) < 100


def test_nobody_is_given_a_badge_in_a_house_of_certificates(
    harbour: Harbour, sabot: Sabot, home: Path
) -> None:
    """Where nobody holds a badge or key file yet, giving the first one needed nobody's leave.

    In a house of certificates that stayed so for ever: with a PIN that was watched, a colleague gave the
    floor a badge and acted as the floor.
    """
    harbour.certificate(("floor", "dealer"))
    files = UserFiles(home)
    files.house.parent.mkdir(parents=True)
    harbour.trust.close()
    harbour.people.close()
    assert harbour.people.house is not None
    harbour.people.house.replace(files.house)
    with PeopleRegister(files.people) as people:
        people.enrol("dana", "Dana", [TableRole.FLOOR], PIN, f"house {harbour.office.key.public[:16]}", 1)
    ran = sabot("people", "badge", "dana", "0012345678")
    assert ran.code == NOT_VERIFIED
    assert "nobody authorises this change" in ran.err
    key = home / "mine.key"
    key.write_text("ab" * 32 + "\n")
    key.chmod(0o600)
    assert sabot("people", "key", "dana", "floor", key).code == NOT_VERIFIED
    with PeopleRegister(files.people) as people:
        assert not people.find("dana").has_badge
        assert not people.find("dana").keys


def test_what_people_wrote_does_not_steer_the_terminal(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, bags and notes came to the terminal as they were typed: an escape sequence was obeyed.

    ``[/red]`` in a name ended ``sabot people list`` with a traceback.
    """
    text, words = Output(), Output(as_json=True)
    text.tell("person", f"dana  Dana {STEERING}[/red] [link=http://x]y [conceal]z  dealer")
    text.error(SabotError(f"no {STEERING}[/red]", f"do {STEERING}[/red]"))
    told = capsys.readouterr()
    assert "[/red] [link=http://x]y [conceal]z  dealer" in told.out
    words.tell("person", name=STEERING, broken="\udcff")
    json = capsys.readouterr().out
    for shown in (told.out, told.err, json):
        assert all(each.isprintable() or each == "\n" for each in shown), repr(shown)
    with PeopleRegister(None) as people:
        for name in (f"Dana{STEERING}", "x" * 200):
            with pytest.raises(BadPerson, match="name"):
                people.enrol("dana", name, [TableRole.DEALER], PIN, "", 1)


def test_an_act_has_plain_text_and_numbers_of_a_record(attacked: PageClient) -> None:
    """An act's texts were of any length and characters: a bag's number could erase the screen of who read it.

    A fault of another name, and a round's number that SQLite cannot hold, ended the command with a traceback.
    """
    for why in (STEERING, "x" * 10_000):
        with pytest.raises(NotAnAct):
            parse_act("open_dispute", {"round_id": 1, "why": why})
    with pytest.raises(NotAnAct):
        parse_act("open_dispute", {"round_id": 2**64})
    assert parse_act("open_dispute", {"round_id": 1, "why": "Ana García: Ŝi ne vidis 牌"})
    floor = attacked.credential("floor")
    assert attacked.act("clear_fault", credential=floor, fault="nonsense").status_code == 409
    assert attacked.act("open_dispute", credential=floor, round_id=2**64).status_code == 400


@pytest.mark.parametrize(
    "amount", ["inf", "-inf", "nan", "1e4000", "1e99999999", "-5", "1_000", "٣", "1" * 40]
)
def test_an_amount_is_money(amount: str) -> None:
    """``1 ante inf`` ended the program that ran the table, and ``1e99999999`` kept it busy for ever."""
    rules = load("md-three-card-baccarat")
    with pytest.raises(BadEntry):
        parse_wagers(f"1 ante {amount}", rules, {})
    assert parse_wagers("1 ante 12.4", rules, {}) == {1: {"ante": 1240}}


def test_a_private_file_is_not_written_into_a_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user made the file of a support archive or capture first, in a folder that all may write to.

    Its mode could not be tightened, and that was passed over: the other user read what was written.
    """
    theirs = tmp_path / "sabot-support.zip"
    theirs.write_bytes(b"")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match="another user"):
        open_new(theirs)
    assert theirs.read_bytes() == b""
