"""The modes of the two halves: every step from state to state there is, and what each command asks for.

All steps are here: the firmware takes no other one (``IllegalTransition``), and a host that sees another one
has found a defect. When a step is taken is decided in the firmware. The diagrams of ``docs/modes.md`` are
generated from these tables.
"""

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal

# (from, to, when)
SHUFFLER_STEPS = (
    ("starting", "idle", "sound and empty"),
    ("starting", "unproved", "cards inside"),
    ("starting", "jammed", "a switch or sensor is not as it must be"),
    ("starting", "door_open", "the door is open"),
    ("starting", "out_of_order", "it is marked so"),
    ("idle", "feeding", "shuffle"),
    ("idle", "door_open", "the door is opened"),
    ("idle", "jammed", "a fault of the supply or the board"),
    ("idle", "unproved", "a sensor sees cards"),
    ("idle", "starting", "self_test"),
    ("idle", "service", "service_mode"),
    ("idle", "out_of_order", "mark_out_of_order"),
    ("feeding", "storing", "the tray is empty and the counts agree"),
    ("feeding", "holding", "the same, and the other deck is on the shelf"),
    ("feeding", "jammed", "a fault, the door, or a wrong count"),
    ("holding", "storing", "the shelf is free"),
    ("holding", "jammed", "a fault, or the door"),
    ("storing", "stored", "the deck is on the shelf"),
    ("storing", "unproved", "cards on their way out are on the shelf"),
    ("storing", "jammed", "a fault, or the door"),
    ("stored", "idle", "the pusher takes the deck"),
    ("stored", "feeding", "shuffle"),
    ("stored", "jammed", "the door, or a sensor that disagrees"),
    ("stored", "unproved", "empty_machine"),
    ("jammed", "starting", "clear_fault"),
    ("jammed", "service", "service_mode"),
    ("jammed", "out_of_order", "mark_out_of_order"),
    ("door_open", "idle", "closed, nothing inside"),
    ("door_open", "unproved", "closed, cards inside"),
    ("door_open", "jammed", "a fault of the supply or the board"),
    ("door_open", "service", "service_mode"),
    ("door_open", "out_of_order", "mark_out_of_order"),
    ("unproved", "storing", "empty_machine"),
    ("unproved", "idle", "the cards are out"),
    ("unproved", "door_open", "the door is opened"),
    ("unproved", "jammed", "a fault"),
    ("unproved", "service", "service_mode"),
    ("unproved", "out_of_order", "mark_out_of_order"),
    ("service", "starting", "service_mode"),
    ("service", "jammed", "a fault of the supply or the board"),
    ("out_of_order", "starting", "return_to_service"),
    ("out_of_order", "service", "service_mode"),
)

SHOE_STEPS = (
    ("starting", "empty", "sound and empty"),
    ("starting", "blocked", "sound, and a card is not accounted for"),
    ("starting", "unproved", "cards inside"),
    ("starting", "jammed", "a switch or sensor is not as it must be"),
    ("starting", "door_open", "the door is open"),
    ("starting", "out_of_order", "it is marked so"),
    ("empty", "loading", "a proved deck is on the shelf; deliver_deck"),
    ("empty", "door_open", "the door is opened"),
    ("empty", "jammed", "a fault of the supply or the board"),
    ("empty", "unproved", "a sensor sees cards"),
    ("empty", "starting", "self_test"),
    ("empty", "service", "service_mode"),
    ("empty", "out_of_order", "mark_out_of_order"),
    ("loading", "ready", "the deck is in the shoe"),
    ("loading", "unproved", "cards on their way out are in the shoe"),
    ("loading", "jammed", "a fault, or the door"),
    ("ready", "round_open", "open_round, simulate_round"),
    ("ready", "dispensing", "burn_cards"),
    ("ready", "ejecting", "a deck to be delivered, end_shoe, empty_machine"),
    ("ready", "jammed", "the door, a hand at the exit, a fault"),
    ("round_open", "dispensing", "dispense_stack, draw_cards"),
    ("round_open", "ejecting", "end_round"),
    ("round_open", "ready", "end_round, dealt card by card"),
    ("round_open", "unproved", "void_round"),
    ("round_open", "jammed", "the door, a hand at the exit, a fault"),
    ("dispensing", "stack_waiting", "the stack is complete"),
    ("dispensing", "stub_waiting", "dealt card by card, the shoe is out of cards"),
    ("dispensing", "jammed", "a fault, the door, a stack taken too early"),
    ("stack_waiting", "round_open", "it is taken"),
    ("stack_waiting", "ready", "burnt cards are taken"),
    ("stack_waiting", "unproved", "void_round"),
    ("stack_waiting", "jammed", "the door, a hand at the exit, a fault"),
    ("ejecting", "stub_waiting", "no more cards come"),
    ("ejecting", "jammed", "a fault, or the door"),
    ("stub_waiting", "empty", "it is taken"),
    ("stub_waiting", "blocked", "it is taken, and a card of the deck is not accounted for"),
    ("stub_waiting", "jammed", "the door, or a fault"),
    ("blocked", "ejecting", "purge"),
    ("blocked", "empty", "the deck, fed again, is whole; path_inspected"),
    ("blocked", "door_open", "the door is opened"),
    ("blocked", "unproved", "a sensor sees cards"),
    ("blocked", "jammed", "a fault of the supply or the board"),
    ("blocked", "service", "service_mode"),
    ("blocked", "out_of_order", "mark_out_of_order"),
    ("unproved", "ejecting", "empty_machine"),
    ("unproved", "ready", "load_shoe"),
    ("unproved", "empty", "the cards are out"),
    ("unproved", "door_open", "the door is opened"),
    ("unproved", "jammed", "a fault"),
    ("unproved", "service", "service_mode"),
    ("unproved", "out_of_order", "mark_out_of_order"),
    ("jammed", "starting", "clear_fault"),
    ("jammed", "service", "service_mode"),
    ("jammed", "out_of_order", "mark_out_of_order"),
    ("door_open", "empty", "closed, nothing inside"),
    ("door_open", "blocked", "closed, and a card is not accounted for"),
    ("door_open", "unproved", "closed, cards inside"),
    ("door_open", "jammed", "a fault of the supply or the board"),
    ("door_open", "service", "service_mode"),
    ("door_open", "out_of_order", "mark_out_of_order"),
    ("service", "starting", "service_mode"),
    ("service", "jammed", "a fault of the supply or the board"),
    ("out_of_order", "starting", "return_to_service"),
    ("out_of_order", "service", "service_mode"),
)

