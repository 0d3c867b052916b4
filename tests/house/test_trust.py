"""What a table PC takes from its house, and what it refuses."""

from pathlib import Path

import pytest
from tests.house.harbour import NOW, PIN, YEAR_S, Harbour, changed

from sabot_evidence.signing_key import draw_signing_key
from sabot_house import office, proof, statements
from sabot_house.errors import (
    BadProof,
    BadStatement,
    CertificateExpired,
    CertificateRevoked,
    NoHouse,
    OfficeUnusable,
    OldStatement,
    OtherHouse,
    WrongSite,
)
from sabot_house.proof import ShownCertificate
from sabot_house.trust import PROOF_S, HouseTrust
from sabot_session.errors import CertificateRefused, NotAuthenticated, PersonUnknown, WrongPin
from sabot_session.people import Presented
from sabot_session.rows import Authentication
from sabot_table.procedure import TableRole


def test_a_certificate_lets_its_person_act_in_its_roles(harbour: Harbour) -> None:
    who = harbour.people.authenticate(Presented(PIN, certificate=harbour.shown()), NOW)
    assert (who.person, who.how) == ("dana", Authentication.CERTIFICATE_AND_PIN)
    assert who.roles == {TableRole.FLOOR}, "the register also knows her as a dealer, the certificate does not"
    assert who.key is None, "the device does not know certificates"


def test_the_pin_is_needed_too_and_the_person_must_be_here(harbour: Harbour) -> None:
    with pytest.raises(WrongPin):
        harbour.people.authenticate(Presented("111222", certificate=harbour.shown()), NOW)
    with pytest.raises(NotAuthenticated, match="of different people"):
        harbour.people.authenticate(Presented(PIN, person="flo", certificate=harbour.shown()), NOW)
    harbour.people.remove("dana", "flo", NOW)
    with pytest.raises(PersonUnknown):
        harbour.people.authenticate(Presented(PIN, certificate=harbour.shown(at_s=NOW + 60)), NOW + 60)


def test_a_role_that_the_person_does_not_have_here(harbour: Harbour) -> None:
    shown = harbour.shown(harbour.certificate(("service",)))
    with pytest.raises(CertificateRefused, match="enrolled for none of the certificate's roles"):
        harbour.people.authenticate(Presented(PIN, certificate=shown), NOW)


def test_revocations_rise_and_never_shrink(harbour: Harbour) -> None:
    made = harbour.certificate()
    before = harbour.office.revocations()
    assert harbour.office.revoke("dana") == [made]
    newest = harbour.office.revocations()
    assert harbour.trust.add_revocations(newest) == 1
    with pytest.raises(CertificateRevoked, match="has revoked the certificate of dana"):
        harbour.trust.check(made, NOW)
    with pytest.raises(OldStatement, match="revocations 0 are older than number 1"):
        harbour.trust.add_revocations(before)
    key = harbour.office.key
    fewer = statements.sign("revocations", key, house=key.public, number=2, revoked=[])
    with pytest.raises(OldStatement, match="revocations 2 leave out 1 that are here"):
        harbour.trust.add_revocations(fewer)
    other = statements.sign("revocations", key, house=key.public, number=1, revoked=[made.id, "ab" * 16])
    with pytest.raises(OldStatement, match="two lists of revocations with number 1"):
        harbour.trust.add_revocations(other)
    assert harbour.trust.revocations == 1
    with pytest.raises(OfficeUnusable, match="no good certificate is of 'dana'"):
        harbour.office.revoke("dana")


def test_a_new_house_key_is_named_by_the_old_one(harbour: Harbour) -> None:
    old = harbour.certificate()
    until_s = NOW + 1000
    made = harbour.office.rotate(draw_signing_key, until_s, harbour.folder / "rotation.json")
    new = harbour.certificate()
    with pytest.raises(OtherHouse):
        harbour.trust.check(new, NOW)
    harbour.trust.add_rotation(made)
    harbour.trust.check(new, NOW)
    harbour.trust.check(old, until_s)
    with pytest.raises(CertificateExpired, match="old key"):
        harbour.trust.check(old, until_s + 1)
    assert harbour.trust.add_revocations(harbour.office.revocations()) == 1
    with pytest.raises(OtherHouse, match="this rotation is not signed by the house's key"):
        harbour.trust.add_rotation(made)
    reopened = office.Office(harbour.office.folder, harbour.office.key)
    assert [each.certificate.id for each in reopened.issued()] == [old.id, new.id]


def test_trusting_another_house_ends_the_first(harbour: Harbour) -> None:
    made = harbour.certificate()
    other = office.begin(harbour.folder / "other", "Other", draw_signing_key)
    harbour.trust.trust(other.about, "MAIN")
    with pytest.raises(OtherHouse, match="the certificate is of another house"):
        harbour.trust.check(made, NOW)
    with pytest.raises(BadStatement, match="not signed by its own key"):
        harbour.trust.trust(changed(other.about, key=harbour.office.key.public), "MAIN")
    with HouseTrust(None) as empty, pytest.raises(NoHouse):
        empty.check(made, NOW)


def test_what_a_table_knows_is_kept_and_private(harbour: Harbour) -> None:
    made = harbour.certificate()
    harbour.office.revoke("dana")
    harbour.trust.add_revocations(harbour.office.revocations())
    path = harbour.people.house
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    with HouseTrust(path) as again, pytest.raises(CertificateRevoked):
        again.check(made, NOW)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"kind": "certificate"}', "x" * 1_000_001])
def test_a_file_that_is_no_statement_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.cert"
    path.write_text(text)
    with pytest.raises(BadStatement):
        statements.read_file(path, statements.CERTIFICATE)


def test_values_that_cannot_be_are_refused_by_the_office(harbour: Harbour) -> None:
    public, out = harbour.key().public, harbour.folder / "x.cert"
    for person, roles, site, key in (
        ("../dana", ["floor"], "MAIN", public),
        ("dana", ["boss"], "MAIN", public),
        ("dana", [], "MAIN", public),
        ("dana", ["floor"], " ", public),
        ("dana", ["floor"], "MAIN", "00"),
    ):
        with pytest.raises(OfficeUnusable):
            harbour.office.sign(person, roles, site, NOW, key, out)
    assert not out.exists()
    assert harbour.office.issued() == []
    with pytest.raises(OfficeUnusable, match="there is a house key already"):
        office.begin(harbour.office.folder, "Again", draw_signing_key)
    with pytest.raises(OfficeUnusable, match="not the house's"):
        office.Office(harbour.office.folder, harbour.key())


def test_a_proof_is_for_one_certificate_one_site_one_time(harbour: Harbour) -> None:
    made = harbour.certificate()
    far = proof.prove(made, harbour.key(), NOW - PROOF_S - 1)
    with pytest.raises(BadProof, match="away from this computer's time"):
        harbour.trust.prove(far, NOW)
    other = harbour.shown(harbour.certificate(("dealer",)))
    with pytest.raises(BadProof, match="for another certificate or another site"):
        harbour.trust.prove(ShownCertificate(made, other.proof), NOW)
    harbour.trust.prove(harbour.shown(made), NOW)
    with pytest.raises(WrongSite, match="for NORTH, and this is MAIN"):
        harbour.trust.check(harbour.certificate(site="NORTH"), NOW)
    with pytest.raises(CertificateExpired, match="dana is no longer good"):
        harbour.trust.check(made, NOW + YEAR_S + 1)
    harbour.trust.check(made, NOW + YEAR_S)
