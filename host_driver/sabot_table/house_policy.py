"""A house policy: what a house allows less than its rule text. It may only be stricter.

A policy is a TOML file:

    name = "pit-2"

    [acts.shoe_failed]
    who = "floor"              # some of those whom the text allows
    countersign = true         # also where the text does not ask for it

    [hours]
    shoe = 6                   # at most what the rule set allows

    [limits]
    player = 500000            # cents that one player may wager in a round

    [limits.wagers.ante]
    least = 1500
    most = 100000

    [floor]
    leaves = "rounds"          # at most what the text lets leave the table
    notes = false              # also where the text lets notes in
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, PrivateAttr

from sabot_table.errors import HousePolicyError, Problem, WagerRefused
from sabot_table.rule_text_files import ActionRule, Filled, FloorTerms, Positive, Roles
from sabot_table.rule_texts import DealingMethod, FloorLevel, TableRole
from sabot_table.ruleset import RuleSet
from sabot_table.toml_files import Part, read_text, read_toml, shaped

PEOPLE = (TableRole.DEALER, TableRole.FLOOR, TableRole.PLAYER, TableRole.SERVICE)


class ActPolicy(Part):
    """Who of those whom the text allows may do an act here, and whether the floor countersigns it."""

    who: Roles | None = None
    countersign: bool | None = None


class HourPolicy(Part):
    """How long a pack may be used here."""

    shoe: Positive | None = None
    hand: Positive | None = None


class WagerLimit(Part):
    """The least and the most of one kind of wager, in cents."""

    least: Positive | None = None
    most: Positive | None = None


class LimitPolicy(Part):
    """The operator's limits: of all wagers of one player in a round, and of each kind of wager."""

    player: Positive | None = None
    wagers: dict[str, WagerLimit] = Field(default_factory=dict)


class FloorPolicy(Part):
    """What may leave the table here, and whether notes may come in."""

    leaves: FloorLevel | None = None
    notes: bool | None = None


class HousePolicy(Part):
    """What one house allows; `rows` and `hours` are what the table goes by."""

    name: Filled
    acts: dict[str, ActPolicy] = Field(default_factory=dict)
    hours: HourPolicy = HourPolicy()
    limits: LimitPolicy = LimitPolicy()
    floor: FloorPolicy = FloorPolicy()
    _sha256: str = PrivateAttr("")

    @property
    def sha256(self) -> str:
        """The hash of the text that it was read from, by which a record names it."""
        return self._sha256

    def rows(self, rows: Mapping[str, ActionRule]) -> dict[str, ActionRule]:
        """The rows of a text as this house allows them. What a device reports is never forbidden."""
        return {action: self._row(row) for action, row in rows.items()}

    def _row(self, row: ActionRule) -> ActionRule:
        policy = self.acts.get(row.action)
        if policy is None:
            return row
        who = row.who
        if policy.who is not None:
            who = tuple(each for each in row.who if each in policy.who or each not in PEOPLE)
        return row.model_copy(update={"who": who, "countersign": row.countersign or bool(policy.countersign)})

    def check_most(self, rules: RuleSet, seat: int, made: Mapping[str, int]) -> None:
        """Refuse wagers of a seat above the operator's limits."""
        for wager, cents in made.items():
            most = self.limits.wagers.get(wager, WagerLimit()).most
            if most is not None and cents > most:
                clause = rules.fixed.clause("limits")
                raise WagerRefused(seat, wager, f"{cents} cents", clause, f"stake {most} cents at most")
        total, most = sum(made.values()), self.limits.player
        if most is not None and total > most:
            clause = rules.fixed.clause("limits")
            what = f"{total} cents in all"
            raise WagerRefused(seat, "all wagers", what, clause, f"a player may stake {most} cents at most")

    def check_least(self, rules: RuleSet, seat: int, made: Mapping[str, int]) -> None:
        """Refuse wagers of a seat below the operator's limits."""
        for wager, cents in made.items():
            least = self.limits.wagers.get(wager, WagerLimit()).least
            if least is not None and cents < least:
                clause = rules.fixed.clause("limits")
                raise WagerRefused(seat, wager, f"{cents} cents", clause, f"stake {least} cents at least")

    def most_hours(self, method: DealingMethod, allowed: int | None) -> int | None:
        """How long a pack may be used by a method; ``allowed`` is the rule set's limit."""
        own = self.hours.hand if method is DealingMethod.HAND else self.hours.shoe
        return own if allowed is None else allowed if own is None else min(own, allowed)

    def floor_terms(self, text: FloorTerms) -> FloorTerms:
        """What may leave and come in here; never more than the text allows."""
        leaves = self.floor.leaves
        if leaves is None or not text.leaves.allows(leaves):
            leaves = text.leaves
        return FloorTerms(leaves=leaves, notes=text.notes and self.floor.notes is not False)


def load_policy(path: Path, rules: RuleSet) -> HousePolicy:
    """The policy of a file; `HousePolicyError` names everything that is wrong or laxer than the text."""
    return parse_policy(read_text(path, HousePolicyError), rules, str(path))


def parse_policy(text: str, rules: RuleSet, source: str = "house policy") -> HousePolicy:
    """The policy of a file's text, checked against the rule set of its table."""
    policy = shaped(HousePolicy, read_toml(text, source, HousePolicyError), source, HousePolicyError)
    problems = tuple(_problems(policy, rules))
    if problems:
        raise HousePolicyError(source, problems)
    policy._sha256 = hashlib.sha256(text.encode()).hexdigest()
    return policy


def _problems(policy: HousePolicy, rules: RuleSet) -> Iterator[Problem]:
    rows = {**rules.fixed.rows, **rules.fixed.pack_rows}
    for action, given in policy.acts.items():
        where, row = f"acts.{action}", rows.get(action)
        if row is None:
            yield Problem(where, f"is no act of {rules.text}", f"give some of {', '.join(sorted(rows))}")
            continue
        people = [each for each in row.who if each in PEOPLE]
        for role in given.who or ():
            if role not in people:
                allowed = ", ".join(people) or "nobody"
                yield Problem(f"{where}.who", f"adds {role}", f"leave only some of {allowed} ({row.clause})")
        if given.countersign is False and row.countersign:
            do = f"leave it out: the text asks for it ({row.clause})"
            yield Problem(f"{where}.countersign", "is false", do)
    for wager, limit in policy.limits.wagers.items():
        where = f"limits.wagers.{wager}"
        if wager not in rules.offered:
            yield Problem(where, "is no wager of this table", f"give some of {', '.join(rules.offered)}")
        if limit.least is not None and limit.most is not None and limit.least > limit.most:
            yield Problem(where, "has a least above its most", "give a least that is not higher")
    floor, text = policy.floor, rules.fixed.floor
    if floor.leaves is not None and not text.leaves.allows(floor.leaves):
        do = f"give {text.leaves} or less: {rules.text} allows no more"
        yield Problem("floor.leaves", f"is {floor.leaves}", do)
    if floor.notes and not text.notes:
        yield Problem("floor.notes", "is true", f"leave it out: {rules.text} lets no note in")
    for key, hours, most in (
        ("shoe", policy.hours.shoe, rules.cards.hours_shoe),
        ("hand", policy.hours.hand, rules.cards.hours_hand),
    ):
        if hours is not None and most is not None and hours > most:
            do = f"give {most} at most ({rules.fixed.clause('hours')})"
            yield Problem(f"hours.{key}", f"is {hours}", do)
