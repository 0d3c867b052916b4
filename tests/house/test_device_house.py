"""A device that belongs to a house: bound, reset under a statement, handed on to the house's next key."""

import runpy
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.house.harbour import Harbour
from tests.house.house_device import HouseDevice, presence

from sabot_evidence.signing_key import draw_signing_key
from sabot_house import statements
from sabot_protocol import house_lines

pytestmark = pytest.mark.slow

SERIAL = b"SABOT001"
PORTABLE = Path(__file__).parent.parent / "portable" / "house_signed.py"


def signed(made: statements.Statement) -> bytes:
    """What the house signs, byte for byte."""
    return statements._signed(made.kind, made.text)


def test_the_device_writes_the_very_lines_that_the_house_signs(harbour: Harbour, tmp_path: Path) -> None:
    own = bytes.fromhex(harbour.office.key.public)
    made = harbour.office.reset(SERIAL, 4_000_000_000, tmp_path / "reset.json")
    assert house_lines.reset_line(own, SERIAL, 4_000_000_000) == signed(made)
    rotated = harbour.office.rotate(draw_signing_key, 1_800_000_000, tmp_path / "rotation.json")
    new = bytes.fromhex(rotated.told["to"])
    assert house_lines.rotation_line(own, new, 1, 1_800_000_000) == signed(rotated)


def test_what_the_portable_tests_show_is_what_a_house_signs() -> None:
    kept = runpy.run_path(str(PORTABLE))
    key = Ed25519PrivateKey.from_private_bytes(kept["HOUSE_SECRET"])
    new = Ed25519PrivateKey.from_private_bytes(kept["NEW_SECRET"])
    assert key.public_key().public_bytes_raw() == kept["HOUSE"]
    assert new.public_key().public_bytes_raw() == kept["NEW_HOUSE"]
    assert key.sign(house_lines.reset_line(kept["HOUSE"], SERIAL, 0)) == kept["RESET_0"]
    line = house_lines.rotation_line(kept["HOUSE"], kept["NEW_HOUSE"], 1, kept["UNTIL_S"])
    assert key.sign(line) == kept["ROTATION"]


def test_a_device_of_a_house_is_reset_with_the_houses_statement(house_device: HouseDevice) -> None:
    run, url, serial = house_device.run, house_device.url, house_device.serial
    told = run("house", "show", "--device", url, "--simulator").lines[-1]
    assert (told["public"], told["reset_count"], told["bound"]) == (house_device.public, 0, True)
    presence(house_device)
    run("house", "reset", "office", serial, 0, "--out", "reset.json")
    provision = ("provision", "--device", url, "--simulator", "--service-key", "second.key")
    run(*provision, code=1)
    run(*provision, "--reset-statement", "reset.json")
    assert run("house", "show", "--device", url, "--simulator").lines[-1]["reset_count"] == 1
    watched = run("watch", "--device", url, "--simulator", "--all", "--seconds", 1)
    used = [each["fields"]["count"] for each in watched.of("device_event") if each["name"] == "reset_used"]
    assert used == [0], watched.out


def test_a_house_with_a_new_key_names_it_to_its_devices(house_device: HouseDevice) -> None:
    run, url = house_device.run, house_device.url
    run("house", "rotate", "office", "--old-until", "2026-12-31", "--out", "rotation.json")
    bind = ("house", "bind", "office/house.json", "--site", "MAIN", "--device", url, "--simulator")
    service = ("--service-key", "service.key")
    refused = run(*bind, *service, code=1).lines[-1]
    words = "the device belongs to another house, or to an older key of this one"
    assert (refused["error"], refused["message"]) == ("OtherHouse", words)
    run(*bind, *service, "--rotation", "rotation.json")
    told = run("house", "show", "--device", url, "--simulator").lines[-1]
    assert told["public"] not in (None, house_device.public)
    presence(house_device)
    old = ("--old-key", "office/house-1.pem", "--out", "old.json")
    run("house", "reset", "office", house_device.serial, 0, *old)
    provision = ("provision", "--device", url, "--simulator")
    words = run(*provision, "--reset-statement", "old.json", code=1).lines[-1]["message"]
    assert "the statement is of the key" in words
    run("house", "reset", "office", house_device.serial, 0, "--out", "reset.json")
    run(*provision, "--reset-statement", "reset.json")


def test_a_site_that_no_device_can_hold(house_device: HouseDevice) -> None:
    bind = ("house", "bind", "office/house.json", "--device", house_device.url, "--simulator")
    for site in ('MA"IN', "x" * 25, "Zürich"):
        house_device.run(*bind, "--site", site, code=2)
