"""Tracks the states that a device reports, and reports a transition that its tables do not allow.

There are two machines of `transitions`, one for each half, made from the tables of ``sabot_protocol.modes``.
A transition that is not in them is reported and then followed: the tables may be older than the device.
"""

from transitions import Machine

from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import ShoeChanged, ShoeState, ShufflerChanged, ShufflerState
from sabot_protocol.modes import SHOE_STEPS, SHUFFLER_STEPS

UNKNOWN = "unknown"  # nothing was heard yet, or something was missed

Steps = tuple[tuple[str, str, str], ...]


def state_machine(steps: Steps) -> Machine:
    """A machine that may take these steps, and any first one while nothing is known."""
    states = list(dict.fromkeys(source for source, _, _ in steps))
    rows = [{"trigger": target, "source": source, "dest": target} for source, target, _ in steps]
    rows += [{"trigger": target, "source": UNKNOWN, "dest": target} for target in states]
    names = [UNKNOWN, *states]
    return Machine(model=None, states=names, transitions=rows, initial=UNKNOWN, auto_transitions=False)


class _Half:
    """One half's state."""

    def __init__(self, name: str, steps: Steps) -> None:
        self.name = name
        self.state = UNKNOWN
        self._machine = state_machine(steps)

    def observe(self, state: str) -> str | None:
        """The half is in this state now; words if it could not get there from where it was."""
        before, self.state = self.state, state
        if state == before or state in self._machine.get_triggers(before):
            return None
        return f"the {self.name} went from {before} to {state}, which the table of steps does not allow"


class StateTracker:
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

    def forget_states(self) -> None:
        """Events are missing, or the device restarted: nothing is known any more."""
        self._shuffler.state = self._shoe.state = UNKNOWN

    def observe(self, name: str, body: bytes) -> list[str]:
        """An event has come; what is wrong with it, in words."""
        try:
            if name == "booted":
                self.forget_states()
            elif name == ShufflerChanged.NAME:
                words = self._shuffler.observe(_name(ShufflerChanged.unpack(body).state))
                return [] if words is None else [words]
            elif name == ShoeChanged.NAME:
                words = self._shoe.observe(_name(ShoeChanged.unpack(body).state))
                return [] if words is None else [words]
        except FieldError as error:
            return [f"an event that does not fit the schema: {error}"]
        return []


def _name(state: ShufflerState | ShoeState) -> str:
    return state.name.lower()