_AT_REST = ("idle", "jammed", "door_open", "unproved")
_SHOE_AT_REST = ("empty", "blocked", "jammed", "door_open", "unproved")

# What a command asks of the halves: (command, states of the shuffler, states of the shoe); none: any
COMMANDS = (
    ("set_game", ("idle",), ("empty",)),
    ("shuffle", ("idle", "stored"), ()),
    ("shuffle_with", ("idle", "stored"), ()),
    ("open_round", (), ("ready",)),
    ("simulate_round", (), ("ready",)),
    ("close_bets", (), ("round_open", "stack_waiting")),
    ("dispense_stack", (), ("round_open",)),
    ("draw_cards", (), ("round_open",)),
    ("end_round", (), ("round_open",)),
    ("void_round", (), ("round_open", "stack_waiting")),
    ("burn_cards", (), ("ready",)),
    ("deliver_deck", (), ("empty",)),
    ("load_shoe", (), ("unproved",)),
    ("end_shoe", (), ("ready",)),
    ("purge", (), ("blocked",)),
    ("path_inspected", (), ("blocked",)),
    ("empty_machine", ("idle", "stored", "unproved"), ("empty", "ready", "unproved")),
    ("mark_out_of_order", _AT_REST, _SHOE_AT_REST),
    ("return_to_service", ("out_of_order",), ("out_of_order",)),
    ("self_test", ("idle",), ("empty",)),
    ("jog", ("service",), ("service",)),
    ("calibrate", ("service",), ("service",)),
    ("start_loader", ("idle", "service", "out_of_order"), ("empty", "service", "out_of_order")),
)

SHUFFLER = enum_number("Half", "shuffler")
SHOE = enum_number("Half", "shoe")


def mask_of(enum: str, names: "tuple[str, ...]") -> int:
    """Bit n for each state n of the names."""
    mask = 0
    for name in names:
        mask |= 1 << enum_number(enum, name)
    return mask


def steps_of(enum: str, steps: "tuple[tuple[str, str, str], ...]") -> "tuple[int, ...]":
    """For each state the mask of the states that may follow it."""
    after = [0] * 16
    for start, end, _ in steps:
        after[enum_number(enum, start)] |= 1 << enum_number(enum, end)
    return tuple(after)


# Bit n for each allowed state n of (shuffler, shoe), 0 for any: computed once, because a card may move while
# a command is checked.
_ALLOWED = {
    command: (mask_of("ShufflerState", shuffler_states), mask_of("ShoeState", shoe_states))
    for command, shuffler_states, shoe_states in COMMANDS
}


def check_command(name: str, shuffler: int, shoe: int) -> None:
    """Raise Refusal, with a mask of the allowed states, if the state of a half does not allow a command."""
    allowed = _ALLOWED.get(name)
    if allowed is not None:
        _check_half(allowed[0], shuffler, SHUFFLER)
        _check_half(allowed[1], shoe, SHOE)


def _check_half(allowed: int, state: int, half: int) -> None:
    if allowed and not allowed >> state & 1:
        raise Refusal("wrong_state", (state, allowed, half))
