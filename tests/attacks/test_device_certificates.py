"""Somebody who has the table PC, with the device's key, and a certificate that is not good enough.

The device itself checks certificates since these tests exist. Before, what it guards took a slot's key, and a
certificate was checked by the table PC only: whoever had changed that program passed over the check.
"""

from certified import FLOOR, HOUSE, NOW_S, OTHER_HOUSE, SERVICE, THIEF, UNTIL_S, House, Paper, refusal
from tests.attacks.two_hosts import beside
from world import KEY

from sabot_protocol.device_certificates import AFTER_WRONG_MS
from sabot_protocol.host_protocol import OBSERVER

PLAY = "play_one_deck"


def nothing_done(pair: House) -> bool:
    """The device has taken no command of the floor."""
    return bool(pair.ask(PLAY, 1)[0] == "wrong_role" and not pair.shoe.done)


def test_the_pc_makes_a_certificate_of_its_own() -> None:
    """A changed program skipped the table PC's check; now it signs with its own house key, or edits."""
    pair = House()
    mine = Paper(key=THIEF, house=OTHER_HOUSE)
    assert pair.show(mine) == "forged"
    pair.wait(AFTER_WRONG_MS)
    genuine = Paper(roles=1 << 2)
    for fields in (
        (THIEF.public, *genuine.fields[1:]),
        (*genuine.fields[:3], 1 << FLOOR, genuine.fields[4]),
        (genuine.fields[0], 0xFFFFFFFF, *genuine.fields[2:]),
    ):
        assert refusal(pair.ask("certificate", *fields, genuine.signature)) == "forged"
        pair.wait(AFTER_WRONG_MS)
    assert pair.elevate(mine, PLAY, 1) == "not_shown"
    assert nothing_done(pair)


def test_a_genuine_certificate_without_its_key() -> None:
    """Certificates are no secret: each table PC that has seen one has a copy."""
    pair = House()
    paper = Paper()
    assert pair.show(paper) == ("ok", ())
    assert pair.elevate(paper, PLAY, 1, key=THIEF) == "wrong_proof"
    assert nothing_done(pair)


def test_an_ended_certificate_and_the_clock_set_back() -> None:
    """The PC sets the device's clock: back to a day on which the certificate was good."""
    pair = House()
    paper = Paper()
    pair.ask("set_clock", UNTIL_S + 1, 0)
    assert pair.show(paper) == "expired"
    assert pair.ask("set_clock", NOW_S, 0)[0] == "ok"
    assert pair.show(paper) == "expired"
    assert nothing_done(pair)


def test_a_revoked_certificate_and_the_list_of_last_week() -> None:
    """The PC keeps back the newest list, or hands over the older one again, also after a restart."""
    pair = House()
    paper = Paper()
    assert pair.show(paper) == ("ok", ())
    assert pair.hand_over(8, paper.id)[0] == "ok"
    assert pair.elevate(paper, PLAY, 1) == "revoked"
    assert pair.hand_over(7, b"") == "old_list"
    pair.boot()
    pair.device.house.write(HOUSE.public, "MAIN", 0)
    pair.connect()
    pair.ask("set_clock", NOW_S, 0)
    assert pair.hand_over(7, b"") == "old_list"
    assert pair.hand_over(9, b"", house=OTHER_HOUSE) == "bad_list"
    pair.wait(AFTER_WRONG_MS)
    assert pair.show(paper) == "revoked"
    assert nothing_done(pair)


def test_a_certificate_of_another_role_and_another_site() -> None:
    """A person of the house acts in another role, or in another casino of the same house."""
    pair = House()
    service = Paper(roles=1 << SERVICE)
    assert pair.show(service) == ("ok", ())
    assert pair.elevate(service, PLAY, 1, role=FLOOR) == "role_missing"
    assert pair.elevate(service, PLAY, 1, role=SERVICE) == "role_missing"
    assert pair.show(Paper(site="CLUB")) == "wrong_site"
    assert nothing_done(pair)


def test_a_proof_shown_again_or_for_another_act() -> None:
    """The PC keeps what a person signed, and shows it again, in the next session, or with another body."""
    pair = House()
    paper = Paper()
    assert pair.show(paper) == ("ok", ())
    proof = pair.proof(paper, PLAY, 0)
    assert refusal(pair.ask("elevate", *proof))[0] == "ok"
    assert pair.ask(PLAY, 1)[0] == "wrong_role"  # the body was exchanged after it was signed
    assert pair.ask("remove_deck", 1, 1)[0] == "wrong_role"
    assert pair.ask(PLAY, 0)[0] == "ok"
    assert pair.ask(PLAY, 0)[0] == "wrong_role"
    assert refusal(pair.ask("elevate", *proof)) == "shown_before"
    pair.connect()
    assert refusal(pair.ask("elevate", *proof)) == "wrong_proof"
    assert pair.ask(PLAY, 0)[0] == "wrong_role"
    assert pair.shoe.done == [(PLAY, (0,))]


def test_a_flood_of_forged_certificates_holds_up_nobody() -> None:
    """A second host with the device's key has signatures checked for seconds, one after the other.

    One check at a time for the whole device would have refused the owner's person.
    """
    pair = House()
    forged = (*Paper().shown()[:-1], bytes(64))
    floods = [beside(pair, KEY, b"FLOOD-%02d" % each, mode=OBSERVER) for each in range(4)]
    for flood in floods:
        for _ in range(3):
            House.begin(flood, "certificate", *forged)  # type: ignore[arg-type]
    assert len(pair.device._checks) == len(floods)
    assert pair.ask("status")[0] == "ok"
    paper = Paper()
    assert pair.show(paper) == ("ok", ())
    assert pair.elevate(paper, PLAY, 1)[0] == "ok"
    assert pair.ask(PLAY, 1)[0] == "ok"
    assert [each[1:] for each in pair.events("proofs_refused")] == [(1, 1)]  # and the log is not full of them
