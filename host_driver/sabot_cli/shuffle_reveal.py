"""The reveal of a shuffle: asking the device for it, and telling of it as ``sabot audit`` reads it."""

from sabot_cli.output import Output
from sabot_driver import Client
from sabot_protocol.host.messages import RevealShuffle, ShuffleRevealed, ShuffleSlots


def ask_reveal(client: Client, shuffle_id: int, timeout: float) -> tuple[ShuffleRevealed, list[int]]:
    """Seed, nonce and commitment of a shuffle, and the slot of each card as the machine measured it.

    Raises `NotAllowed` while the shuffle is secret, and after the device has forgotten it.
    """
    shown = client.ask(RevealShuffle(shuffle_id), timeout)
    slots: list[int] = []
    while len(slots) < shown.cards:
        more = client.ask(ShuffleSlots(shuffle_id, len(slots)), timeout).slots
        if not more:
            break
        slots += more
    return shown, slots


def tell_reveal(output: Output, shown: ShuffleRevealed, slots: list[int], wrong: list[str]) -> None:
    """Tell of a revealed shuffle; ``wrong`` says what does not fit."""
    output.tell(
        "shuffle_revealed",
        f"[red]shuffle {shown.shuffle_id}: {'; '.join(wrong)}[/red]" if wrong else None,
        deck_id=shown.deck_id,
        shuffle_id=shown.shuffle_id,
        cards=shown.cards,
        commitment=shown.commitment.hex(),
        seed=shown.seed.hex(),
        nonce=shown.nonce.hex(),
        placed=slots,
        ok=not wrong,
        wrong=wrong,
    )
