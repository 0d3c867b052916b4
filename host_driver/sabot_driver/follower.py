"""Follows the states a device reports and notices a step that it should not be able to take.

Two machines of `transitions`, one for each half; the table below is all they know. A step that is not in it
is told and then followed: the device is the truth, and the table may be old.
"""

from typing import Any

from transitions import Machine

from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import ShoeChanged, ShoeState, ShufflerChanged, ShufflerState

UNKNOWN = "unknown"  # nothing was heard yet, or something was missed

# Where each half can go from a state by its own work. Anything can stop it: see STOPS.
SHUFFLER_STEPS = {
    "starting": ("idle", "stored"),
    "idle": ("feeding",),
    "feeding": ("storing", "idle"),
    "storing": ("stored",),
    "stored": ("idle",),
    "jammed": ("idle", "stored"),
    "door_open": ("idle", "stored", "feeding", "storing"),
    "service": ("starting", "idle"),
    "out_of_order": ("starting",),
}
SHOE_STEPS = {
    "starting": ("empty", "ready", "round_void"),
    "empty": ("loading",),
    "loading": ("ready", "empty"),
    "ready": ("round_open", "dispensing", "ejecting_stub", "empty"),
    "round_open": ("dispensing", "ejecting_stub", "round_void", "ready"),
    "dispensing": ("stack_waiting", "round_void"),
    "stack_waiting": ("round_open", "ready", "dispensing", "round_void"),
    "ejecting_stub": ("empty", "loading", "round_void"),
    "round_void": ("ejecting_stub", "empty", "ready"),
    "jammed": ("empty", "ready", "round_void"),
    "door_open": ("empty", "ready", "round_void"),
    "service": ("starting", "empty"),
    "out_of_order": ("starting",),
}
STOPS = ("jammed", "door_open", "service", "out_of_order")


Steps = dict[str, tuple[str, ...]]


def machine(steps: Steps, kind: type[Machine] = Machine, stops: bool = True, **named: Any) -> Machine:
    """A machine that may take these steps; with ``stops``, it may also be stopped from any state."""
    rows = []
    for source, targets in steps.items():
        for target in dict.fromkeys(targets + STOPS if stops else targets):
            if target != source:
                rows.append({"trigger": target, "source": source, "dest": target})
    states = list(steps)
    if stops:
        states.insert(0, UNKNOWN)
        rows += [{"trigger": target, "source": UNKNOWN, "dest": target} for target in steps]
    named = {"model": None, "initial": states[0], "auto_transitions": False, **named}
    return kind(states=states, transitions=rows, **named)


class _Half:
    """One half's state."""

    def __init__(self, name: str, steps: Steps) -> None:
        self.name = name
        self.state = UNKNOWN
        self._machine = machine(steps)

    def saw(self, state: str) -> str | None:
        """The half is in this state now; words if it could not get there from where it was."""
        before, self.state = self.state, state
        if state == before or state in self._machine.get_triggers(before):
            return None
        return f"the {self.name} went from {before} to {state}, which the table of steps does not allow"


class Follower:
    """What a device was last heard to be doing."""

    def __init__(self) -> None:
        self._shuffler = _Half("shuffler", SHUFFLER_STEPS)
        self._shoe = _Half("shoe", SHOE_STEPS)

    @property
    def shuffler(self) -> str:
        """The shuffler half's state by its name, ``unknown`` before the first event."""
        return self._shuffler.state

    @property
    def shoe(self) -> str:
        """The shoe half's state by its name."""
        return self._shoe.state

    def lost_sight(self) -> None:
        """Events are missing, or the device restarted: nothing is known any more."""
        self._shuffler.state = self._shoe.state = UNKNOWN

    def saw(self, name: str, body: bytes) -> list[str]:
        """An event has come; what is wrong with it, in words."""
        try:
            if name == "booted":
                self.lost_sight()
            elif name == ShufflerChanged.NAME:
                words = self._shuffler.saw(_name(ShufflerChanged.unpack(body).state))
                return [] if words is None else [words]
            elif name == ShoeChanged.NAME:
                words = self._shoe.saw(_name(ShoeChanged.unpack(body).state))
                return [] if words is None else [words]
        except FieldError as error:
            return [f"an event that does not fit the schema: {error}"]
        return []


def _name(state: ShufflerState | ShoeState) -> str:
    return state.name.lower()
