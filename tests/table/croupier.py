"""Somebody who runs a table for a test: the people and the device in one, by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sabot_table.cards import cards
from sabot_table.errors import RuleViolation
from sabot_table.procedure import Attribution, Order, TableProcedure, TableRole
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.vocabulary import Verdict
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import RuleSet, load
from sabot_table.settlement import CardSource, Settlement

NOON = 1_800_000_000
HOUR = 3_600
DEALER, FLOOR, PLAYER = TableRole.DEALER, TableRole.FLOOR, TableRole.PLAYER


def named(procedure: TableProcedure, action: str) -> Callable[..., Any]:
    """An action by its name, of the part of the procedure that has it."""
    parts = (procedure, *vars(procedure).values())
    found: Callable[..., Any] = next(getattr(part, action) for part in parts if hasattr(part, action))
    return found


class Croupier:
    """Drives a table. With ``restarts`` the table is saved and restored after everything that happens."""

    def __init__(self, rules: RuleSet | str, restarts: bool = False) -> None:
        self.rules = load(rules) if isinstance(rules, str) else rules
        self.procedure = TableProcedure(self.rules)
        self.restarts = restarts
        self.now_s = NOON
        self.orders: list[Order] = []

    def do(self, action: str, role: TableRole, *args: Any, **details: Any) -> Any:
        """One action of a person."""
        by = Attribution(f"the {role}", role, self.now_s)
        return self._after(named(self.procedure, action)(by, *args, **details))

    def device(self, action: str, *args: Any, **details: Any) -> Any:
        """One thing that the device reports."""
        return self.do(action, TableRole.DEVICE, *args, **details)

    @property
    def table(self) -> TableContext:
        """The table's state."""
        return self.procedure.table

    def _after(self, result: Any) -> Any:
        self.orders += self.table.take_orders()
        if self.restarts:
            self.procedure = TableProcedure.restore(self.rules, self.table.save())
        return result

    def ordered(self, do: str) -> list[dict[str, object]]:
        """The details of all orders of a kind, which are then forgotten."""
        found = [dict(each.details) for each in self.orders if each.do == do]
        self.orders = [each for each in self.orders if each.do != do]
        return found

    @contextmanager
    def refused(self, clause: str, match: str | None = None) -> Iterator[None]:
        """Something is refused by this clause, and the table is as before."""
        before = self.table.save()
        with pytest.raises(RuleViolation, match=match) as refused:
            yield
        assert refused.value.clause == clause, refused.value
        assert refused.value.do
        assert self.table.save() == before, "a refusal changes nothing"

    # -- opening --------------------------------------------------------------------------------

    def open(self, packs: int = 2, seats: tuple[int, ...] = (1, 3)) -> "Croupier":
        """The table is open, with packs that went through the whole opening and players at these seats."""
        self.do("open_table", FLOOR)
        for number, back in list(zip((1, 2), ("red", "blue"), strict=True))[:packs]:
            self.prepare(number, back)
        for seat in seats:
            self.do("sit", PLAYER, seat)
        return self

    def prepare(self, pack: int, back: str) -> None:
        """A pack is received and stacked."""
        self.do("receive_pack", FLOOR, pack, back)
        for action, role in (("inspect", DEALER), ("verify", FLOOR), ("spread", DEALER), ("wash", DEALER)):
            self.do(action, role, pack)
        self.do("stack", DEALER, pack)

    def machine_shuffle(self, pack: int, count: int | None = None) -> None:
        """The device shuffles and counts."""
        self.do("start_shuffle", DEALER, pack, machine=True)
        self.device("finish_shuffle", pack, self.table.pack_cards if count is None else count)

    def hand_shuffle(self, pack: int) -> None:
        """The dealer shuffles; where the text asks for it, the floor looks at the stack."""
        self.do("start_shuffle", DEALER, pack, machine=False)
        self.do("finish_shuffle", DEALER, pack)
        if self.table.has("verify_shuffle"):
            self.do("verify_shuffle", FLOOR, pack)

    # -- three-card rounds ----------------------------------------------------------------------

    def automated(self, seats: tuple[int, ...] = (1, 3)) -> "Croupier":
        """Two packs shuffled by the device, the first one in its shoe."""
        self.open(2, seats)
        self.machine_shuffle(1)
        self.machine_shuffle(2)
        self.do("load", DEALER, 1)
        return self

    def manual(
        self, method: DealingMethod = DealingMethod.MANUAL_SHOE, seats: tuple[int, ...] = (1, 3)
    ) -> "Croupier":
        """One pack, shuffled and cut by the dealer, in the manual shoe."""
        self.open(1, seats)
        self.do("play_one_pack", FLOOR)
        self.do("change_method", FLOOR, method)
        self.ready_by_hand(1)
        return self

    def ready_by_hand(self, pack: int) -> None:
        """Shuffled, cut and loaded by the dealer."""
        self.hand_shuffle(pack)
        self.do("cut", DEALER, pack, 20)
        self.do("load", DEALER, pack)

    def bet(self, *wagers: tuple[int, str, int]) -> None:
        """Bets are opened, these are made, bets are closed."""
        self.do("open_bets", DEALER)
        for seat, wager, cents in wagers:
            self.do("place_wager", PLAYER, seat, wager, cents)
        self.do("no_more_bets", DEALER)

    def antes(self) -> None:
        """An ante of 20.00 at seats 1 and 3."""
        self.bet((1, "ante", 2_000), (3, "ante", 2_000))

    def stacks(self, number: int = 3, cards_in: int = 3) -> None:
        """The device dispenses so many more stacks."""
        for _ in range(number):
            playing = self.table.round
            self.device("deal_stack", playing.round_id, len(playing.stacks) + 1, cards_in)

    def counted(self, verdict: Verdict = Verdict.CORRECT) -> None:
        """The device counted the stub; after a wrong count the dealer determines what the device says."""
        self.device("end_round", self.table.round.round_id, verdict)
        if self.table.state == "counting":
            self.do("determine", DEALER, verdict)

    def deal_cards(self, number: int | None = None) -> None:
        """The dealer deals card by card, by default to the end."""
        for _ in range(number or 3 * len(self.table.turns()) - self.table.round.dealt):
            self.do("deal_card_to", DEALER, self.procedure.three_card.next_to())

    def show(self, dealer: str = "7H KS QC", one: str = "9H JH QD", three: str = "2D 3D 10C") -> None:
        """The dealer types in the hands of seats 1 and 3."""
        self.do("reveal", DEALER, cards(dealer), {1: cards(one), 3: cards(three)}, CardSource.DEALER)

    def finish(self) -> Settlement:
        """Settled and collected."""
        settled: Settlement = self.do("settle", DEALER)
        self.do("collect", DEALER)
        return settled

    def play_automated(self) -> Settlement:
        """A whole round from the automated shoe."""
        self.antes()
        self.stacks()
        self.counted()
        self.show()
        return self.finish()

    # -- mini baccarat --------------------------------------------------------------------------

    def shoe(self, seats: tuple[int, ...] = (2, 5)) -> "Croupier":
        """Two batches, the first one cut by the highest seat, covered, loaded and burned."""
        self.open(2, seats)
        self.machine_shuffle(1)
        self.machine_shuffle(2)
        self.load_shoe(1)
        return self

    def load_shoe(self, pack: int) -> None:
        """Cut, covered, loaded, burned."""
        first = self.procedure.packs.cutters(self.table.pack(pack))
        self.do("cut", PLAYER if first else DEALER, pack, 100, seat=first[0] if first else None)
        self.do("place_cover", DEALER, pack, 14)
        self.do("load", DEALER, pack)
        self.do("burn", DEALER, pack, cards("3C")[0], 3)

    def four(self, player: str, banker: str) -> None:
        """Four cards are dealt and announced."""
        while self.table.state == "dealing":
            self.do("deal_card", DEALER)
        self.do("announce", DEALER, cards(player), cards(banker), CardSource.DEALER)

    def third(self, to: str, drawn: str) -> None:
        """A third card."""
        self.do("third_card", DEALER, to, cards(drawn)[0])

    def play_coup(self, player: str = "9H KD", banker: str = "2S KC", wager: str = "player") -> Settlement:
        """A whole round without third cards."""
        self.bet((2, wager, 1_000))
        self.four(player, banker)
        return self.finish()
