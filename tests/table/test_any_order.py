"""Whatever anyone does in whatever order: it happens by the rules, or it is refused and nothing changed."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.sweeps import Amount
from tests.table.croupier import Croupier, named

from sabot_table.cards import cards, full_deck
from sabot_table.errors import TableError
from sabot_table.procedure import Attribution, TableProcedure, TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource

pytestmark = pytest.mark.slow

Try = tuple[str, tuple[Any, ...]]  # a method of the table and what it is given
PACK_ACTIONS = (
    "inspect", "verify", "spread", "wash", "stack", "accept_prepared", "order_recut", "load",
)  # fmt: skip
PLAIN = (
    *("open_table", "close_table", "idle", "player_arrives", "open_bets", "return_bets", "no_more_bets"),
    *("pass_stub", "settle", "empty_device", "collect", "face_up_card", "drawn_in_error", "too_few_cards"),
    *("begin_simulated", "cover_card", "announce_last_hand", "play_one_pack", "end_shoe", "deal_card"),
)


class Anybody:
    """Does what leads on, and in between anything at all."""

    def __init__(self, table: Croupier, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rules = table.rules
        self.procedure = table.procedure
        self.table = table.table
        self.refusals = self.happened = self.rounds = self.voids = 0
        self.at_s = table.now_s

    def step(self) -> None:
        """One thing."""
        name, args = self._lead_on()
        if self.dice.random() < 0.4:
            name, args = self.dice.choice([self._pack, self._plain, self._cards, self._bets, self._device])()
        self.at_s += 1
        before = self.table.save()
        for role in (
            TableRole.DEALER,
            TableRole.FLOOR,
            TableRole.PLAYER,
            TableRole.DEVICE,
            TableRole.CONTROLLER,
        ):
            try:
                named(self.procedure, name)(Attribution("somebody", role, self.at_s), *args)
            except TableError:
                self.refusals += 1
            else:
                self.happened += 1
                self.check()
                return
        assert self.table.save() == before, f"{name} was refused and changed something"

    def _lead_on(self) -> Try:
        """What a good dealer would do now."""
        table, playing = self.table, self.table.memory.round
        first = self.rules.main_wagers[0]
        automated = table.method is DealingMethod.AUTOMATED_SHOE
        if table.state == "between":
            return self._prepare()
        if table.state == "betting":
            if 2 not in table.memory.seated:
                return "sit", (2,)
            return self.dice.choice([("place_wager", (2, first, 2_000)), ("no_more_bets", ())])
        if table.state == "dealing":
            assert playing is not None
            if not table.three_card:
                return "deal_card", ()
            stack = (playing.round_id, len(playing.stacks) + 1, 3)
            return (
                ("deal_stack", stack)
                if automated
                else ("deal_card_to", (self.procedure.three_card.next_to(),))
            )
        if table.state == "counting":
            assert playing is not None
            ended = (playing.round_id, Verdict.CORRECT)
            return ("end_round", ended) if automated else ("count_stub", (52 - 3 * len(table.turns()),))
        if table.state in ("revealing", "drawing"):
            return self._cards()
        return {
            "closed": ("open_table", ()), "idle": ("player_arrives", ()), "settling": ("settle", ()),
        }.get(table.state, self.dice.choice([("empty_device", ()), ("collect", ())]))  # fmt: skip

    def _prepare(self) -> Try:
        table = self.table
        if 2 not in table.memory.seated:
            return "sit", (2,)
        if table.memory.exposed and self.dice.random() < 0.8:
            return "begin_simulated", ()
        if table.memory.cover == "announce":
            return "announce_last_hand", ()
        if table.memory.cover == "over":
            return "end_shoe", ()
        if len(table.packs()) < 1 + self.rules.cards.alternating and self.dice.random() < 0.3:
            taken = [each.back for each in table.packs()]
            return "receive_pack", (table.memory.highest_pack + 1, "blue" if "red" in taken else "red")
        if not table.packs() or self.dice.random() < 0.2:
            return "open_bets", ()
        pack = self.dice.choice(table.packs())
        cutter = next(iter(self.procedure.packs.cutters(pack)), None)
        ready: Try = ("load", (pack.pack_id,))
        if self.procedure.packs.needs_cut(pack):
            ready = ("cut", (pack.pack_id, 20, cutter))
        steps: dict[str, Try] = {
            "received": ("inspect", (pack.pack_id,)),
            "inspected": ("verify", (pack.pack_id,)),
            "verified": ("spread", (pack.pack_id,)),
            "spread": ("wash", (pack.pack_id,)),
            "washed": ("stack", (pack.pack_id,)),
            "stacked": ("start_shuffle", (pack.pack_id, True)),
            "discards": ("start_shuffle", (pack.pack_id, True)),
            "shuffling": ("finish_shuffle", (pack.pack_id, table.pack_cards)),
            "shuffled": ready,
            "cut": ("place_cover", (pack.pack_id, 20)) if table.burns else ("load", (pack.pack_id,)),
            "covered": ("load", (pack.pack_id,)),
            "loaded": ("burn", (pack.pack_id, cards("3C")[0], 3)) if table.burns else ("open_bets", ()),
        }
        return steps.get(pack.state, ("open_bets", ()))

    def check(self) -> None:
        """What must hold at every instant."""
        memory = self.table.memory
        assert len(self.table.packs()) <= 2
        assert sum(each.state in ("loaded", "playing") for each in self.table.packs()) <= 1
        assert sum(each.state == "discards" for each in self.table.packs()) <= 1
        if memory.round is None:
            assert memory.state in ("closed", "between", "idle")
        elif memory.round.settlement is not None:
            lines: Any = memory.round.settlement["settlement"]
            settled = {(line["seat"], line["wager"]): line["stake_cents"] for line in lines}
            made = memory.round.wagers
            assert settled == {(seat, wager): made[seat][wager] for seat in made for wager in made[seat]}
            self.rounds = max(self.rounds, memory.round.round_id)
            self.voids += bool(memory.round.void_clause)
        if self.happened % 20 == 0:
            assert TableProcedure.restore(self.rules, self.table.save()).table.save() == self.table.save()

    # -- what may be tried --------------------------------------------------------------------------

    def _pack(self) -> Try:
        pack = self.dice.choice([each.pack_id for each in self.table.memory.packs[-2:]] or [1])
        seat = self.dice.choice([None, *self.table.memory.seated])
        tries: list[Try] = [
            ("receive_pack", (self.table.memory.highest_pack + 1, self.dice.choice(("red", "blue")))),
            ("remove_pack", (pack, RemovalReason.DAMAGED))
            if self.dice.random() < 0.02
            else ("inspect", (pack,)),
            ("start_shuffle", (pack, self.dice.random() < 0.8)),
            ("finish_shuffle", (pack,)),
            ("finish_shuffle", (pack, self.table.pack_cards - (self.dice.random() < 0.02))),
            ("cut", (pack, self.dice.choice((5, 20)), seat)),
            ("place_cover", (pack, self.dice.choice((5, 20)))),
            ("burn", (pack, cards("3C")[0], 3)),
            *((action, (pack,)) for action in PACK_ACTIONS),
        ]
        return self.dice.choice(tries)

    def _plain(self) -> Try:
        return self.dice.choice(PLAIN), ()

    def _bets(self) -> Try:
        seat = self.dice.randint(0, 6)
        wager = self.dice.choice((*self.rules.offered, *self.rules.main_wagers, "lucky-7"))
        tries: list[Try] = [
            ("sit", (seat,)), ("leave", (seat,)), ("place_wager", (seat, wager, self.dice.choice((-1, 30)))),
            ("place_wager", (seat, wager, 2_000)), ("withdraw_wager", (seat, wager)), ("forfeit", (seat,)),
            ("abandon", (seat,)), ("collect_vigorish", (seat,)), ("no_more_bets", ()),
        ]  # fmt: skip
        return self.dice.choice(tries)

    def _cards(self) -> Try:
        deck = list(full_deck())
        self.dice.shuffle(deck)
        playing = self.table.memory.round
        turns = self.table.turns() if playing else [0]
        hands = {to: tuple(deck[3 * place : 3 * place + 3]) for place, to in enumerate(turns)}
        four = (tuple(deck[:2]), tuple(deck[2:4]))
        tries: list[Try] = (
            [
                ("deal_card_to", (self.dice.choice(turns),)), ("deal_card", ()),
                ("count_stub", (52 - 3 * len(turns),)),
                ("count_stub", (51 - 3 * len(turns), dict.fromkeys(turns, 3))),
                ("reveal", (hands.pop(0), hands, CardSource.DEALER)),
                ("announce", (*four, CardSource.DEALER)),
                ("third_card", (self.dice.choice(("player", "banker")), deck[9])),
                ("unauthorised_third", (self.dice.choice((None, deck[9])),)), ("card_exposed", (deck[9],)),
                ("wrong_number", ("four cards",)), ("shoe_failed", ("stuck",)),
                ("retype_coup", four), ("retype_hands", (tuple(deck[:3]), {})),
            ]
        )  # fmt: skip
        return self.dice.choice(tries)

    def _device(self) -> Try:
        playing = self.table.memory.round
        number, stack = (playing.round_id, len(playing.stacks) + 1) if playing else (1, 1)
        unit = self.dice.choice(list(DeviceUnit))
        rare = self.dice.random() < 0.05
        events: list[Try] = [
            ("deal_stack", (number, stack, 2 if rare else 3)),
            ("deal_stack", (number, stack, 3)),
            ("end_round", (number, self.dice.choice(list(Verdict)) if rare else Verdict.CORRECT)),
            ("voided_by_device", (number, "shoe_failed")) if rare else ("deal_stack", (number + 1, 1, 3)),
            ("card_dispensed", (number, (playing.dealt if playing else 0) + 1)),
            ("unit_failed", (unit,)) if rare else ("cover_card", ()),
        ]
        event = self.dice.choice(events)
        people: list[Try] = [
            ("change_method", (self.dice.choice(list(DealingMethod)),)),
            ("mark_out_of_order", (unit, "sign")),
            ("repaired", (unit,)),
        ]  # fmt: skip
        events_again: list[Try] = [event] * 6
        return self.dice.choice(events_again + people)


TABLES: dict[str, Callable[[], Croupier]] = {
    "three-card, automated shoe": lambda: Croupier("md-three-card-baccarat").automated((1, 2, 3)),
    "three-card, manual shoe": lambda: Croupier("md-three-card-baccarat").manual(seats=(1, 2, 3)),
    "mini baccarat": lambda: Croupier("md-mini-baccarat").shoe(),
    "six decks every round": lambda: Croupier("baccarat-six-deck").open(1, (2, 5)),
}


@pytest.mark.parametrize("name", TABLES)
def test_anybody_may_try_anything(name: str, amount: Amount) -> None:
    rounds = voids = refusals = 0
    for seed in range(amount(1, full=2)):
        anybody = Anybody(TABLES[name](), seed)
        for _ in range(800):
            anybody.step()
        rounds += anybody.rounds
        voids += anybody.voids
        refusals += anybody.refusals
    assert rounds > 3, "the walk got as far as settled rounds"
    assert voids
    assert refusals > 250
