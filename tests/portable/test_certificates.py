"""Certificates at the device: shown, proved for one request, revoked; and all that does not count."""

from hashlib import sha256

from certified import (
    DEALER,
    FLOOR,
    HOUSE,
    NOW_S,
    OTHER_HOUSE,
    PART,
    SERVICE,
    SITE,
    THIEF,
    UNTIL_S,
    House,
    Paper,
    refusal,
)
from pair import BY_FLOOR, BY_SERVICE, FLOOR_PERSON, other
from world import HOST_ID, SERIAL

from sabot_protocol.codec import CODEC
from sabot_protocol.device_certificates import AFTER_WRONG_MS, GRANT_S
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.host_protocol import OBSERVER
from sabot_protocol.house_lines import revocation_parts
from sabot_protocol.schema import MAX_REVOKED
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import LAST_COMMAND, OBSERVERS

PAPER = Paper()
NUMBER = int.from_bytes(PAPER.id[:4], "little")
OK = ("ok", ())
ELEVATED = ("ok", (FLOOR, NUMBER))
PLAY = "play_one_deck"


def shown(**others):
    """A pair whose person has shown the certificate."""
    pair = House(**others)
    assert pair.show(PAPER) == OK
    return pair


def ids(count, *ours):
    """Ids of certificates in the order of a list."""
    others = [sha256(b"%d" % each).digest()[:16] for each in range(count - len(ours))]
    return b"".join(sorted(others + list(ours)))


def test_a_certificate_authorises_one_request():
    pair = shown()
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
    number = pair.host.next_number
    assert pair.ask(PLAY, 1) == OK
    assert pair.ask(PLAY, 1)[0] == "wrong_role"
    assert pair.shoe.done == [(PLAY, (1,))]
    caller = pair.shoe.callers[0]
    assert (caller.role, caller.person, caller.is_owner) == (FLOOR, NUMBER, True)
    play = CODEC.named(PLAY).id
    assert pair.events("certificate_used") == [(HOST_ID, PAPER.id, "dana", FLOOR, play, number)]
    assert pair.events("elevation_used") == []


def test_the_certificate_is_shown_once_and_each_request_is_proved():
    pair = shown()
    for _ in range(3):
        assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
        assert pair.ask(PLAY, 1) == OK
    assert pair.show(PAPER) == OK
    pair.connect()
    assert pair.elevate(PAPER, PLAY, 1, number=1) == ELEVATED  # of a new session, on the same cable
    assert pair.ask(PLAY, 1) == OK


def test_slots_go_on_beside_certificates():
    pair = shown()
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
    assert pair.ask("mark_out_of_order", by=BY_FLOOR) == OK
    assert pair.ask(PLAY, 1) == OK
    assert [each.person for each in pair.shoe.callers] == [FLOOR_PERSON, NUMBER]


def test_it_authorises_this_request_and_no_other():
    pair = shown()
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
    assert pair.ask(PLAY, 0)[0] == "wrong_role"
    assert pair.ask("remove_deck", 1, 1)[0] == "wrong_role"
    assert pair.shoe.done == []
    assert pair.ask(PLAY, 1) == OK


def test_a_query_is_authorised_and_reported_too():
    pair = shown()
    second = other(pair, mode=OBSERVER)
    second.proofs = 0
    assert refusal(second.ask("certificate", *PAPER.shown())) == OK
    proof = House.proof(second, PAPER, "evict_owner", HOST_ID)
    assert refusal(second.ask("elevate", *proof)) == ELEVATED
    assert second.ask("evict_owner", HOST_ID) == OK
    used = pair.events("certificate_used")[0]
    assert used[:5] == (b"OTHER-PC", PAPER.id, "dana", FLOOR, CODEC.named("evict_owner").id)
    assert used[5] > LAST_COMMAND
    assert pair.events("owner_evicted") == [(HOST_ID, b"OTHER-PC", NUMBER)]


