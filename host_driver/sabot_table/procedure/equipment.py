"""The device and the way of dealing: versions, failures, the out-of-order sign, the fall-back (MD3 13.E)."""

from collections.abc import Mapping
from typing import Literal

from sabot_table.procedure.vocabulary import Attribution, DeviceUnit
from sabot_table.procedure.voiding import VoidProcedure
from sabot_table.rule_texts import DealingMethod
from sabot_table.versions import check_components


class EquipmentProcedure(VoidProcedure):
    """What is known of the device, and by what method cards are dealt."""

    def identify(self, by: Attribution, model: str, versions: Mapping[str, str]) -> None:
        """Which device stands here; one that the rule set does not allow is refused (WA3 versions)."""
        self.check("identify", by)
        check_components(self.rules, model, versions)
        self.memory.model, self.memory.versions = model, dict(versions)
        self.move("identify", by)

    def unit_failed(self, by: Attribution, unit: DeviceUnit) -> None:
        """A half of the device cannot be used. A shoe that fails in a round it deals voids it (MD3 13.D)."""
        self.check("unit_failed", by)
        self.memory.units[unit] = "failed"
        self.move("unit_failed", by)
        self.order("mark-out-of-order", unit=str(unit))
        playing = self.memory.round
        deals = playing is not None and playing.method == DealingMethod.AUTOMATED_SHOE
        if unit is DeviceUnit.SHOE and deals and self.state in ("dealing", "counting", "drawing"):
            self.void_round(by, "13.D", "13.E", "the shoe failed", cards_in_device=True)

    def mark_out_of_order(self, by: Attribution, unit: DeviceUnit, how: Literal["covered", "sign"]) -> None:
        """The failed half is covered, or has its sign."""
        self.check("mark_out_of_order", by)
        if unit not in self.memory.units:
            raise self.refuse(f"the {unit} works", "13.E", "5.A", "mark what has failed")
        self.memory.units[unit] = how
        self.move("mark_out_of_order", by)

    def repaired(self, by: Attribution, unit: DeviceUnit) -> None:
        """The half works again."""
        self.check("repaired", by)
        self.memory.units.pop(unit, None)
        self.move("repaired", by)

    def change_method(self, by: Attribution, method: DealingMethod) -> None:
        """Another way of dealing; its limit of hours holds at once."""
        self.check("change_method", by)
        if method not in self.rules.dealing.methods:
            allowed = ", ".join(self.rules.dealing.methods)
            raise self.refuse(f"dealing by {method}", "5.C", "8", f"this table deals by {allowed}")
        self.check_marked()
        if method is DealingMethod.HAND and DeviceUnit.SHUFFLER in self.memory.units:
            raise self.refuse("dealing from the hand without a shuffler", "9.A", "8", "use a manual shoe")
        if method is DealingMethod.AUTOMATED_SHOE and self.memory.units:
            raise self.refuse("the device is out of order", "13.E", "5.A", "use another method, or repair it")
        self.memory.method = method
        self.move("change_method", by)

    def check_device(self) -> None:
        """Refuse to play by a method that needs what is out of order or not identified."""
        if self.method is DealingMethod.AUTOMATED_SHOE and self.memory.units:
            raise self.refuse("the device is out of order", "13.E", "5.A", "mark it and change the method")
        self.check_marked()
        if self.method is DealingMethod.HAND and DeviceUnit.SHUFFLER in self.memory.units:
            raise self.refuse("dealing from the hand without a shuffler", "9.A", "8", "use a manual shoe")
        if self.method is DealingMethod.AUTOMATED_SHOE:
            check_components(self.rules, self.memory.model, self.memory.versions)
