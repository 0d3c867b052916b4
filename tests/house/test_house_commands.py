"""``sabot house`` and ``sabot people enrol``, from the house's office to an act at a table."""

import io
import time
from pathlib import Path

import pytest
from tests.conformance.targets import Tcp
from tests.driver.command import Ran, Sabot
from tests.house.harbour import Harbour

from sabot_driver.user_files import UserFiles
from sabot_house.proof import show_file
from sabot_session.record import RecordReader
from sabot_session.rows import Authentication
from sabot_web.errors import Refused
from sabot_web.requests import ShownCredential

pytestmark = pytest.mark.slow

SIGN = ("--role", "floor", "--site", "MAIN", "--not-after", "2099-12-31", "--new-key")


def test_a_certificate_from_the_office_to_an_act_at_a_table(
    sabot: Sabot, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("739518\n" * 20))

    def run(*arguments: object, code: int = 0) -> Ran:
        ran = sabot(*arguments, "--json")
        assert ran.code == code, ran.out + ran.err
        return ran

    run("house", "init", "office", "--name", "Harbour")
    run("house", "sign", "office", "dana", *SIGN, "--out", "dana.cert")
    refused = run("people", "enrol", "dana.cert", "--name", "Dana", "--pin-stdin", code=1)
    assert refused.lines[-1]["error"] == "NoHouse"
    run("house", "trust", "office/house.json", "--site", "MAIN")
    run("people", "enrol", "dana.cert", "--name", "Dana", "--pin-stdin")
    assert sabot("people", "list", "--json").lines[0]["roles"] == ["floor"]
    target = Tcp(tmp_path / "device", "seed=1")
    run("table", "set", "BAC-07", "--device", target.listener.url, "--simulator")
    acting = ("--table", "BAC-07", "--people", "--floor-key", "dana.cert", "--pin-stdin")
    run("table", "open", *acting)
    (path,) = UserFiles(home).records()
    with RecordReader(path) as record:
        (row,) = [each.row for each in record.rows(0, 1000) if each.row.kind == "open_table"]
    assert (row.actor.person, row.actor.how) == ("dana", Authentication.CERTIFICATE_AND_PIN)
    run("house", "revoke", "office", "dana")
    assert run("house", "list", "office").lines[0]["how"] == "revoked"
    run("house", "update", "office/revocations.json")
    ran = run("table", "close", *acting, code=5)
    assert ran.lines[-1]["error"] == "CertificateRefused"
    assert ran.lines[-1]["message"] == "the house has revoked the certificate of dana"
    run("house", "rotate", "office", "--old-until", "2020-01-01", "--out", "rotation.json")
    run("house", "sign", "office", "dana", *SIGN, "--out", "new.cert")
    run("house", "update", "rotation.json", "office/revocations.json")
    run("table", "close", *acting[:3], "--floor-key", "new.cert", "--pin-stdin")
    stale = run("house", "update", "rotation.json", code=1)
    assert stale.lines[-1]["error"] == "OtherHouse"
    target.close()


def test_the_house_of_a_table_is_the_floors_decision(
    sabot: Sabot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may name the house can enrol people."""
    monkeypatch.setattr("sys.stdin", io.StringIO("739518\n" * 20))
    assert sabot("people", "add", "flo", "--name", "Flo", "--role", "floor", "--pin-stdin").code == 0
    assert sabot("house", "init", "office", "--name", "Mine").code == 0
    ran = sabot("house", "trust", "office/house.json", "--site", "MAIN", "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (5, "NotAuthorised")


def test_a_page_takes_a_certificate_and_refuses_what_is_none(harbour: Harbour) -> None:
    harbour.certificate()
    held = show_file(harbour.folder / "dana.cert", int(time.time()))
    sent = ShownCredential(pin="739518", certificate=held.certificate.line(), proof=held.proof.line())
    shown = sent.presented().certificate
    assert shown is not None
    assert (shown.certificate, shown.proof) == (held.certificate, held.proof)
    with pytest.raises(Refused):
        ShownCredential(pin="1", certificate=held.proof.line(), proof=held.proof.line()).presented()
