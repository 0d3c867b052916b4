"""An example program: it has a deck shuffled and says how many cards were counted, or which fault came."""

from sabot_driver import Client
from sabot_protocol.host.messages import DeckCounted, FaultRaised, Shuffle


def count_deck(client: Client, deck_id: int, timeout: float = 60.0) -> str:
    """Shuffle a registered deck; one sentence about how it ended."""
    last = max((event.id for event in client.events(0, timeout=0)), default=0)
    client.ask(Shuffle(deck_id), timeout)
    for event in client.events(last, timeout=timeout):
        message = getattr(event, "message", None)  # an event that was lost has none
        if isinstance(message, DeckCounted):
            return f"deck {deck_id}: {message.count} cards"
        if isinstance(message, FaultRaised):
            return f"deck {deck_id}: {message.fault.name.lower()} at {message.place.name.lower()}"
    return f"deck {deck_id}: nothing was reported within {timeout:g} s"