def test_a_request_with_a_secret_is_proved_by_what_it_says():
    paper = Paper(roles=1 << SERVICE)
    pair = House()
    assert pair.show(paper) == OK
    key = slot_key(b"a new person's key of 32 bytes..", SERIAL, 7)
    for other_key in (bytes(31) + b"1", key):
        assert pair.elevate(paper, "set_key", 7, FLOOR, 99, key, role=SERVICE)[0] == "ok"
        said = pair.ask("set_key", 7, FLOOR, 99, other_key)
        assert said[0] == ("ok" if other_key is key else "wrong_role")
    assert pair.device.keys.get(7) == key


def test_one_certificate_has_several_roles_and_each_request_takes_one():
    paper = Paper(roles=1 << FLOOR | 1 << DEALER | 1 << SERVICE)
    pair = House()
    assert pair.show(paper) == OK
    assert pair.elevate(paper, "mark_out_of_order", role=SERVICE)[1][0] == SERVICE
    assert pair.ask("mark_out_of_order") == OK
    assert pair.elevate(paper, PLAY, 1, role=FLOOR)[1][0] == FLOOR
    assert pair.ask(PLAY, 1) == OK
    assert [each.role for each in pair.shoe.callers] == [SERVICE, FLOOR]


# -- what does not count ---------------------------------------------------------------------------


def test_a_certificate_that_was_changed_is_forged():
    for index, value in ((0, THIEF.public), (1, UNTIL_S + 1), (2, "rose"), (3, 1 << SERVICE), (5, bytes(64))):
        pair = House()
        values = list(PAPER.shown())
        values[index] = value
        assert refusal(pair.ask("certificate", *values)) == "forged", index
        assert pair.elevate(PAPER, PLAY, 1) == ("too_soon", (AFTER_WRONG_MS,))
        pair.wait(AFTER_WRONG_MS)
        assert pair.elevate(PAPER, PLAY, 1) == "not_shown"
        assert [each[1:] for each in pair.events("proofs_refused")] == [(1, 1)]


def test_names_and_roles_that_no_house_signs():
    for paper in (Paper(person='d"'), Paper(person=" d"), Paper(roles=1 << FLOOR | 1), Paper(roles=1 << 5)):
        assert House().show(paper) == "forged"


def test_certificates_of_another_house_another_site_and_another_time():
    for paper, reason in (
        (Paper(house=OTHER_HOUSE), "forged"),
        (Paper(site="CLUB"), "wrong_site"),
        (Paper(until_s=NOW_S - 1), "expired"),
    ):
        pair = House()
        assert pair.show(paper) == reason
        assert pair.ask(PLAY, 1)[0] == "wrong_role"


def test_a_refused_certificate_leaves_the_one_before():
    pair = shown()
    assert pair.show(Paper(site="CLUB")) == "wrong_site"
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED


def test_a_device_without_a_house_a_time_or_a_list_takes_none():
    pair = House()
    pair.device.house.key = b""
    assert pair.show(PAPER) == "no_house"
    pair = House()
    pair.device.clear_clock()
    assert pair.show(PAPER) == "time_unknown"
    pair = House(known=False)
    assert pair.show(PAPER) == "no_revocations"


def test_it_ends_with_its_last_second():
    pair = shown()
    pair.ask("set_clock", UNTIL_S, 0)
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
    assert pair.ask(PLAY, 1) == OK
    pair.ask("set_clock", UNTIL_S + 1, 0)
    assert pair.elevate(PAPER, PLAY, 1) == "expired"
    assert pair.show(PAPER) == "expired"


def test_a_clock_set_back_makes_nothing_good_again():
    pair = shown()
    pair.ask("set_clock", UNTIL_S + 1, 0)
    pair.ask("set_clock", NOW_S, 0)
    assert pair.elevate(PAPER, PLAY, 1) == "expired"
    assert pair.ask("set_clock", NOW_S + 1, 0, by=BY_SERVICE) == OK  # service corrects it
    assert pair.elevate(PAPER, PLAY, 1) == ELEVATED


def test_a_role_that_it_does_not_have_or_that_may_not_ask():
    pair = shown()
    assert pair.elevate(PAPER, PLAY, 1, role=SERVICE) == "role_missing"
    assert pair.elevate(PAPER, PLAY, 1, role=255) == "role_missing"
    assert pair.elevate(PAPER, "remove_key", 3) == "role_missing"
    assert pair.ask("elevate", 2, FLOOR, 0xFE, 9, bytes(32), bytes(64))[1] == (9,)


