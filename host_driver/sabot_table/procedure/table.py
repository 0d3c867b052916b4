"""The procedure of one table: its parts; opening, closing, idle times; restoration after a restart."""

from functools import cache

from pydantic import TypeAdapter, ValidationError

from sabot_table.errors import BadSave
from sabot_table.house_policy import HousePolicy
from sabot_table.procedure.betting import BettingProcedure
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.equipment import EquipmentProcedure
from sabot_table.procedure.irregularities import IrregularityProcedure
from sabot_table.procedure.memory import PackState, TableMemory
from sabot_table.procedure.mini_procedure import MiniProcedure
from sabot_table.procedure.packs import IN_SHOE, PackProcedure
from sabot_table.procedure.round_end import RoundEndProcedure
from sabot_table.procedure.three_card_procedure import ThreeCardProcedure
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.procedure.voiding import VoidProcedure
from sabot_table.ruleset import RuleSet, load, names
from sabot_table.text_vocabulary import PACK_STATES, TABLE_STATES

OUT_OR_STORED = ("shuffled", "cut", "covered", "loaded", "playing", "discards")
WITHOUT_ROUND = ("closed", "between", "idle")


@cache
def _saved() -> TypeAdapter[TableMemory]:
    """What reads a saved table; made when the first is read, since it takes a while."""
    return TypeAdapter(TableMemory)


class TableProcedure:
    """One table under one rule set. ``table`` holds its state; each part has the actions of one subject.

    A method of a part is one action: what a person did or the device reported, with its attribution. It
    raises `RuleViolation`, and changes nothing, if the rule text forbids the action now or to this role.
    """

    def __init__(
        self, rules: RuleSet, memory: TableMemory | None = None, policy: HousePolicy | None = None
    ) -> None:
        kept = memory or TableMemory(rules.sha256, method=rules.dealing.methods[0])
        table = TableContext(rules, kept, policy)
        self.table = table
        self.packs = PackProcedure(table)
        self.voiding = VoidProcedure(table)
        self.equipment = EquipmentProcedure(table, self.voiding)
        self.betting = BettingProcedure(table, self.packs, self.equipment)
        self.three_card = ThreeCardProcedure(table, self.packs, self.voiding)
        self.mini = MiniProcedure(table, self.packs, self.betting)
        self.irregularities = IrregularityProcedure(table, self.packs, self.mini, self.voiding)
        self.round_end = RoundEndProcedure(table, self.packs, self.mini)

    @classmethod
    def restore(cls, rules: RuleSet, saved: str, policy: HousePolicy | None = None) -> "TableProcedure":
        """The table as `TableContext.save` wrote it; `BadSave` if the text is damaged or of other rules."""
        try:
            memory = _saved().validate_json(saved)
        except ValidationError as error:
            raise BadSave(f"this is no saved table: {error.errors()[0]['msg']}") from error
        if memory.version != 1:
            raise BadSave(
                f"version {memory.version} of a saved table; restore it with the program that wrote it"
            )
        if memory.ruleset_sha256 != rules.sha256:
            before = _name_of_rules(memory.ruleset_sha256)
            raise BadSave(
                f"the table was saved under another rule set: {before}, not {rules.name} as it is now; "
                "restore it with that one"
            )
        packs = {each.state for each in memory.packs}
        if memory.state not in TABLE_STATES or not packs <= set(PACK_STATES):
            raise BadSave(f"a saved table cannot be {memory.state} with packs {', '.join(sorted(packs))}")
        if memory.round is None and memory.state not in WITHOUT_ROUND:
            raise BadSave(f"a saved table cannot be {memory.state} without a round")
        return cls(rules, memory, policy)

    # -- opening, closing, idle -----------------------------------------------------------------

    def open_table(self, by: Attribution) -> None:
        """The floor opens the table."""
        self.table.check("open_table", by)
        self.table.move("open_table", by)

    def close_table(self, by: Attribution) -> None:
        """The floor closes the table; refused while a seat owes vigorish."""
        self.table.check("close_table", by)
        if self.table.memory.marked:
            raise self.table.refuse("closing while vigorish is owed", "collect_vigorish", "collect it first")
        self.table.move("close_table", by)

    def idle(self, by: Attribution) -> None:
        """Nobody plays: cards come out and are spread, except those that a counting device keeps."""
        self.table.check("idle", by)
        for pack in self.table.packs():
            if self._must_spread(pack):
                if pack.state in IN_SHOE:
                    self.packs.forget_shoe()
                self.table.move_pack("spread_idle", pack, by)
                self.table.order("spread", pack=pack.pack_id, face="down unless a player asks")
        self.table.move("idle", by)

    def player_arrives(self, by: Attribution, spread_stored: bool = False) -> None:
        """Somebody wants to play; on request the stored batch is spread too (MDM 5.H(4))."""
        self.table.check("player_arrives", by)
        for pack in self.table.packs():
            if spread_stored and pack.state == "shuffled":
                self.table.move_pack("spread_idle", pack, by)
                self.table.order("spread", pack=pack.pack_id, face="up")
        self.table.move("player_arrives", by)

    def _must_spread(self, pack: PackState) -> bool:
        if pack.state not in OUT_OR_STORED:
            return False
        terms = self.table.rules.fixed.idle
        kept = pack.shuffled_by == "machine" and (pack.counted or not terms.kept_if_counted)
        return not (kept and pack.state in terms.kept_in)


def _name_of_rules(sha256: str) -> str:
    """The rule set of this hash by its name; one that is not installed, or was changed since, by its hash."""
    for name in names():
        if load(name).sha256 == sha256:
            return name
    return f"one that is not installed here (SHA-256 {sha256[:12]}…)"
