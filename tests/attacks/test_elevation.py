"""Attacks with a person's proof: shown again, stretched, used for something else."""

from hashlib import sha256

from pair import BY_FLOOR, FLOOR_KEY, FLOOR_SLOT, Pair
from world import SERIAL

from sabot_protocol.codec import CODEC
from sabot_protocol.session import elevation_proof, slot_key

VOID = CODEC.named("play_one_deck")


def _proof(pair: Pair, number: int, body: bytes) -> tuple[object, ...]:
    """What the floor shows for one request of this session."""
    hash, key = sha256(body).digest(), slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT)
    proof = elevation_proof(key, pair.host.transcript, 1, FLOOR_SLOT, VOID.id, number, hash)
    return 1, FLOOR_SLOT, VOID.id, number, hash, proof


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