def test_proofs_for_something_else():
    pair = shown()
    wrong = pair.proof(PAPER, PLAY, 1)
    for proof in (
        pair.proof(PAPER, PLAY, 1, key=THIEF),
        pair.proof(PAPER, PLAY, 1, transcript=bytes(32)),
        wrong[:2] + (CODEC.named("locate").id,) + wrong[3:],
        wrong[:3] + (wrong[3] + 1,) + wrong[4:],
        wrong[:4] + (sha256(b"\0").digest(), wrong[5]),
        wrong[:5] + (bytes(16),),
    ):
        assert refusal(pair.ask("elevate", *proof)) == "wrong_proof"
        assert pair.ask(PLAY, 1)[0] == "wrong_role"
        assert refusal(pair.ask("elevate", *wrong))[0] == "too_soon"
        pair.wait(AFTER_WRONG_MS)
    assert refusal(pair.ask("elevate", *wrong)) == ELEVATED


def test_a_proof_counts_once_and_in_its_session_only():
    pair = shown()
    proof = pair.proof(PAPER, PLAY, 1)
    assert refusal(pair.ask("elevate", *proof)) == ELEVATED
    assert pair.ask(PLAY, 1) == OK
    assert refusal(pair.ask("elevate", *proof)) == "shown_before"
    later = pair.proof(PAPER, PLAY, 1, number=9)
    assert refusal(pair.ask("elevate", *later)) == ELEVATED
    assert pair.elevate(PAPER, PLAY, 1, number=8) == "shown_before"
    pair.connect()
    assert refusal(pair.ask("elevate", *proof)) == "wrong_proof"
    assert pair.ask(PLAY, 1)[0] == "wrong_role"


def test_an_authority_ends_with_its_session_its_time_its_owner_and_the_next_one():
    def end_time(pair):
        pair.wait(1000 * GRANT_S, 1000)

    def next_one(pair):
        assert pair.elevate(PAPER, "mark_out_of_order") == ELEVATED

    def other_owner(pair):
        pair.device.set_owner(None)
        pair.device.set_owner(pair.port)

    def newer_list(pair):
        assert pair.hand_over(2, b"")[0] == "ok"

    for what in (lambda pair: pair.connect(), end_time, next_one, other_owner, newer_list):
        pair = shown()
        assert pair.elevate(PAPER, PLAY, 1) == ELEVATED
        what(pair)
        assert pair.ask(PLAY, 1)[0] == "wrong_role"
        assert pair.shoe.done == []


def test_observers_show_nothing():
    pair = House()
    pair.device.keys.set(OBSERVERS, b"o" * 32)
    observer = other(pair, key=b"o" * 32, slot=OBSERVERS, mode=OBSERVER)
    for name, values in (
        ("certificate", PAPER.shown()),
        ("elevate", pair.proof(PAPER, PLAY, 1)),
        ("revocations", (2, 0, 0, b"", b"")),
    ):
        assert observer.ask(name, *values)[0] == "wrong_role"


# -- revocations -----------------------------------------------------------------------------------


def test_a_revoked_certificate_is_refused_from_then_on():
    pair = shown()
    assert pair.hand_over(2, ids(20, PAPER.id)) == ("ok", (1, 2, 0))
    assert pair.elevate(PAPER, PLAY, 1) == "revoked"
    assert pair.show(PAPER) == "revoked"
    assert pair.show(Paper(person="rose")) == OK
    assert pair.events("revocations_taken")[-1] == (2, 20, HOST_ID)


def test_an_id_counts_only_at_its_place():
    """Bytes of two neighbours that happen to be an id revoke nobody."""
    pair = House()
    assert pair.hand_over(2, bytes(8) + PAPER.id[:8] + PAPER.id[8:] + b"\xff" * 8)[0] == "ok"
    assert pair.show(PAPER) == OK


def test_the_longest_list_is_kept_and_a_longer_one_has_no_message():
    pair = House()
    assert pair.hand_over(2, ids(MAX_REVOKED, PAPER.id)) == ("ok", (1, 2, 0))
    assert pair.show(PAPER) == "revoked"
    assert pair.ask_packed(CODEC.named("revocations").id, b"\x03\0\0\0\xfb\0\0\0\0\0")[0] == "bad_field"


