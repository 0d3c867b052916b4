"""Acts about seats and wagers before a round, and about players in it.

A round needs none of them: "no more bets" says which seats bet. They are for tables that tell each wager.
"""

from dataclasses import dataclass

from sabot_session.act_base import Act, D, F


@dataclass(frozen=True, slots=True)
class Sit(Act):
    """A player takes a seat."""

    NAME = "sit"
    ROLES = (D,)
    ACTION = "sit"

    seat: int


@dataclass(frozen=True, slots=True)
class Leave(Act):
    """A player leaves. Wagers go back while bets are open; in a round they stay for the floor."""

    NAME = "leave"
    ROLES = (D,)
    ACTION = "leave"

    seat: int


@dataclass(frozen=True, slots=True)
class OpenBets(Act):
    """The cards of the round before are off the layout, and wagers may be made one by one."""

    NAME = "open_bets"
    ROLES = (D,)
    ACTION = "open_bets"


@dataclass(frozen=True, slots=True)
class PlaceWager(Act):
    """A seat makes a wager, or raises it to this amount; bets are opened if they are not."""

    NAME = "place_wager"
    ROLES = (D,)
    ACTION = "place_wager"

    seat: int
    wager: str
    cents: int


@dataclass(frozen=True, slots=True)
class WithdrawWager(Act):
    """A seat takes a wager back before "no more bets"."""

    NAME = "withdraw_wager"
    ROLES = (D,)
    ACTION = "withdraw_wager"

    seat: int
    wager: str


@dataclass(frozen=True, slots=True)
class ReturnBets(Act):
    """All wagers go back before any card is dealt; the round does not take place."""

    NAME = "return_bets"
    ROLES = (D, F)
    ACTION = "return_bets"


@dataclass(frozen=True, slots=True)
class Forfeit(Act):
    """A player broke a rule of the hand: the round's wagers are taken (MD3 11.A(5))."""

    NAME = "forfeit"
    ROLES = (F,)
    ACTION = "forfeit"

    seat: int


@dataclass(frozen=True, slots=True)
class Abandon(Act):
    """The wagers of a player who left the table are taken (MD3 7.B(3))."""

    NAME = "abandon"
    ROLES = (F,)
    ACTION = "abandon"

    seat: int


@dataclass(frozen=True, slots=True)
class Idle(Act):
    """Nobody plays. What the machine shuffled and counted stays where it is (MD3 5.F-H)."""

    NAME = "idle"
    ROLES = (D,)
    ACTION = "idle"


@dataclass(frozen=True, slots=True)
class PlayerArrives(Act):
    """Somebody wants to play at an idle table."""

    NAME = "player_arrives"
    ROLES = (D,)
    ACTION = "player_arrives"


ACTS: tuple[type[Act], ...] = (
    Sit, Leave, OpenBets, PlaceWager, WithdrawWager, ReturnBets, Forfeit, Abandon, Idle, PlayerArrives,
)  # fmt: skip
