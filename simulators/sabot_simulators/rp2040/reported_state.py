"""The state of a board's firmware as its events report it: nothing else of it can be seen from outside."""

from typing import Any

from sabot_firmware import shuffler
from sabot_simulators.view import DeckView, View


class ReportedState:
    """States, decks and faults of both halves: shuffler, shoe."""

    def __init__(self, shuffler_state: int, shoe_state: int) -> None:
        self.states = [shuffler_state, shoe_state]
        self._decks = [0, 0]
        self._faults = [0, 0]
        self._changed = 0  # the half that last reported another state: a fault that follows is its fault

    def note(self, name: str, values: tuple[Any, ...]) -> None:
        """Take an event into account."""
        if name in ("shuffler_changed", "shoe_changed"):
            half = self._changed = int(name == "shoe_changed")
            self.states[half], self._decks[half] = values[:2]
        elif name == "fault_raised":
            self._faults[self._changed] = values[0]
        elif name == "fault_cleared":
            self._faults = [0 if fault == values[0] else fault for fault in self._faults]
        elif name == "booted":
            self._faults = [0, 0]

    def view(self, last_round: int = 0, last_played: int = 0, decks: tuple[DeckView, ...] = ()) -> View:
        """What was reported; zero where nothing was."""
        stored = self._decks[0] if self.states[0] in (shuffler.STORED, shuffler.IDLE) else 0
        return View(
            shuffler_state=self.states[0],
            shoe_state=self.states[1],
            shuffler_fault=self._faults[0],
            shoe_fault=self._faults[1],
            feeding_deck=0 if stored else self._decks[0],
            stored_deck=stored,
            shoe_deck=self._decks[1],
            open_round=0,
            stacks=0,
            last_round=last_round,
            last_played=last_played,
            emptying=False,
            decks=decks,
        )