def test_a_list_outlives_power_and_an_older_one_is_refused():
    pair = House()
    assert pair.hand_over(7, ids(3, PAPER.id))[0] == "ok"
    pair.boot()
    pair.device.house.write(HOUSE.public, SITE, 0)
    pair.connect()
    pair.ask("set_clock", NOW_S, 0)
    assert pair.show(PAPER) == "revoked"
    assert pair.hand_over(6, b"") == "old_list"
    assert pair.show(PAPER) == "revoked"
    assert pair.hand_over(7, b"") == ("ok", (1, 7, 0))  # it is there: nothing is taken
    assert pair.show(PAPER) == "revoked"


def test_lists_that_are_not_the_houses():
    pair = House()
    for number, listed, others in (
        (2, b"", {"house": OTHER_HOUSE}),
        (2, ids(3), {"signature": HOUSE.sign(b"something else")}),
        (3, ids(3), {"signature": bytes(64)}),
    ):
        assert pair.hand_over(number, listed, **others) == "bad_list"
        assert pair.hand_over(2, b"")[0] == "too_soon"
        pair.wait(AFTER_WRONG_MS)
    assert pair.hand_over(2, b"") == ("ok", (1, 2, 0))


def test_parts_that_do_not_join():
    listed = ids(2 * PART)
    first = (2, 2 * PART, 0, listed[: 16 * PART], b"")
    last = (2, 2 * PART, 2 * PART, b"", bytes(64))
    for bad in (
        (3, 2 * PART, PART, listed[16 * PART :], b""),  # of another list
        (2, 2 * PART, PART - 1, listed[16 * PART :], b""),  # one twice
        (2, 2 * PART, PART + 1, listed[: 16 * (PART - 1)], b""),  # one left out
        (2, 2 * PART, PART, listed[:15], b""),  # no whole id
        last,  # too early
        (2, 2 * PART, PART, listed[:16], bytes(64)),  # ids beside a signature
    ):
        pair = House()
        assert pair.ask("revocations", *first) == ("ok", (1, 1, PART))
        assert refusal(pair.ask("revocations", *bad)) == "bad_list", bad
        assert pair.events("revocations_taken") == [(1, 0, HOST_ID)]
    assert refusal(House().ask("revocations", *last)) == "bad_list"
    pair = House()
    pair.ask("revocations", *first)
    pair.connect()
    assert refusal(pair.ask("revocations", 2, 2 * PART, PART, listed[16 * PART :], b"")) == "bad_list"


def test_no_list_is_taken_while_something_moves():
    pair = House()
    pair.shoe.idle = lambda: False
    number = pair.begin("revocations", 2, 0, 0, b"", b"")
    assert pair.port.credentials.desk._list is None
    pair.shoe.idle = lambda: True
    pair.wait(100)
    assert pair.answer(number) == ("ok", (1, 1, 0))


def test_a_newer_list_that_came_meanwhile_stays():
    pair = House()
    assert pair.ask("revocations", 2, 0, 0, b"", b"")[0] == "ok"
    signature = HOUSE.sign(b"".join(revocation_parts(HOUSE.public, 2, b"")))
    number = pair.begin("revocations", 2, 0, 0, b"", signature)
    pair.memory.save("revocations", HOUSE.public + (3).to_bytes(4, "little"))  # from another cable
    pair.settle()
    assert refusal(pair.answer(number)) == "old_list"
    assert pair.hand_over(2, b"") == "old_list"


def test_a_list_of_a_house_that_is_no_longer_the_devices():
    pair = House()
    assert pair.ask("revocations", 2, 0, 0, b"", b"")[0] == "ok"
    signature = HOUSE.sign(b"".join(revocation_parts(HOUSE.public, 2, b"")))
    number = pair.begin("revocations", 2, 0, 0, b"", signature)
    pair.device.house.write(OTHER_HOUSE.public, SITE, 0)
    pair.settle()
    assert refusal(pair.answer(number)) == "no_house"
    assert len(pair.events("revocations_taken")) == 1


