"""Revealed shuffles: each is checked against the device's commitment and our nonce, and kept in a row.

The device reveals a shuffle once its deck has been fed again (docs/commit-reveal.md). A row keeps commitment,
nonce, seed and slots, so the record alone proves the shuffle.
"""

from typing import TYPE_CHECKING, Any

from sabot_driver.serial_numbers import parse_serial
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import (
    RevealShuffle,
    ShuffleRevealable,
    ShuffleRevealed,
    ShuffleSlots,
    ShuffleSlotsAre,
)
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit
from sabot_session.rows import Actor, Authentication, Json
from sabot_session.session_state import BegunShuffle, DeviceState, Reveal
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

MOST = 8  # shuffles that wait for their reveal; the device itself keeps fewer
PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)


def begun(device: DeviceState, shuffle_id: int, shuffle: BegunShuffle) -> None:
    """A shuffle began with our nonce."""
    device.begun[shuffle_id] = shuffle
    for old in sorted(device.begun)[:-MOST]:
        del device.begun[old]
        device.reveals = [each for each in device.reveals if each != old]


def revealable(device: DeviceState, told: ShuffleRevealable) -> None:
    """A shuffle may be revealed. One that this table did not begin is not asked for."""
    if told.shuffle_id in device.begun and told.shuffle_id not in device.reveals:
        device.reveals.append(told.shuffle_id)


def forget(device: DeviceState) -> None:
    """The device lost its power, and every seed with it."""
    device.begun, device.reveals, device.reveal = {}, [], None


def next_request(device: DeviceState) -> Request[Any] | None:
    """The next question about a shuffle that may be revealed."""
    if device.reveal is not None:
        return ShuffleSlots(device.reveal.shuffle_id, len(device.reveal.slots))
    return RevealShuffle(device.reveals[0]) if device.reveals else None


def answered(session: "SessionStep", answer: Message | None, now_s: int) -> None:
    """An answer about a shuffle. It counts only if the shuffle is still to be revealed.

    The machine may have started again, or begun many more shuffles, while the answer was on its way.
    """
    device = session.state.device
    if not isinstance(answer, ShuffleRevealed | ShuffleSlotsAre) or device.reveals[:1] != [answer.shuffle_id]:
        device.reveal = None
    elif isinstance(answer, ShuffleRevealed):
        seed, nonce = answer.seed.hex(), answer.nonce.hex()
        device.reveal = Reveal(
            answer.shuffle_id, answer.deck_id, answer.cards, answer.commitment.hex(), seed, nonce
        )
    elif device.reveal is not None:
        device.reveal.slots += answer.slots
        if not answer.slots or len(device.reveal.slots) >= device.reveal.cards:
            _judge(session, device.reveal, now_s)


def refused(device: DeviceState, shuffle_id: int) -> None:
    """The device reveals it no more: the deck was fed once more, or the power went."""
    device.reveals = [each for each in device.reveals if each != shuffle_id]
    device.reveal = None


def _judge(session: "SessionStep", shown: Reveal, now_s: int) -> None:
    device = session.state.device
    device.reveals, device.reveal = device.reveals[1:], None
    ours = device.begun.pop(shown.shuffle_id)
    wrong = audit(
        RevealedShuffle(
            parse_serial(device.serial),
            ours.pack_id,
            shown.shuffle_id,
            shown.cards,
            bytes.fromhex(ours.commitment),
            bytes.fromhex(ours.nonce),
            bytes.fromhex(shown.seed),
            tuple(shown.slots),
        )
    )
    if shown.nonce != ours.nonce:
        wrong.append("the device names another nonce than it was given")
    if (shown.deck_id, shown.commitment) != (ours.pack_id, ours.commitment):
        wrong.append("the device names another deck or commitment than before the shuffle")
    data: dict[str, Json] = {
        "memory_id": device.memory_id,
        "shuffle_id": shown.shuffle_id,
        "pack_id": ours.pack_id,
        "cards": shown.cards,
        "commitment": ours.commitment,
        "nonce": ours.nonce,
        "seed": shown.seed,
        "slots": shown.slots,
        "wrong": "; ".join(wrong)[:500],
    }
    session.row("shuffle_revealed", PROGRAM, data)
    if wrong and DeviceUnit.SHUFFLER not in session.procedure.table.memory.units:
        why = f"shuffle {shown.shuffle_id} is not the one that it committed to"
        told: dict[str, Json] = {"serial": device.serial, "unit": DeviceUnit.SHUFFLER, "why": why}
        session.do(
            session.procedure.equipment.unit_failed, session.device_by(now_s), DeviceUnit.SHUFFLER, told=told
        )
