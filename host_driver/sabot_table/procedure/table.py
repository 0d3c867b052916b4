"""A table: opening and closing, idle hours, a device's events, and memory across a restart."""

import json
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from sabot_table.cards import Card
from sabot_table.errors import BadSave
from sabot_table.procedure.action_table import PACK_STATES, TABLE_STATES
from sabot_table.procedure.memory import PackState, TableMemory
from sabot_table.procedure.mini_procedure import BANKER, FIRST_CARDS, PLAYER
from sabot_table.procedure.packs import IN_SHOE
from sabot_table.procedure.round_end import RoundEndProcedure
from sabot_table.procedure.vocabulary import (
    Attribution,
    CardAside,
    CardDispensed,
    CardsRead,
    CoverCardSeen,
    DeviceEvent,
    Identified,
    PackCounted,
    PackDelivered,
    PackLoaded,
    RoundEnded,
    RoundVoided,
    ShuffleFinished,
    ShuffleStarted,
    StackDispensed,
    TableRole,
    ThirdCardRead,
    UnitFailed,
)
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import RuleSet
from sabot_table.settlement import CardSource

SAVED = TypeAdapter(TableMemory)
# Why a device gives a round up, and whether its cards must come out of it.
VOID_REASONS = {
    "face_up_card": ("13.A", True),
    "wrong_number": ("13.C", True),
    "stack_disturbed": ("13.C", True),
    "floor_order": ("13.C", True),
    "shoe_failed": ("13.D", True),
    "power_cut": ("13.D", True),
}


