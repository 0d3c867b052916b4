"""Belief against truth: every claim the device makes is compared with where the cards really are.

A claim is a count the device shows or a round it calls correct. What this machine's sensors cannot see has a
name here, with the reason; a claim that is wrong for such a reason is no defect of the firmware, and is
counted apart. There is no other excuse.
"""

from dataclasses import dataclass

from sabot_firmware import shoe, shuffler
from sabot_firmware.rounds import CORRECT
from sabot_simulators.in_process import LockStep

UNSEEN = {
    "aligned_at_the_exit": (
        "two cards exactly one under the other pass the exit as one; only the count at the round's end "
        "tells, and not if a card too many is in the same deck"
    ),
    "laid_onto_a_stack": "a card that a hand lays onto a stack that waits in the exit tray covers no sensor",
    "behind_a_closed_door": (
        "nothing counts what lies on the shelf or in the shoe: a card that leaves or joins it without a door "
        "being opened is found when the stub is counted, not before"
    ),
    "composition": "a count is not a composition: a second copy in the place of another card is a card",
}


@dataclass(frozen=True)
class WrongClaim:
    """A claim that the mechanism contradicts."""

    what: str
    at_us: int
    faults: tuple[str, ...]
    """The faults that had happened."""
    unseen: str | None
    """The name of what no sensor could see, if that is the reason."""


class Watch:
    """Looks at every report of a device."""

    def __init__(self, device: LockStep) -> None:
        self._device = device
        self._machine = device.machine
        self.claims = 0
        self.wrong: list[WrongClaim] = []
        self._stacks: list[int] = []  # what really lay in the exit tray, stack by stack
        self._laid_on = False
        device.each_report = self.report

    def report(self, name: str, values: tuple[int | str, ...]) -> None:
        """Compare what was just reported."""
        machine = self._machine
        if name == "deck_counted":
            self._claim(f"{values[2]} in the chamber", values[2] == len(machine.stack()))
        elif name == "bets_closed":
            self._stacks = []
        elif name == "stack_dispensed":
            self._stacks.append(len(machine.exit_tray))
        elif name == "stack_taken":
            self._each_deck()
        elif name == "round_ended":
            self._round_ended(int(values[1]), int(values[2]), int(values[3]))
        elif name == "deck_delivered" and values[1] == values[2]:
            self._claim(f"{values[1]} delivered", len(machine.exit_tray) == values[1])
        elif name in ("shuffler_changed", "shoe_changed"):
            self._each_deck()

    def _round_ended(self, verdict: int, stub: int, count: int) -> None:
        if verdict != CORRECT:
            return
        whole = sum(self._stacks) + len(self._machine.exit_tray)
        right = all(cards == 3 for cards in self._stacks) and len(self._machine.exit_tray) == stub
        self._claim(f"a correct round of {count}", right and whole == count)

    def _each_deck(self) -> None:
        """Wherever a deck is proved to be, it is."""
        device, machine = self._device, self._machine
        moving = device.shoe_state in (shoe.DISPENSING, shoe.EJECTING, shoe.LOADING)
        if moving or device.shuffler_state == shuffler.STORING:
            return  # cards are between two places
        for deck in device.view().decks:
            if not deck.proved:
                continue
            cards = deck.cards
            self.claims += 1
            chamber, store = len(machine.stack()), len(machine.store)
            if cards[2] and cards[2] != chamber:
                self._claim(f"{cards[2]} in the chamber", False)
            if cards[3] and cards[3] != store:
                self._claim(f"{cards[3]} on the shelf", False)
            if cards[4] and not cards[5] + cards[6] and cards[4] != machine.count("shoe"):
                self._claim(f"{cards[4]} in the shoe", False)

    def _claim(self, what: str, right: bool) -> None:
        self.claims += 1
        if not right:
            struck = [each.fault for each in self._machine.faults.happened]
            happened = tuple(f"{fault.kind}@{fault.place}" for fault in struck)
            at_us = self._machine.agenda.now_us
            self.wrong.append(WrongClaim(what, at_us, happened, unseen_class(what, happened)))


def unseen_class(what: str, happened: tuple[str, ...]) -> str | None:
    """Which of the things that no sensor can see makes this claim wrong; None if the faults are visible."""
    kinds = {each.partition("@")[0] for each in happened if not each.endswith("@tray")}
    if what.endswith(("on the shelf", "in the shoe")) and kinds & {"missing_card", "extra_card"}:
        return "behind_a_closed_door"
    kinds = {each.partition("@")[0] for each in happened}
    if "aligned_double@shoe" in happened and kinds & {"extra_card", "duplicate_card"}:
        return "aligned_at_the_exit"
    if "hand_in_exit" in kinds:
        return "laid_onto_a_stack"
    return None
