"""Each shuffle is checked once the device may reveal it: seed, nonce and slots must fit its commitment.

The commitment comes from the device's event and the nonce from the command that carried it, both from the
driver's journal. The table's record keeps them with the seed.
"""

import queue

from sabot_cli.output import Output
from sabot_cli.shuffle_reveal import ask_reveal, tell_reveal
from sabot_driver import Client, LostEvents, ReceivedEvent
from sabot_driver.errors import LinkLost, NotAllowed, SabotError
from sabot_protocol.host.messages import (
    ShuffleCommitted,
    ShufflerChanged,
    ShuffleRevealable,
    ShufflerState,
    ShuffleWith,
)
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit
from sabot_session.record import ShuffleCommitment, SqliteRecord


class ShuffleNotProved(SabotError):
    """A shuffle is not the one that the device was bound to."""

    advice = "Take the device out of play. Keep its journal and this table's record (docs/commit-reveal.md)."


class ShuffleChecks:
    """The shuffles of one device while a table is played."""

    def __init__(self, client: Client, record: SqliteRecord, output: Output, timeout: float) -> None:
        self._client = client
        self._record = record
        self._output = output
        self._timeout = timeout
        self._events: queue.SimpleQueue[ShuffleCommitted | ShuffleRevealable | ShufflerChanged]
        self._events = queue.SimpleQueue()
        self._committed: dict[int, ShuffleCommitted] = {}  # not told yet
        self.checked = 0
        for entry in client.journal.entries():
            if (
                not entry.is_gap
                and entry.message == ShuffleCommitted.ID
                and entry.memory_id == self._memory_id
            ):
                made = ShuffleCommitted.unpack(entry.body)
                if record.commitment_of(self._memory_id, made.shuffle_id) is None:
                    self._committed[made.shuffle_id] = made
        client.on_event(self._event)

    @property
    def _memory_id(self) -> bytes:
        peer = self._client.peer
        return b"" if peer is None else peer.memory_id

    def _event(self, event: ReceivedEvent | LostEvents) -> None:
        if isinstance(event, ReceivedEvent) and isinstance(
            event.message, ShuffleCommitted | ShuffleRevealable | ShufflerChanged
        ):
            self._events.put(event.message)

    def look(self) -> None:
        """Check what may be revealed now; `ShuffleNotProved` for a shuffle that does not fit."""
        while not self._events.empty():
            told = self._events.get()
            if isinstance(told, ShuffleCommitted):
                self._committed[told.shuffle_id] = told
            elif isinstance(told, ShuffleRevealable):
                self._tell_begun()
                self._reveal(told.shuffle_id)
            elif told.state is ShufflerState.FEEDING:
                self._tell_begun()

    def _tell_begun(self) -> None:
        """Shuffles that have begun: their nonces have gone out."""
        if not self._committed:
            return
        for command in reversed(self._client.journal.commands()):
            if command.message != ShuffleWith.ID or command.memory_id not in (b"", self._memory_id):
                continue
            begun = ShuffleWith.unpack(command.body)
            made = self._committed.pop(begun.shuffle_id, None)
            if made is not None:
                self._keep(made, bytes(begun.nonce))
            if not self._committed:
                return

    def _keep(self, made: ShuffleCommitted, nonce: bytes) -> None:
        kept = ShuffleCommitment(made.deck_id, bytes(made.commitment), nonce)
        self._record.committed(self._memory_id, made.shuffle_id, kept)
        self._output.tell(
            "shuffle_committed",
            deck_id=made.deck_id,
            shuffle_id=made.shuffle_id,
            commitment=kept.commitment.hex(),
            nonce=nonce.hex(),
        )

    def _reveal(self, shuffle_id: int) -> None:
        committed = self._record.commitment_of(self._memory_id, shuffle_id)
        if committed is None:
            return  # not begun by this table: nothing of ours was in it
        try:
            shown, placed = ask_reveal(self._client, shuffle_id, self._timeout)
        except (NotAllowed, LinkLost):
            return  # the deck was fed once more meanwhile, or the power went
        shuffle = RevealedShuffle(
            self._client.identity.serial, committed.deck_id, shown.shuffle_id, shown.cards,
            committed.commitment, committed.nonce, shown.seed, tuple(placed),
        )  # fmt: skip
        wrong = audit(shuffle)
        if shown.nonce != committed.nonce:
            wrong.append("the device names another nonce than it was given")
        if (shown.deck_id, shown.commitment) != (committed.deck_id, committed.commitment):
            wrong.append("the device names another deck or commitment than before the shuffle")
        self._record.revealed(self._memory_id, shown.shuffle_id, shown.seed, "; ".join(wrong))
        tell_reveal(self._output, shown, placed, wrong)
        if wrong:
            raise ShuffleNotProved(f"shuffle {shown.shuffle_id}: {'; '.join(wrong)}")
        self.checked += 1
