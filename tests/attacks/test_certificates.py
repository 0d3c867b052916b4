"""Somebody shows a certificate of the house that is not theirs, not good any more, or not genuine."""

import pytest
from tests.house.harbour import NOW, PIN, YEAR_S, Harbour, changed

from sabot_evidence.signing_key import draw_signing_key
from sabot_house import office, proof, statements
from sabot_house.errors import OtherHouse
from sabot_house.proof import ShownCertificate
from sabot_session.errors import CertificateRefused
from sabot_session.people import Presented


def refused(harbour: Harbour, shown: ShownCertificate, at_s: int = NOW) -> str:
    """Why the register refuses."""
    with pytest.raises(CertificateRefused) as told:
        harbour.people.authenticate(Presented(PIN, certificate=shown), at_s)
    return str(told.value)


def test_a_forged_certificate(harbour: Harbour) -> None:
    """A dealer makes herself the floor, or lives longer, or makes a house of her own."""
    made = harbour.certificate(("dealer",))
    forged = "the certificate is forged or damaged: the house's signature does not fit"
    for values in ({"roles": ["floor"]}, {"not_after_s": NOW + 9 * YEAR_S}, {"site": "NORTH"}):
        assert refused(harbour, harbour.shown(changed(made, **values))) == forged
    own = office.begin(harbour.folder / "own", "Harbour", draw_signing_key)
    mine = own.sign("dana", ["floor"], "MAIN", NOW + 1, harbour.key().public, harbour.folder / "own.cert")
    assert refused(harbour, harbour.shown(mine)) == (
        f"the certificate is of another house, {own.key.public[:16]}"
    )
    assert refused(harbour, harbour.shown(changed(mine, house=harbour.office.key.public))) == forged


def test_an_expired_certificate_also_with_the_clock_set_back(harbour: Harbour) -> None:
    """Whoever has the table PC sets its clock back to a day on which the certificate was good."""
    made = harbour.certificate(until_s=NOW + 1000)
    longer = harbour.certificate()
    words = "the certificate of dana is no longer good"
    assert refused(harbour, harbour.shown(made, NOW + 1001), NOW + 1001) == words
    harbour.people.authenticate(Presented(PIN, certificate=harbour.shown(longer, NOW + 2000)), NOW + 2000)
    assert refused(harbour, harbour.shown(made, NOW), NOW) == words


def test_a_revoked_certificate(harbour: Harbour) -> None:
    """Somebody who has left the house still has the key file and the certificate."""
    made = harbour.certificate()
    harbour.office.revoke("dana")
    harbour.trust.add_revocations(harbour.office.revocations())
    assert refused(harbour, harbour.shown(made)) == "the house has revoked the certificate of dana"


def test_a_certificate_of_another_role_and_another_site(harbour: Harbour) -> None:
    """A person of the house acts in a role that this table did not enrol, or in another casino."""
    service = harbour.shown(harbour.certificate(("service",)))
    assert refused(harbour, service) == "dana is enrolled for none of the certificate's roles"
    north = harbour.shown(harbour.certificate(site="NORTH"))
    assert refused(harbour, north) == "the certificate is for NORTH, and this is MAIN"


def test_a_replayed_certificate(harbour: Harbour) -> None:
    """A program on the PC keeps what Dana showed, and shows it again; or it has the certificate alone."""
    shown = harbour.shown()
    harbour.people.authenticate(Presented(PIN, certificate=shown), NOW)
    assert refused(harbour, shown, NOW + 1) == "this proof was used before: somebody replays it"
    stranger = proof.prove(shown.certificate, harbour.key("eve"), NOW)
    assert refused(harbour, stranger) == "the proof is not signed by the certificate's key"


def test_a_forged_rotation_and_forged_revocations(harbour: Harbour) -> None:
    """Whoever can name the house's next key owns its tables; whoever can revoke can stop them."""
    key = harbour.office.key.public
    eve = harbour.key("eve")
    about = {"from": key, "number": 1, "old_until_s": 0, "to": eve.public}
    for made in (statements.sign("rotation", eve, **about), changed(harbour.office.about, **about)):
        with pytest.raises(OtherHouse) as told:
            harbour.trust.add_rotation(made)
        assert str(told.value) == f"this rotation is not signed by the house's key, {key[:16]}"
    assert harbour.trust.key == key
    listed = statements.sign("revocations", eve, house=key, number=9, revoked=[harbour.certificate().id])
    with pytest.raises(OtherHouse) as told:
        harbour.trust.add_revocations(listed)
    assert str(told.value) == f"these revocations are not signed by the house's key, {key[:16]}"
    assert harbour.trust.revocations == 0
    harbour.people.authenticate(Presented(PIN, certificate=harbour.shown()), NOW)
