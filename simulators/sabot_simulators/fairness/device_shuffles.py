"""Shuffles on a device: a deck is shuffled, dealt out to its last card, read at the exit, and fed again.

The device deals every card in four stacks of thirteen, so that the card reader sees all of them. The dealer
puts the stacks into the tray again in the order in which they came. Every shuffle has the host's nonce. Each
one is audited, faces included, once it is revealed.
"""

import secrets
import time
from collections.abc import Callable

import numpy as np

from sabot_cli.output import Output
from sabot_cli.shuffle_reveal import ask_reveal, tell_reveal
from sabot_driver import Client, Credential
from sabot_driver.errors import NotAllowed, SabotError
from sabot_protocol.host.messages import (
    Back,
    CloseBets,
    CommitShuffle,
    Decks,
    DispenseStack,
    EndRound,
    Faces,
    Fault,
    Forbidden,
    LastRound,
    Method,
    OpenRound,
    PlayOneDeck,
    RegisterDeck,
    RemoveDeck,
    RemoveReason,
    RevealRound,
    Role,
    SetGame,
    ShoeState,
    ShuffleWith,
    StatusReport,
)
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit
from sabot_simulators.fairness.simulated_shuffles import NO_LIMIT, ShuffledBatch, ShuffleFailed

CARDS, STACKS, STACK_CARDS = 52, 4, 13
NONCE_SIZE = 32
PATIENCE_S = 600.0  # people have to take stacks and feed the tray
LOOK_EVERY_S = 0.01
NOT_YET = (Forbidden.TRAY_EMPTY, Forbidden.IN_USE)


class DeviceUnsuitable(SabotError):
    """The device is not suitable for evidence; the text says why."""


