"""What can be wrong at the table, as typed errors: each says what, where, and what to do next."""

from dataclasses import dataclass


class TableError(Exception):
    """The base of every error this package raises."""


class NotACard(TableError, ValueError):
    """A text that names no card."""


class ImpossibleCards(TableError, ValueError):
    """Cards that cannot all have come from these decks, or hands the rules cannot have dealt."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file: where it stands, what it is, what to do."""

    where: str
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.do}"


class FileError(TableError, ValueError):
    """A file that cannot be used; ``problems`` holds everything that is wrong with it."""

    def __init__(self, source: str, problems: tuple[Problem, ...]) -> None:
        super().__init__(f"{source}: " + " | ".join(str(each) for each in problems))
        self.source = source
        self.problems = problems


class RuleSetError(FileError):
    """A rule set that cannot be used."""


class RuleTextError(FileError):
    """The file of a rule text that cannot be used."""


class HousePolicyError(FileError):
    """A house policy that cannot be used, or is laxer than the rule text."""


class UnknownRuleText(TableError, LookupError):
    """No rule text has this key, or no file is there; ``known`` lists the keys there are."""

    def __init__(self, what: str, known: str = "") -> None:
        super().__init__(what)
        self.known = known


class UnknownRuleSet(TableError, LookupError):
    """No rule set of this name is packaged, and no file is there."""


class UnknownWager(TableError, LookupError):
    """A wager that this rule set does not offer."""


class WrongDecks(TableError, ValueError):
    """A number of decks that the game is not played with."""


class RuleViolation(TableError):
    """What the rules forbid: what was refused, the clause that forbids it, and what to do instead."""

    def __init__(self, what: str, clause: str, do: str) -> None:
        super().__init__(f"{what} ({clause}); {do}")
        self.what = what
        self.clause = clause
        self.do = do


class WagerRefused(RuleViolation):
    """A wager that the rules forbid, with its seat."""

    def __init__(self, seat: object, wager: str, what: str, clause: str, do: str) -> None:
        super().__init__(f"seat {seat}, {wager}: {what}", clause, do)
        self.seat = seat
        self.wager = wager


class BadWagers(TableError, ValueError):
    """A file of wagers that cannot be read."""


class BadSave(TableError, ValueError):
    """A saved table that cannot be restored: damaged, or of another rule set."""
