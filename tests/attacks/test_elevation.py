"""Attacks with a person's proof: shown again, stretched, used for something else."""

from hashlib import sha256

import pytest
from pair import BY_FLOOR, FLOOR_KEY, FLOOR_SLOT, Pair
from tests.attacks.two_hosts import beside
from world import HOST_ID, KEY, SERIAL

from sabot_protocol.codec import CODEC, MessageCodec
from sabot_protocol.session import elevation_proof, slot_key

VOID = CODEC.named("play_one_deck")
EVICT = CODEC.named("evict_owner")


def _proof(pair: Pair, number: int, body: bytes, message: MessageCodec = VOID) -> tuple[object, ...]:
    """What the floor shows for one request of this session."""
    hash, key = sha256(body).digest(), slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT)
    proof = elevation_proof(key, pair.host.transcript, 1, FLOOR_SLOT, message.id, number, hash)
    return 1, FLOOR_SLOT, message.id, number, hash, proof


def test_a_proof_is_not_accepted_again() -> None:
    """A proof for 1 s was accepted again for 3,600 s: it covered neither the time nor the commands."""
    pair = Pair().people().connect()
    shown = _proof(pair, pair.host.next_number, VOID.pack((1,)))
    assert pair.ask("elevate", *shown)[0] == "ok"
    assert pair.ask("play_one_deck", 1)[0] == "ok"
    assert pair.ask("elevate", *shown)[0] == "bad_credential"
    assert pair.ask("play_one_deck", 1)[0] == "wrong_role"
    assert len(pair.shoe.done) == 1


def test_the_floors_key_for_one_act_does_not_serve_for_another() -> None:
    """For an hour after an elevation the table's program could give any command of that role."""
    pair = Pair().people().connect()
    shown = _proof(pair, pair.host.next_number, VOID.pack((1,)))
    assert pair.ask("elevate", *shown)[0] == "ok"
    assert pair.ask("play_one_deck", 0)[0] == "wrong_role"  # another value
    assert pair.ask("play_one_deck", 1)[0] == "wrong_role"  # another number
    assert pair.ask("remove_deck", 1, 1)[0] == "wrong_role"
    assert pair.shoe.done == []


def test_a_proof_of_one_session_is_nothing_in_the_next() -> None:
    """It held before as well; a proof that is bound to more must not lose it."""
    pair = Pair().people().connect()
    number = pair.host.next_number
    shown = _proof(pair, number, VOID.pack((1,)))
    pair.connect()
    assert pair.ask("elevate", *shown)[0] == "bad_credential"
    assert pair.ask("play_one_deck", 1)[0] == "wrong_role"


def test_an_authorised_command_that_is_cut_off_happens_once() -> None:
    """An elevation ended with its session, so a program had to keep the person's key at hand for an hour."""
    pair = Pair().people().connect()
    number = pair.host.request(VOID.id, VOID.pack((1,)), pair.now, by=BY_FLOOR)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.port.poll(pair.now)  # executed; the answer is lost with the cable
    pair.port.close()
    pair.connect()
    assert pair.answer(number)[0] == "ok"
    assert len(pair.shoe.done) == 1


@pytest.mark.parametrize("number", [0, 1, 0x7FFFFFFF])
def test_a_proof_for_a_query_with_a_commands_number_is_refused(number: int) -> None:
    """One proof of the floor for request number 0 evicted the owner again and again.

    The device compared the number with an empty range of waiting commands, 0 to 0, and found it inside.
    A query also took any number, so the elevation of a query could pass for that of a command.
    """
    owner = Pair().people().connect()
    other = beside(owner, KEY, b"EVIL-PC1")
    shown = _proof(other, number, HOST_ID, EVICT)
    for _ in range(2):
        assert other.ask("elevate", *shown)[0] == "bad_credential"
        other.port.requests.request(EVICT.id, 0, number, HOST_ID)
        assert other.port.answers.pop()[1] == CODEC.error_named("number_ahead").id
        assert owner.device.owner_id() == HOST_ID