class TableProcedure(RoundEndProcedure):
    """One table under one rule set. A method is one thing that happens; `Refused` says what forbids it."""

    def __init__(self, rules: RuleSet, memory: TableMemory | None = None) -> None:
        super().__init__(rules, memory or TableMemory(rules.sha256, method=rules.dealing.methods[0]))

    # -- opening, closing, idle -----------------------------------------------------------------

    def open_table(self, by: Attribution) -> None:
        """The floor opens the table."""
        self.check("open_table", by)
        self.move("open_table", by)

    def close_table(self, by: Attribution) -> None:
        """The floor closes it; nobody may owe vigorish."""
        self.check("close_table", by)
        if self.memory.marked:
            raise self.refuse("closing while vigorish is owed", "12.A", "12.D", "collect it first")
        self.move("close_table", by)

    def idle(self, by: Attribution) -> None:
        """Nobody plays: cards come out and are spread, except those that a counting device keeps."""
        self.check("idle", by)
        for pack in self.packs():
            if self._must_spread(pack):
                if pack.state in IN_SHOE:
                    self.forget_shoe()
                self.move_pack("spread_idle", pack, by)
                self.order("spread", pack=pack.pack_id, face="down unless a player asks")
        self.move("idle", by)

    def player_arrives(self, by: Attribution, spread_stored: bool = False) -> None:
        """Somebody wants to play; on request the stored batch is spread too (MDM 5.H(4))."""
        self.check("player_arrives", by)
        for pack in self.packs():
            if spread_stored and pack.state == "shuffled":
                self.move_pack("spread_idle", pack, by)
                self.order("spread", pack=pack.pack_id, face="up")
        self.move("player_arrives", by)

    def _must_spread(self, pack: PackState) -> bool:
        out = pack.state in ("loaded", "playing", "discards")
        stored = pack.state in ("shuffled", "cut", "covered")
        if self.burns:
            return out or (stored and pack.shuffled_by != "machine")
        kept = pack.shuffled_by == "machine" and pack.counted  # MD3 5.G-H
        return (out or stored) and not kept

    # -- what a device tells --------------------------------------------------------------------

    def hear(self, event: DeviceEvent, at_s: int) -> None:
        """Take in one event of the device."""
        by = Attribution("device", TableRole.DEVICE, at_s)
        match event:
            case Identified(model, versions):
                self.identify(by, model, versions)
            case ShuffleStarted(pack):
                if self.pack(pack).state != "shuffling":
                    self.start_shuffle(by, pack, machine=True)
            case ShuffleFinished(pack):
                self.finish_shuffle(by, pack)
            case PackCounted(pack, count):
                self.finish_shuffle(by, pack, count)
            case PackLoaded(pack):
                self.load(by, pack)
            case PackDelivered(pack):
                self.deliver(by, pack)
            case StackDispensed(round_id, stack, cards):
                self.deal_stack(by, round_id, stack, cards)
            case CardDispensed(round_id, number, draw):
                self._card(by, round_id, number, draw)
            case CardAside(round_id, draw):
                self._must_be(round_id, "a card")
                self._only_mini("a single card", "8.C")
                self._next_draw(draw)
                self.note(f"card aside {draw}", by)
            case CoverCardSeen():
                self.cover_card(by)
            case RoundEnded(round_id, verdict):
                self.end_round(by, round_id, verdict)
            case RoundVoided(round_id, reason):
                self._voided(by, round_id, reason)
            case UnitFailed(unit):
                self.unit_failed(by, unit)
            case CardsRead(round_id, stacks, source):
                self._read(by, round_id, stacks, source)
            case ThirdCardRead(round_id, to, card):
                self._must_be(round_id, "a third card")
                self.third_card(by, to, card)

    def _must_be(self, round_id: int, what: str) -> None:
        if round_id != self.round.round_id:
            do = f"round {self.round.round_id} is played"
            raise self.refuse(f"{what} of round {round_id}", "11.B", "11.A", do)

    def _read(
        self, by: Attribution, round_id: int, stacks: tuple[tuple[Card, ...], ...], source: CardSource
    ) -> None:
        self._must_be(round_id, "cards")
        turns = self.turns() if self.three_card else [PLAYER, BANKER]
        if len(stacks) != len(turns):
            raise self.refuse(f"{len(stacks)} stacks", "11.B", "11.A", f"there are {len(turns)}")
        if self.three_card:
            hands = dict(zip(self.turns(), stacks, strict=True))
            self.reveal(by, hands.pop(0), hands, source)
        else:
            self.announce(by, stacks[0], stacks[1], source)

    def _card(self, by: Attribution, round_id: int, number: int, draw: int) -> None:
        playing = self.round
        self._only_mini("a single card", "8.C")
        if self.state == "drawing" and number > FIRST_CARDS:
            self._must_be(round_id, "a card")
            self._next_draw(draw)
            playing.drawn.append(draw)
            return  # a third card: it is told with its face
        if (round_id, number) != (playing.round_id, playing.dealt + 1):
            do = f"card {playing.dealt + 1} of round {playing.round_id} is next"
            raise self.refuse(f"card {number} of round {round_id}", "8.D", "8.C", do)
        self.check("deal_card", by)
        self._next_draw(draw)
        playing.drawn += [0] * (playing.dealt - len(playing.drawn)) + [draw]  # those before came by none
        self.deal_card(by)

    def _next_draw(self, draw: int) -> None:
        if draw and draw != self.round.draws + 1:
            raise self.refuse(f"draw {draw}", "8.D", "8.C", f"draw {self.round.draws + 1} is next")
        self.round.draws = draw

    def _voided(self, by: Attribution, round_id: int, reason: str) -> None:
        if round_id != self.round.round_id:
            do = f"round {self.round.round_id} is played"
            raise self.refuse(f"round {round_id} void", "13.D", "13.E", do)
        if self.state == "voided":
            return  # the table knew before the device
        if reason == "too_few_cards" and not self.three_card:
            self.too_few_cards(by)
            return
        self.check("void", by)
        clause, inside = VOID_REASONS.get(reason, ("13.D", True))
        why = reason.replace("_", " ")
        self.void_round(by, clause, "13.E", why, cards_in_device=inside, device_knows=True)

    # -- memory ---------------------------------------------------------------------------------

    def save(self) -> str:
        """All that the table knows, as JSON, for `restore`."""
        return json.dumps(asdict(self.memory), sort_keys=True)

    @classmethod
    def restore(cls, rules: RuleSet, saved: str) -> "TableProcedure":
        """The table as it was; orders that were under way are given again."""
        try:
            memory = SAVED.validate_json(saved)
        except ValidationError as error:
            raise BadSave(f"this is no saved table: {error.errors()[0]['msg']}") from error
        if memory.version != 1:
            raise BadSave(
                f"version {memory.version} of a saved table; restore it with the program that wrote it"
            )
        if memory.ruleset_sha256 != rules.sha256:
            raise BadSave(
                f"the table was saved under another rule set ({memory.ruleset_sha256[:12]}), "
                f"not {rules.name} ({rules.sha256[:12]}); restore it with that one"
            )
        packs = {each.state for each in memory.packs}
        if memory.state not in TABLE_STATES or not packs <= set(PACK_STATES):
            raise BadSave(f"a saved table cannot be {memory.state} with packs {', '.join(sorted(packs))}")
        if memory.round is None and memory.state in ROUND_STATES:
            raise BadSave(f"a saved table cannot be {memory.state} without a round")
        table = cls(rules, memory)
        table._order_again()
        return table

    def _order_again(self) -> None:
        for pack in self.packs():
            if pack.state == "shuffling" and pack.shuffled_by == "machine":
                self.order("shuffle", pack=pack.pack_id)
        playing = self.memory.round
        if playing is None:
            return
        if self.state == "drawing" and self.third_due() is not None:
            self.order_draw()
        elif self.state == "dealing":
            self.order_cards(opening=not playing.stacks and not playing.dealt)
        elif self.state == "counting" and playing.method == DealingMethod.AUTOMATED_SHOE:
            self.order("end-round", round=playing.round_id)


ROUND_STATES = (
    "betting", "dealing", "counting", "revealing", "drawing", "settling", "collecting", "voided",
)  # fmt: skip
