"""A whole life of a table PC, and a search for keys in everything that it wrote or said."""

import base64
import gc
import io
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
from sabot_evidence.signing_key import read_signing_key
from sabot_protocol import mac
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import CallFloor, PlayOneDeck, Provision, Role, SetKey
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import KEY_SIZE

pytestmark = pytest.mark.slow

FOREIGN = bytes(range(200, 232))  # a key that the device does not have
ROLES = ("floor", "service", "lab")
HOST_PACKAGES = ("sabot_driver", "sabot_cli", "sabot_evidence", "sabot_protocol.host")


class Secrets:
    """Every key that there was, also those that only ever were in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.found: set[bytes] = set()
        self.words: set[bytes] = set()
        """Secrets that people type: passphrases, badge codes, long PINs."""
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
        everything = b"\n".join(said.values())
        folded = everything.lower()
        for word in self.words:
            assert word not in everything, f"{word.decode()} is in {told_at(said, word)}"
        for key, form in self.forms():
            assert form not in everything, f"{key.hex()} is in {told_at(said, form)}"
            assert form != key.hex().encode() or form not in folded, f"{key.hex()} is in capitals"


def told_at(said: dict[str, bytes], form: bytes) -> list[str]:
    """Where something was told."""
    return [where for where, data in said.items() if form in data]


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


PASSPHRASE, BADGE, PIN = "mussel barge 77 lantern", "badge-90417735", "739518264073"


def raw_key(path: Path, passphrase: str = "") -> bytes:
    """The 32 bytes of a key file in PEM."""
    key = read_signing_key(path, passphrase.encode())._key
    return key.private_bytes_raw()


def test_no_key_is_told_in_a_whole_day(
    sabot: Sabot,
    tmp_path: Path,
    home: Path,
    mocker: MockerFixture,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """From the office's keys in the morning to the floor's countersignature at night, with what fails."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("sabot_session.pin_hash.LOG2_N", 4)
    (tmp_path / "day").mkdir()
    monkeypatch.chdir(tmp_path / "day")
    secrets = Secrets(mocker)
    secrets.words |= {PASSPHRASE.encode(), BADGE.encode(), PIN.encode()}
    target = Tcp(tmp_path / "device", "seed=1&fault=stuck@insertion:70")
    device = ("--device", target.listener.url, "--simulator")
    table = ("--table", "BAC-07")
    said: dict[str, bytes] = {}

    def run(line: str, *more: object, code: int = 0, typed: str = PIN) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{typed}\n" * 9))
        ran = sabot("-vv", *line.split(), *more)
        said[f"{len(said)} {line}"] = (ran.out + ran.err).encode()
        assert ran.code == code, line + ran.out + ran.err

    # the house's office, and the floor's own key
    run("house init office --name Harbour --passphrase-stdin", typed=PASSPHRASE)
    sign = "house sign office dana --role floor --site MAIN --not-after 2099-12-31 --new-key --out dana.cert"
    run(sign, typed="a wrong passphrase", code=1)
    run(f"{sign} --passphrase-stdin", typed=PASSPHRASE)
    run("evidence new-key floor.pem --json")
    # the morning: keys, people, the table
    run("provision --floor-key floor.key --service-key service.key", *device)
    run("house trust office/house.json --site MAIN")
    run("people enrol dana.cert --name Dana --pin-stdin --json")
    by = "--by-key dana.cert --pin-stdin"
    run(f"people add flo --name Flo --role floor --role service {by}")
    run(f"people key flo floor floor.key {by}")
    run("people badge flo", BADGE, *by.split())
    run("table set BAC-07", *device)
    run("table open --people --floor-key dana.cert --pin-stdin --capture open.pcapng", *table)
    run("table open --people --floor-key dana.cert --pin-stdin", *table, code=5, typed="000000000000")
    # the day: rounds, a stop and its repair, a dispute, the power fails, a wrong key and a wrong badge
    run("play --auto --rounds 2 --json --floor-key floor.key --capture play.pcapng", *table)
    run("status --json", *table)
    target.reboot()
    run("play --auto --rounds 1 --floor-key floor.key --capture again.pcapng", *table)
    run("round 1 --json", *table)
    run("round 1 hold --floor-key service.key --pin-stdin", *table, code=5)
    run("round 1 hold --badge no-such-badge --pin-stdin", *table, code=5)
    run("rounds --json", *table)
    run("deck list --json", *table)
    run("fault show --json", *table)
    run("key list --json", *table)
    # the evening: closing, what the floor keeps, revocation, what support gets
    run("table close --people --badge", BADGE, "--pin-stdin", *table, code=1)  # closed already
    run("evidence show --json")
    run("evidence export --out evidence.zip")
    Path("checkpoints.jsonl").write_bytes(
        b"\n".join(each for name, each in said.items() if name.endswith("evidence show --json"))
    )
    run("evidence countersign checkpoints.jsonl --key floor.pem --kept floor.jsonl --json")
    run("evidence verify --anchor floor.jsonl --json", code=1)  # nobody said whom to trust
    run("evidence verify evidence.zip --json", code=8)
    run("audit --json", *table)
    run("house revoke office dana --passphrase-stdin", typed=PASSPHRASE)
    run("house update office/revocations.json")
    run("people changes --json")
    run("house list office --json")
    run("journal show --json")
    run("doctor", "--device", target.listener.url)
    run("bundle --out bundle.zip", *device)
    run("replay play.pcapng --json")
    target.close()

    (pc_key,) = home.rglob("pc.key")
    secrets.found |= {read_key(pc_key), read_key(Path("floor.key")), read_key(Path("service.key"))}
    for each in home.rglob("*.key"):
        secrets.found.add(read_key(each))
    signing = {raw_key(Path("floor.pem")), raw_key(Path("dana.pem"))}
    secrets.found |= {*signing, raw_key(Path("office/house.pem"), PASSPHRASE)}
    for path in [*home.rglob("*"), *Path().rglob("*")]:
        if path.is_file() and path.suffix not in (".key", ".pem"):
            said[str(path)] = path.read_bytes()
    for name in ("bundle.zip", "evidence.zip"):
        with zipfile.ZipFile(name) as archive:
            said[f"in {name}"] = b"\n".join(archive.read(each) for each in archive.namelist())
    said["log"] = caplog.text.encode()
    written = {Path(name).suffix for name in said}
    assert {".db", ".pcapng", ".zip", ".jsonl", ".cert", ".json"} <= written
    assert len(secrets.found) > 40
    secrets.check(said)