class DeviceShuffles:
    """One device with one deck, shuffled again and again."""

    def __init__(
        self,
        client: Client,
        output: Output,
        credential: Callable[[Role], Credential],
        timeout: float,
        goes_on: bool = False,
    ) -> None:
        """``goes_on``: an earlier run was ended, and the deck on the device is the one that it used."""
        self._client = client
        self._output = output
        self._timeout = timeout
        known = client.ask(Decks(), timeout)
        self._floor = credential(Role.FLOOR)
        if known.ids:
            if not goes_on or len(known.ids) > 1:
                raise DeviceUnsuitable(
                    "decks are registered on this device",
                    "Take them off the table first: 'sabot deck retire'.",
                )
            self._retire(known.ids[0])
        self._deck_id = known.last_played + 1
        client.ask(SetGame("fairness", Method.AUTOMATED_SHOE, 1, STACK_CARDS, NO_LIMIT), timeout, self._floor)
        client.ask(PlayOneDeck(1), timeout, self._floor)
        self._register()
        self._round_id = client.ask(LastRound(), timeout).round_id
        self._last: tuple[RevealedShuffle, tuple[int, ...]] | None = None

    def _retire(self, deck_id: int) -> None:
        """Take the deck of an earlier run off the device; its number never returns."""
        try:
            self._client.ask(RemoveDeck(deck_id, RemoveReason.FLOOR_ORDER), self._timeout, self._floor)
        except NotAllowed as error:
            error.advice = "Take every card out of the machine first: 'sabot service empty'."
            raise

    def _register(self) -> None:
        while True:
            try:
                deck = RegisterDeck(self._deck_id, Back.RED, int(time.time()))
                self._client.ask(deck, self._timeout, self._floor)
            except NotAllowed as error:
                if error.reason is not Forbidden.DECK_USED_BEFORE:
                    raise
                self._deck_id += 1
            else:
                return

    def shuffle(self, shuffles: int, kept: Callable[[ShuffledBatch], None]) -> None:
        """Shuffle so often; ``kept`` gets each order, cards by their place in the tray, and its seconds.

        One more shuffle comes first, to learn the places.
        """
        began = time.perf_counter()
        serial = self._client.identity.serial.decode("ascii", "replace")
        self._output.tell("hello", device=self._client.url, serial=serial, shuffles=shuffles)
        fed: tuple[int, ...] | None = None
        done = 0
        while done < shuffles:
            committed = self._begin()
            came_out = self._deal_out()
            self._tell(committed, fed, came_out)
            if fed is not None:
                place = {card: at for at, card in enumerate(fed)}
                order = np.array([[place[card] for card in came_out]], np.int16)
                kept(ShuffledBatch(order, time.perf_counter() - began, 0))
                began = time.perf_counter()
                done += 1
            fed = came_out

    def _begin(self) -> tuple[int, bytes, bytes]:
        """A commitment, our nonce, the shuffle: its number, commitment and nonce."""
        made = self._client.ask(CommitShuffle(self._deck_id), self._timeout)
        nonce = secrets.token_bytes(NONCE_SIZE)
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._client.ask(ShuffleWith(made.shuffle_id, nonce), self._timeout)
                break
            except NotAllowed as error:
                if error.reason not in NOT_YET or time.monotonic() > ends:
                    raise
                time.sleep(LOOK_EVERY_S)
        self._output.tell(
            "shuffle_committed",
            deck_id=self._deck_id,
            shuffle_id=made.shuffle_id,
            commitment=made.commitment.hex(),
            nonce=nonce.hex(),
        )
        self._wait(ShoeState.READY)
        return made.shuffle_id, made.commitment, nonce

    def _deal_out(self) -> tuple[int, ...]:
        """Deal out every card; return the faces that the reader saw."""
        ask, timeout = self._client.ask, self._timeout
        self._round_id += 1
        ask(OpenRound(self._round_id, self._deck_id), timeout)
        ask(CloseBets(self._round_id, STACKS), timeout)
        for stack in range(1, STACKS + 1):
            ask(DispenseStack(self._round_id, stack), timeout)
            self._wait(ShoeState.ROUND_OPEN)
        ask(EndRound(self._round_id), timeout)
        self._wait(ShoeState.EMPTY)
        ask(RevealRound(self._round_id), timeout)
        stacks = [ask(Faces(self._round_id, stack), timeout).faces for stack in range(1, STACKS + 1)]
        seen = [card for faces in stacks for card in faces]
        if sorted(seen) != list(range(CARDS)):
            raise DeviceUnsuitable(
                "the reader has not seen the 52 cards of a deck", "Clean the reader, and use one whole deck."
            )
        return tuple(seen)

    def _tell(
        self, committed: tuple[int, bytes, bytes], fed: tuple[int, ...] | None, came_out: tuple[int, ...]
    ) -> None:
        """What 'sabot audit' reads; and the shuffle before, which may be revealed now, is audited."""
        shuffle_id, commitment, nonce = committed
        if fed is not None:
            self._output.tell("deck_fed", shuffle_id=shuffle_id, cards=list(fed))
        self._output.tell("deck_out", shuffle_id=shuffle_id, cards=list(came_out))
        before = self._last
        serial = self._client.identity.serial
        revealed = RevealedShuffle(serial, self._deck_id, shuffle_id, CARDS, commitment, nonce, b"", (), fed)
        self._last = revealed, came_out
        if before is not None:
            self._audit(*before)

    def _audit(self, shuffle: RevealedShuffle, came_out: tuple[int, ...]) -> None:
        shown, placed = ask_reveal(self._client, shuffle.shuffle_id, self._timeout)
        wrong = audit(
            RevealedShuffle(
                shuffle.device, shuffle.deck_id, shuffle.shuffle_id, shuffle.cards, shuffle.commitment,
                shuffle.nonce, shown.seed, tuple(placed), shuffle.fed, came_out,
            )
        )  # fmt: skip
        tell_reveal(self._output, shown, placed, wrong)
        if wrong:
            raise DeviceUnsuitable(
                f"shuffle {shuffle.shuffle_id}: {'; '.join(wrong)}",
                "Were the stacks laid into the tray as they came? If so, keep the device and what it told.",
            )

    def _wait(self, shoe: ShoeState) -> StatusReport:
        """Wait until the shoe half is so; ShuffleFailed if the machine has stopped."""
        ends = time.monotonic() + PATIENCE_S
        while True:
            status = self._client.status(self._timeout)
            if status.fault:
                raise ShuffleFailed(Fault(status.fault).name.lower())
            if status.shoe == shoe:
                return status
            if time.monotonic() > ends:
                raise DeviceUnsuitable(
                    f"waited {PATIENCE_S:.0f} s; the shoe is {ShoeState(status.shoe).name.lower()}",
                    "Take what lies in the exit tray, and feed the tray.",
                )
            time.sleep(LOOK_EVERY_S)
