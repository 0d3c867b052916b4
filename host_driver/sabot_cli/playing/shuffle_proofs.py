"""Commit and reveal: a nonce of the host is in every shuffle, and each is checked once it is revealed."""

import hashlib
import secrets

from sabot_cli.output import Output
from sabot_cli.playing.table_record import ShuffleCommitment, TableRecord
from sabot_cli.shuffle_reveal import ask_reveal, tell_reveal
from sabot_driver import Client
from sabot_driver.errors import NotAllowed, SabotError
from sabot_protocol.host.messages import (
    CommitShuffle,
    ShuffleDropped,
    ShuffleRevealable,
    ShuffleRevealed,
    ShuffleWith,
)
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit

NONCE_SIZE = 32


class ShuffleNotProved(SabotError):
    """A shuffle is not the one that the device was bound to."""

    advice = "Take the device out of play. Keep its journal and this table's record (docs/commit-reveal.md)."


class ShuffleProofs:
    """The shuffles of one device as we took part in them."""

    def __init__(
        self, client: Client, output: Output, record: TableRecord, timeout: float, seed: int | None = None
    ) -> None:
        self._client = client
        self._output = output
        self._record = record
        self._timeout = timeout
        self._seed = seed
        self._waiting: dict[int, tuple[int, bytes]] = {}  # by deck: a shuffle pledged and not begun
        self._revealable: list[int] = []
        self.checked = 0
        self.unknown = 0
        """Shuffles that were revealed and not begun by this table: nothing of ours was in them."""

    def begin(self, deck_id: int) -> int:
        """Have a deck shuffled, with a pledge before and our nonce in it; the shuffle's id.

        Refused as the device refuses it; the pledge is kept for the next time.
        """
        if deck_id not in self._waiting:
            made = self._client.ask(CommitShuffle(deck_id), self._timeout)
            self._waiting = {deck_id: (made.shuffle_id, made.commitment)}  # the device keeps the newest only
        shuffle_id, commitment = self._waiting[deck_id]
        nonce = self._nonce(shuffle_id)
        self._record.committed(self._memory_id, shuffle_id, ShuffleCommitment(deck_id, commitment, nonce))
        self._client.ask(ShuffleWith(shuffle_id, nonce), self._timeout)
        del self._waiting[deck_id]
        self._output.tell(
            "shuffle_committed",
            deck_id=deck_id,
            shuffle_id=shuffle_id,
            commitment=commitment.hex(),
            nonce=nonce.hex(),
        )
        return shuffle_id

    def _nonce(self, shuffle_id: int) -> bytes:
        if self._seed is None:
            return secrets.token_bytes(NONCE_SIZE)
        return hashlib.sha256(b"sabot nonce %d %d" % (self._seed, shuffle_id)).digest()

    @property
    def _memory_id(self) -> bytes:
        peer = self._client.peer
        return b"" if peer is None else peer.memory_id

    def heard(self, told: object) -> None:
        """An event about a commitment: a shuffle can be revealed, or was dropped."""
        if isinstance(told, ShuffleRevealable):
            self._revealable.append(told.shuffle_id)
        elif isinstance(told, ShuffleDropped):
            self._waiting = {deck: it for deck, it in self._waiting.items() if it[0] != told.shuffle_id}

    def rebooted(self) -> None:
        """The device lost its power, and every commitment with it."""
        self._waiting.clear()
        self._revealable.clear()

    def check(self) -> None:
        """Check every shuffle that may be revealed now; ShuffleNotProved for one that does not fit."""
        while self._revealable:
            shuffle_id = self._revealable.pop(0)
            committed = self._record.commitment_of(self._memory_id, shuffle_id)
            if committed is None:
                self.unknown += 1
                continue
            try:
                shown, placed = ask_reveal(self._client, shuffle_id, self._timeout)
            except NotAllowed:
                continue  # the deck was fed once more meanwhile, or the power went
            self._judge(committed, shown, placed)

    def _judge(self, committed: ShuffleCommitment, shown: ShuffleRevealed, placed: list[int]) -> None:
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
