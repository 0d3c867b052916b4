"""The device and the way of dealing: versions, failures, the out-of-order sign, the fall-back (MD3 13.E)."""

from collections.abc import Mapping
from typing import Literal

from sabot_table.procedure.context import TableContext
from sabot_table.procedure.vocabulary import Attribution, DeviceUnit
from sabot_table.procedure.voiding import VoidProcedure
from sabot_table.rule_texts import DealingMethod
from sabot_table.versions import check_components


class EquipmentProcedure:
    """Which device stands at the table, which of its units failed, and how cards are dealt."""

    def __init__(self, table: TableContext, voiding: VoidProcedure) -> None:
        self.table = table
        self._voiding = voiding

    def identify(self, by: Attribution, model: str, versions: Mapping[str, str]) -> None:
        """Which device stands here; one that the rule set does not allow is refused (WA3 versions)."""
        self.table.check("identify", by)
        check_components(self.table.rules, model, versions)
        self.table.memory.model, self.table.memory.versions = model, dict(versions)
        self.table.move("identify", by)

    def unit_failed(self, by: Attribution, unit: DeviceUnit) -> None:
        """A half of the device cannot be used. A shoe that fails in a round it deals voids it (MD3 13.D)."""
        self.table.check("unit_failed", by)
        self.table.memory.units[unit] = "failed"
        self.table.move("unit_failed", by)
        self.table.order("mark-out-of-order", unit=str(unit))
        playing = self.table.memory.round
        deals = playing is not None and playing.method == DealingMethod.AUTOMATED_SHOE
        if unit is DeviceUnit.SHOE and deals and self.table.state in ("dealing", "counting", "drawing"):
            self._voiding.void_round(by, "shoe_failed", "the shoe failed", cards_in_device=True)

    def mark_out_of_order(self, by: Attribution, unit: DeviceUnit, how: Literal["covered", "sign"]) -> None:
        """The failed half is covered, or has its sign."""
        self.table.check("mark_out_of_order", by)
        if unit not in self.table.memory.units:
            raise self.table.refuse(f"the {unit} works", "mark_out_of_order", "mark what has failed")
        self.table.memory.units[unit] = how
        self.table.move("mark_out_of_order", by)

    def clear_jam(self, by: Attribution, unit: DeviceUnit, tool: bool = False) -> None:
        """A jam was cleared. Without a tool it is the dealer's and the floor countersigns; else service's."""
        action = "clear_jam_with_tool" if tool else "clear_jam"
        self.table.check(action, by)
        self.table.note(f"{action} {unit}", by)

    def repaired(self, by: Attribution, unit: DeviceUnit) -> None:
        """The half works again."""
        self.table.check("repaired", by)
        self.table.memory.units.pop(unit, None)
        self.table.move("repaired", by)

    def change_method(self, by: Attribution, method: DealingMethod) -> None:
        """Another way of dealing; its limit of hours holds at once."""
        self.table.check("change_method", by)
        if method not in self.table.rules.dealing.methods:
            allowed = ", ".join(self.table.rules.dealing.methods)
            raise self.table.refuse(f"dealing by {method}", "methods", f"this table deals by {allowed}")
        self.table.check_marked()
        if method is DealingMethod.HAND and DeviceUnit.SHUFFLER in self.table.memory.units:
            raise self.table.refuse(
                "dealing from the hand without a shuffler", "hand_dealing", "use a manual shoe"
            )
        if method is DealingMethod.AUTOMATED_SHOE and self.table.memory.units:
            raise self.table.refuse(
                "the device is out of order", "mark_out_of_order", "use another method, or repair it"
            )
        self.table.memory.method = method
        self.table.move("change_method", by)

    def check_device(self) -> None:
        """Refuse to play by a method that needs what is out of order or not identified."""
        if self.table.method is DealingMethod.AUTOMATED_SHOE and self.table.memory.units:
            raise self.table.refuse(
                "the device is out of order", "mark_out_of_order", "mark it and change the method"
            )
        self.table.check_marked()
        if self.table.method is DealingMethod.HAND and DeviceUnit.SHUFFLER in self.table.memory.units:
            raise self.table.refuse(
                "dealing from the hand without a shuffler", "hand_dealing", "use a manual shoe"
            )
        if self.table.method is DealingMethod.AUTOMATED_SHOE:
            check_components(self.table.rules, self.table.memory.model, self.table.memory.versions)
