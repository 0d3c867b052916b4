"""Steal a device that belongs to a house, open its housing, hold its contact, and make it one's own."""

import json
from pathlib import Path

import pytest
from tests.attacks.by_hand import Table, hold_contact, turns
from tests.driver.command import Ran, Sabot
from tests.house.harbour import Harbour
from tests.house.house_device import HouseDevice, presence

from sabot_house.statements import Statement

pytestmark = pytest.mark.slow

MINE = b"the key of somebody who has none"
NONCE = b"sixteen bytes ok"


def take_over(table: Table) -> str:
    """What the device says to a thief that gives it a key."""
    return table.refused("provision", NONCE, MINE, bytes(32))


def signed(harbour: Harbour, table: Table, count: int = 0, serial: bytes | None = None) -> Statement:
    """A statement of the house's office."""
    number = serial or table.clear("identify")[8]
    return harbour.office.reset(number, count, harbour.folder / "reset.json")


def test_presence_is_not_enough(stolen: Table) -> None:
    """On the old code whoever opened the housing and held the contact owned the device."""
    assert take_over(stolen) == "reset_required"
    stolen.served._reboot()
    assert take_over(stolen) == "provisioning_closed"
    hold_contact(stolen)
    assert take_over(stolen) == "reset_required"


def test_a_new_memory_chip_is_not_enough(stolen: Table) -> None:
    """On the old code an erased chip and the contact made a new device of it."""
    stolen.device.damage_memory("blank")
    stolen.served._reboot()
    assert take_over(stolen) == "provisioning_closed"
    hold_contact(stolen)
    assert take_over(stolen) == "reset_required"


def test_a_statement_for_another_device_or_another_count(stolen: Table, harbour: Harbour) -> None:
    """A genuine statement that somebody keeps, or gets for a device that is theirs."""
    for made in (signed(harbour, stolen, serial=b"SB999999"), signed(harbour, stolen, count=1)):
        assert stolen.refused("reset_statement", NONCE, made.signature) == "bad_proof"
        assert take_over(stolen) == "reset_required"
        turns(stolen, 1500)


def test_a_statement_that_was_used_before(stolen: Table, harbour: Harbour) -> None:
    """A copy of the file that service brought for the last reset."""
    made = signed(harbour, stolen)
    assert stolen.clear("reset_statement", NONCE, made.signature)[4] == 1
    stolen.clear("provision", NONCE, MINE, bytes(32))
    hold_contact(stolen)
    assert stolen.refused("reset_statement", NONCE, made.signature) == "bad_proof"
    assert take_over(stolen) == "reset_required"


def test_a_statement_of_a_house_of_ones_own(stolen: Table, harbour: Harbour) -> None:
    """Signed with a thief's key, and with a person's key of the house."""
    serial = stolen.clear("identify")[8]
    forged = harbour.key("thief")
    line = signed(harbour, stolen).text
    for signature in (forged.sign(f"sabot reset 1\n{line}".encode()), forged.sign(serial), bytes(64)):
        assert stolen.refused("reset_statement", NONCE, signature) == "bad_proof"
        assert take_over(stolen) == "reset_required"
        turns(stolen, 1500)


def test_guesses_are_slow_and_on_record(stolen: Table) -> None:
    """One signature after another on the same cable."""
    assert stolen.refused("reset_statement", NONCE, bytes(64)) == "bad_proof"
    assert stolen.refused("reset_statement", NONCE, bytes(64)) == "too_soon"


def test_who_owns_the_table_pc_cannot_take_the_device_from_its_house(table: Table, harbour: Harbour) -> None:
    """The owner with the device's key, while the slots are open and later."""
    turns(table, 3000)
    house = bytes.fromhex(harbour.office.key.public)
    mine = bytes.fromhex(harbour.key("thief").public)
    assert table.outcome("house_key", house, "MAIN", 0, 0, b"")[0] == "ok"
    assert table.outcome("house_key", mine, "MAIN", 0, 0, b"")[0] == "wrong_role"
    assert table.outcome("house_key", mine, "MAIN", 1, 0, bytes(64))[0] == "wrong_role"
    assert table.clear("reset_statement", NONCE, b"")[1:4] == (1, house, 0)


def test_the_commands_words(house_device: HouseDevice, sabot: Sabot) -> None:
    """Each wrong statement is named before it is sent, and a forged one after."""
    url, serial = house_device.url, house_device.serial

    def run(*arguments: object) -> Ran:
        return sabot(*arguments, "--json")

    presence(house_device)
    provision = ("provision", "--device", url, "--simulator", "--replace")
    ran = run(*provision)
    assert (ran.code, ran.lines[-1]["error"]) == (1, "ResetRequired")
    key = house_device.public
    assert ran.lines[-1]["message"] == f"{serial} belongs to the house with key {key}; its reset count is 0"
    assert f"sabot house reset OFFICE {serial} 0 --out reset.json" in ran.lines[-1]["advice"]
    for other, words in (
        (("SB999999", 0), f"the statement is for SB999999, and this device is {serial}"),
        ((serial, 7), "the statement is for reset count 7, and this device's is 0"),
    ):
        assert run("house", "reset", "office", *other, "--out", "reset.json").code == 0
        ran = run(*provision, "--reset-statement", "reset.json")
        assert (ran.code, ran.lines[-1]["message"]) == (1, f"reset.json: {words}")
    assert run("house", "init", "mine", "--name", "Mine").code == 0
    assert run("house", "reset", "mine", serial, 0, "--out", "mine.json").code == 0
    ran = run(*provision, "--reset-statement", "mine.json")
    assert ran.code == 1
    assert f"and this device belongs to {key[:16]}" in ran.lines[-1]["message"]
    forged = json.loads(Path("mine.json").read_text(encoding="utf-8"))
    forged["statement"] = forged["statement"].replace(ran_public(forged), key)
    Path("forged.json").write_text(json.dumps(forged), encoding="utf-8")
    ran = run(*provision, "--reset-statement", "forged.json")
    assert (ran.code, ran.lines[-1]["error"]) == (1, "ResetRefused")
    assert ran.lines[-1]["message"] == f"{url}: the signature does not fit this device and this reset"


def ran_public(line: dict[str, str]) -> str:
    """The house key that a statement names."""
    return str(json.loads(line["statement"])["house"])
