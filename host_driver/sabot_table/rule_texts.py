"""The words of rule texts that code and files share. The texts themselves are files (`rule_text_files`)."""

from enum import StrEnum


class GameKind(StrEnum):
    """The two games."""

    THREE_CARD = "three-card"
    MINI = "mini"


class DealingMethod(StrEnum):
    """How cards are dealt."""

    AUTOMATED_SHOE = "automated-shoe"
    MANUAL_SHOE = "manual-shoe"
    HAND = "hand"


class CutRule(StrEnum):
    """Which shuffled cards are cut."""

    UNLESS_MACHINE = "unless-machine"
    ALWAYS = "always"
    NEVER = "never"


class SettlementOrder(StrEnum):
    """In which order wagers are settled."""

    CLOCKWISE = "clockwise"  # seat by seat from the dealer's left
    COUNTER = "counter-clockwise"  # seat by seat from the dealer's right
    LOSERS_FIRST = "losers-first"  # all losing wagers, then from the highest seat down


class TableRole(StrEnum):
    """Who does something at the table."""

    DEALER = "dealer"
    FLOOR = "floor"
    PLAYER = "player"
    DEVICE = "device"
    CONTROLLER = "controller"  # of the progressive meters
    SERVICE = "service"  # a technician
    PROGRAM = "program"  # the program on the table PC, which stands for nobody


class RemovalReason(StrEnum):
    """Why a pack leaves the table. The device is told the same reason."""

    WRONG_COUNT = "wrong_count"
    DAMAGED = "damaged"
    HOURS = "hours"  # used for as long as the rule text allows
    FLOOR_ORDER = "floor_order"


class FloorLevel(StrEnum):
    """What may leave a table for the site's floor. Each level includes those before it."""

    NONE = "none"
    MACHINE = "machine"  # states, faults and counters of the machine
    ROUNDS = "rounds"  # rounds, wagers, settlements and acts, without cards
    ALL = "all"

    def allows(self, other: "FloorLevel") -> bool:
        """Whether what leaves at another level may leave at this one."""
        order = list(FloorLevel)
        return order.index(other) <= order.index(self)