def test_a_new_house_needs_a_list_of_its_own_and_begins_anew():
    pair = House()
    assert pair.hand_over(7, b"")[0] == "ok"
    pair.device.house.write(OTHER_HOUSE.public, SITE, 0)
    assert pair.show(PAPER) == "forged"
    pair.wait(AFTER_WRONG_MS)
    paper = Paper(house=OTHER_HOUSE)
    assert pair.show(paper) == "no_revocations"
    assert pair.hand_over(2, b"", house=OTHER_HOUSE) == ("ok", (1, 2, 0))
    assert pair.show(paper) == OK


def test_a_device_that_moves_to_another_site_takes_no_certificate_of_the_one_before():
    pair = shown()
    pair.device.house.write(HOUSE.public, "CLUB", 0)
    assert refusal(pair.elevate(PAPER, PLAY, 1)) == "wrong_site"
    assert pair.ask(PLAY, 1)[0] == "wrong_role"


def test_memory_that_fails_leaves_the_list_that_was_there():
    pair = House()
    memory, save = pair.memory, pair.memory.save

    def fails(name, data):
        if name == "revocations":
            raise MemoryFailed("dead")
        save(name, data)

    memory.save = fails
    assert pair.hand_over(2, ids(3, PAPER.id)) == ("memory_failed", ())
    memory.save = save
    assert pair.show(PAPER) == OK
    memory.save("revocations", b"short")
    assert pair.elevate(PAPER, PLAY, 1) == "no_revocations"


# -- time and cables -------------------------------------------------------------------------------


def test_nothing_is_checked_while_something_moves():
    pair = House()
    pair.shoe.idle = lambda: False
    number = pair.begin("certificate", *PAPER.shown())
    pair.settle()
    assert not pair.device.checking()
    assert pair.ask("status")[0] == "ok"
    pair.shoe.idle = lambda: True
    pair.settle()
    assert pair.answer(number) == OK


def test_one_signature_a_cable_and_the_owners_first():
    """Five cables that show forged certificates again and again."""
    pair = House()
    forged = PAPER.shown()[:-1] + (bytes(64),)
    strangers = [other(pair, host_id=b"HOST-%03d" % each, mode=OBSERVER) for each in range(5)]
    for each in strangers:
        each.begin = lambda *values, each=each: House.begin(each, *values)
        each.begin("certificate", *forged)
        each.begin("certificate", *forged)
        each.heard += each.host.take_notifications()
    assert len(pair.device._checks) == 5
    number = pair.begin("certificate", *PAPER.shown())
    steps = 0
    while pair.device._checks[-1][0] is not pair.port:
        pair.device.work()
    while pair.port in [each[0] for each in pair.device._checks]:
        pair.device.work()
        steps += 1
    assert steps < 400
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    pair.heard += pair.host.take_notifications()
    assert pair.answer(number) == OK
    assert len(pair.device._checks) == 5


def test_a_cable_that_ends_takes_its_signature_along():
    pair = House()
    number = pair.begin("certificate", *PAPER.shown())
    assert pair.device.checking()
    pair.port.close()
    assert not pair.device.checking()
    pair.connect()  # the host asks again
    assert pair.answer(number) == OK
    number = pair.begin("elevate", *pair.proof(PAPER, PLAY, 1))
    pair.connect()  # and does not ask again for what was for that session
    assert not pair.device.checking()
    assert pair.ask(PLAY, 1)[0] == "wrong_role"


def test_what_comes_while_a_signature_is_checked_counts_at_its_end():
    def revoke(pair):
        record = HOUSE.public + (9).to_bytes(4, "little") + PAPER.id
        pair.memory.save("revocations", record)

    def expire(pair):
        pair.device.set_clock(UNTIL_S + 1, 0)

    def rebind(pair):
        pair.device.house.write(OTHER_HOUSE.public, SITE, 0)

    for what, reason in ((revoke, "revoked"), (expire, "expired"), (rebind, "no_house")):
        for name in ("certificate", "elevate"):
            pair = shown()
            values = PAPER.shown() if name == "certificate" else pair.proof(PAPER, PLAY, 1)
            number = pair.begin(name, *values)
            assert pair.device.checking()
            what(pair)
            pair.settle()
            assert refusal(pair.answer(number)) == reason, (name, reason)
            assert pair.ask(PLAY, 1)[0] == "wrong_role"


