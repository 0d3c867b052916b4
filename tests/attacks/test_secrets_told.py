"""A whole life of a table PC, and a search for keys in everything that it wrote or said."""

import base64
import gc
import logging
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver import Credential, Journal, Keyring, connect
from sabot_driver.errors import SabotError
from sabot_driver.keyring import read_key
from sabot_driver.opened_device import DeviceKeys
from sabot_protocol import mac
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import CallFloor, PlayOneDeck, Provision, Role, SetKey
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import KEY_SIZE

FOREIGN = bytes(range(200, 232))  # a key that the device does not have
ROLES = ("floor", "service", "lab")
HOST_PACKAGES = ("sabot_driver", "sabot_cli", "sabot_evidence", "sabot_protocol.host")


class Secrets:
    """Every key that there was, also those that only ever were in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.found: set[bytes] = set()
        real = mac.hmac_sha256

        def noted(key: bytes, data: bytes) -> bytes:
            made = real(key, data)
            self.found |= {bytes(key), bytes(made)}  # keys of sessions, pads, keys derived for a slot
            return made

        mocker.patch("sabot_protocol.session.hmac_sha256", noted)

    def forms(self) -> Iterator[tuple[bytes, bytes]]:
        """Each key, and each way in which it could be written."""
        for key in self.found:
            if len(key) != KEY_SIZE or not any(key):
                continue
            yield key, key
            yield key, key.hex().encode()
            yield key, repr(key)[2:-1].encode()
            for shift in range(3):  # as base64 has it wherever it begins
                inner = base64.b64encode(bytes(shift) + key)[4 * (shift > 0) : -4]
                yield key, inner
                yield key, inner.translate(bytes.maketrans(b"+/", b"-_"))

    def check(self, said: dict[str, bytes]) -> None:
        """None of them is in any of this."""
        for where, data in said.items():
            folded = data.lower()
            for key, form in self.forms():
                assert form not in data, f"{key.hex()} is in {where}"
                assert key.hex().encode() not in folded, f"{key.hex()} is in {where}"


def test_no_key_is_told_in_a_whole_life(
    sabot: Sabot, tmp_path: Path, home: Path, mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    """``repr`` of a request with a key in it, and of what was found in the keyring, told the key.

    A traceback with its variables, or a program that logs its requests, would have written it to a file.
    """
    caplog.set_level(logging.DEBUG)
    secrets = Secrets(mocker)
    target = Tcp(tmp_path / "device")
    keys = tmp_path / "people"
    keys.mkdir()
    said: dict[str, bytes] = {}

    def run(*arguments: object, code: int = 0) -> None:
        name = f"{len(said)} {' '.join(map(str, arguments[:2]))}"
        capture = tmp_path / f"{len(said)}.pcapng"
        ran = sabot("-vv", *arguments, *device, "--capture", capture)
        assert ran.code == code, ran.out + ran.err
        said[name] = (ran.out + ran.err).encode()

    device = ("--device", target.listener.url, "--simulator")
    people = [each for role in ROLES for each in (f"--{role}-key", keys / f"{role}.key")]
    service = ("--service-key", keys / "service.key")
    run("provision", *people)
    run("play", "--rounds", 2, "--floor-key", keys / "floor.key", "--rules", "md-three-card-baccarat")
    run("key", "give", "floor", keys / "anna.key", *service)
    run("key", "give", "floor", keys / "bert.key", *service, "--json")
    run("key", "list", "--json")
    run("key", "remove", 5, *service)
    run("key", "observers", keys / "observers.key", *service)
    run("key", "device", *service, "--json")
    run("evict", "--floor-key", keys / "anna.key")
    run("status", "--json")
    run("key", "give", "floor", keys / "anna.key", code=5)  # without service
    said["replay"] = "".join(
        sabot("replay", path, "--json").out for path in tmp_path.glob("*.pcapng")
    ).encode()
    said["bundle"] = sabot("bundle", "--out", tmp_path / "bundle.zip", *device).out.encode()
    said["doctor"] = sabot("-vv", "doctor", "--device", target.listener.url).out.encode()
    said["journal show"] = sabot("journal", "show", "--json").out.encode()
    said["evidence show"] = sabot("evidence", "show", "--json").out.encode()
    said["evidence export"] = sabot("evidence", "export", "--out", tmp_path / "evidence.zip").out.encode()
    said["evidence verify"] = sabot("evidence", "verify", tmp_path / "evidence.zip", "--json").out.encode()
    assert b'"code": 8' in said["evidence verify"]
    (pc_key,) = home.rglob("pc.key")
    secrets.found.add(read_key(pc_key))

    floor = read_key(keys / "floor.key")
    (kept,) = (home / "keys" / "simulators").glob("SIM00001.key")
    journal = Journal(tmp_path / "journal.db")
    alive: list[Any] = [
        Credential(Role.FLOOR, FOREIGN),
        DeviceKeys(FOREIGN, other=FOREIGN),
        SetKey(3, Role.FLOOR, 1, FOREIGN),
        Provision(bytes(16), FOREIGN, FOREIGN),
    ]
    secrets.found |= {FOREIGN, slot_key(FOREIGN, b"SIM00001", 3)}
    with connect(
        target.listener.url,
        key=read_key(kept),
        keyring=Keyring(tmp_path / "ring"),
        journal=journal,
        simulator=True,
    ) as client:
        client.ask(CallFloor(1))
        wrong: list[Any] = [
            lambda: client.ask(PlayOneDeck(1), by=Credential(Role.FLOOR, FOREIGN, slot=3)),
            lambda: client.set_key(Role.FLOOR, FOREIGN, 9),
            lambda: client.set_key(Role.FLOOR, FOREIGN[:-1], 9, 3),
            lambda: client.set_device_key(FOREIGN, Credential(Role.SERVICE, floor, slot=2)),
            lambda: client.ask(SetKey(99, Role.FLOOR, 1, FOREIGN)),
            lambda: client.ask(Provision(bytes(16), FOREIGN, FOREIGN)),  # type: ignore[arg-type]
            lambda: connect(target.listener.url, key=FOREIGN, simulator=True, timeout=2),
        ]
        for number, call in enumerate(wrong):
            with pytest.raises((SabotError, FieldError, TypeError, ValueError)) as refused:
                call()
            text = "".join(traceback.format_exception(refused.value))
            said[f"error {number}"] = (repr(refused.value) + str(vars(refused.value)) + text).encode()
        gc.unfreeze()  # conftest.py froze what was there before the first test
        for each in [*gc.get_objects(), *alive]:
            if str(type(each).__module__).startswith(HOST_PACKAGES):  # some C types have no text there
                said[f"repr of {type(each).__name__} {id(each)}"] = repr(each).encode()
    target.close()
    for path in [*home.rglob("*"), *tmp_path.glob("*.*")]:
        if path.is_file() and path.suffix != ".key":
            said[str(path)] = path.read_bytes()
    for name in ("bundle.zip", "evidence.zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            said[f"in {name}"] = b"\n".join(archive.read(each) for each in archive.namelist())
    said["log"] = caplog.text.encode()
    assert len(secrets.found) > 20
    shown = {name.split()[2] for name in said if "repr" in name}
    assert {"Credential", "DeviceKeys", "SetKey", "Provision", "Connection", "Journal"} <= shown
    secrets.check(said)
