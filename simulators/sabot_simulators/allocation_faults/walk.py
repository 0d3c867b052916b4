"""A walk through a table's day, message by message; each message is tried with every allocation failing.

A trial is made in a copy of the device (``FailingDevice.in_a_copy``): the n-th allocation that the message
causes finds no memory, alone or with all behind it. Then it is checked that

- the host has a session again and the device still has its keys,
- the host is told the truth about its command, which was executed at most once,
- the oracle finds no wrong claim; at some trials the dealer plays on, up to the next correct round.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sabot_firmware import hardware, shoe
from sabot_protocol import frame, schema
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators.allocation_faults.failing_device import FailingDevice
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import CommandValue, WaitTimeout
from sabot_simulators.oracle import Oracle
from sabot_simulators.simulated_host import CommandFailed

HANDS = 3
NOT_DONE = ("not_executed", "device_rebooted")
ANSWERED = "answered"
STUCK = "stuck"
RED = enum_number("Back", "red")
BLUE = enum_number("Back", "blue")


@dataclass
class MessageFigures:
    """What came of one message with each of its allocations failing."""

    message: str
    allocations: int = 0
    trials: int = 0
    restarts: int = 0
    """Trials after which the device began a new life."""
    absorbed: int = 0
    """Trials in which no memory was found and the device went on."""
    outcomes: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, trial: dict[str, Any]) -> None:
        """Count one trial."""
        self.trials += 1
        self.restarts += bool(trial["restarts"])
        self.absorbed += bool(trial["failures"]) and not trial["restarts"]
        self.outcomes[trial["outcome"]] = self.outcomes.get(trial["outcome"], 0) + 1
        self.wrong.extend(f"n {trial['n']}, lasting {trial['lasting']}: {each}" for each in trial["wrong"])


class Walk:
    """A device and its people. ``every`` tries only each so many-th allocation, the last one always."""

    def __init__(self, device: FailingDevice, every: int = 1, plays_on_every: int = 25) -> None:
        self.device = device
        self.dealer = Dealer(device, HANDS)
        self.oracle = Oracle(device)
        self.figures: list[MessageFigures] = []
        self._every = every
        self._plays_on_every = plays_on_every
        self._trials = 0

    def request(self, name: str, *values: CommandValue, role: str = "table", playing: bool = False) -> None:
        """Try a request with failing allocations, then send it in earnest. A refusal is an answer, too."""
        label = f"{name} ({role})" if role != "table" else name
        once = CODEC.named(name).kind == "command"  # a query may be executed again
        self.message(label, lambda: self._ask(name, *values, role=role), name if once else "", playing)

    def message(self, label: str, act: Callable[[], str], command: str = "", playing: bool = False) -> None:
        """The same for anything that sends bytes to the device and tells the outcome."""
        device = self.device
        figures = MessageFigures(label)
        counted = device.in_a_copy(lambda: self._trial(act, command, 0, False, False))
        figures.allocations = counted["allocations"]
        for n in self._numbers(figures.allocations):
            for lasting in (False, True):
                self._trials += 1
                plays_on = playing and self._trials % self._plays_on_every == 0
                figures.add(
                    device.in_a_copy(
                        lambda n=n, lasting=lasting, plays_on=plays_on: self._trial(  # type: ignore[misc]
                            act, command, n, lasting, plays_on
                        )
                    )
                )
        self.figures.append(figures)
        self.finished(figures)
        act()

    def finished(self, figures: MessageFigures) -> None:
        """All trials of a message were made."""

    def _numbers(self, allocations: int) -> Iterator[int]:
        yield from range(1, allocations + 1, self._every)
        if (allocations - 1) % self._every:
            yield allocations
        yield allocations + 1  # with this one nothing fails: the walk has seen all of them

    def _ask(self, name: str, *values: CommandValue, role: str) -> str:
        return _told(lambda: self.device.command(name, *values, role=role))

    def _trial(
        self, act: Callable[[], str], command: str, n: int, lasting: bool, plays_on: bool
    ) -> dict[str, Any]:
        device = self.device
        lives, begun, completed = len(device.restarts), len(device.begun), len(device.completed)
        device.arm(n, lasting)
        try:
            outcome = act()
        except WaitTimeout:
            outcome = STUCK
        device.disarm()
        allocations, failures = device.counted
        wrong = self._check(
            command, outcome, device.begun[begun:].count(command), device.completed[completed:].count(command)
        )
        if plays_on:
            wrong += self._play_on()
        wrong += [str(each) for each in self.oracle.wrong if each.unseen is None]
        if n > 0 and len(device.restarts) - lives > 1:
            wrong.append("the device began more than one new life")
        return {
            "n": n,
            "lasting": lasting,
            "allocations": allocations,
            "failures": failures,
            "restarts": device.restarts[lives:],
            "outcome": outcome,
            "wrong": wrong,
        }

    def _check(self, command: str, outcome: str, begun: int, completed: int) -> list[str]:
        device, wrong = self.device, []
        if outcome == STUCK:
            wrong.append("the host waits for ever")
        if completed > 1:
            wrong.append(f"{command} was executed {completed} times")
        if outcome == ANSWERED and begun and completed != 1:
            wrong.append(f"{command} was answered as executed; it was executed {completed} times")
        if outcome in NOT_DONE and completed:
            wrong.append(f"{command} was executed, the host was told: {outcome}")
        try:
            device.run_until(lambda: device.host.up)
            identity = device.ask_clear("identify")
            if not identity[3] & schema.PROVISIONED_FLAG or identity[3] & schema.KEYS_DAMAGED_FLAG:
                wrong.append(f"the device has lost its keys: flags {identity[3]}")
            device.ask("status")
        except (WaitTimeout, Refusal, CommandFailed) as error:
            wrong.append(f"the host cannot go on: {type(error).__name__} {error}")
        return wrong

    def _play_on(self) -> list[str]:
        """The dealer brings the machine back and plays a round."""
        dealer = self.dealer
        try:
            dealer.collect()
            dealer.recover()
            if not dealer.play_round():
                return ["the round after it was not dealt"]
        except (RecoveryFailed, WaitTimeout, Refusal, CommandFailed) as error:
            return [f"the dealer cannot go on: {type(error).__name__} {error}"]
        return []


def walk_through(walk: Walk) -> None:
    """Every message that a peer can send, in a state in which the device does most with it."""
    dealer = walk.dealer
    _before_a_table(walk)
    walk.message("register_deck (floor)", lambda: _told(lambda: dealer.new_deck(RED)), "register_deck")
    dealer.new_deck(BLUE)
    first, second = sorted(dealer.decks)
    walk.request("decks")
    _feed(walk, first)
    walk.request("status")  # on the grid
    walk.request("stop")
    dealer.recover()
    _a_round(walk)
    walk.request("whereabouts", second)
    walk.request("remove_deck", second, enum_number("RemoveReason", "damaged"), role="floor")
    _service(walk)


def _before_a_table(walk: Walk) -> None:
    device = walk.device
    walk.message("connect", lambda: _connect(device))
    garbage = bytes(frame.encode_by_parts(bytes(range(40)))) + b"\x05\x01\x02\x03\x00" * 20
    walk.message("bytes that are no message", lambda: _say(device, garbage))
    walk.message("identify", lambda: _identify(device))
    walk.request("set_clock", device.true_utc_s(), 0)
    for query in ("status", "counters", "game", "key_slots", "sensors", "wear", "last_round"):
        walk.request(query)
    walk.request("trace", 0)
    walk.request("log", 1)
    walk.request("component", 1)
    walk.request("calibration", 1)
    walk.request("call_floor", 1)
    walk.request("locate", 1)
    game = ("three-card", enum_number("Method", "automated_shoe"), 1, 3, 8)
    walk.request("set_game", *game, role="floor")
    walk.request("set_key", 7, enum_number("Role", "floor"), 9, bytes(range(32)), role="service")
    walk.request("remove_key", 7, role="service")


def _feed(walk: Walk, deck_id: int) -> None:
    dealer, machine = walk.dealer, walk.device.machine
    cards, dealer.decks[deck_id] = dealer.decks[deck_id], []
    machine.load(cards)
    walk.device.run_until(lambda: True)
    walk.request("shuffle", deck_id, playing=True)


def _a_round(walk: Walk) -> None:
    device, dealer = walk.device, walk.dealer
    view = device.view()
    round_id = view.last_round + 1
    walk.request("open_round", round_id, view.shoe_deck, playing=True)
    walk.request("close_bets", round_id, HANDS, playing=True)
    walk.request("dispense_stack", round_id, 1, playing=True)
    for stack in range(1, HANDS + 1):
        if stack > 1:
            device.command("dispense_stack", round_id, stack)
        device.run_until(lambda: device.shoe_state == shoe.STACK_WAITING)
        dealer.take_stack()
    walk.request("void_round", round_id + 1, enum_number("VoidReason", "floor_order"))
    walk.request("end_round", round_id, playing=True)
    device.run_until(lambda: device.shoe_state == shoe.STUB_WAITING)
    dealer._take()
    device.run_until_idle()
    walk.request("faces", round_id, 1)
    walk.request("last_round")
    dealer.collect()
    device.run_until_idle()
    dealer.feed(view.shoe_deck)
    dealer.shuffled()
    device.run_until_idle()
    walk.request("reveal_round", round_id)
    following = device.view()
    device.command("open_round", round_id + 1, following.shoe_deck)
    walk.request("void_round", round_id + 1, enum_number("VoidReason", "floor_order"), playing=True)
    device.run_until_idle()
    dealer.collect()


def _service(walk: Walk) -> None:
    device, machine = walk.device, walk.device.machine
    walk.request("empty_machine", role="floor")
    walk.dealer._wait_emptied()
    device.run_until_idle()
    machine.open_door(hardware.SHOE_DOOR)
    device.run_until(lambda: True)
    walk.request("clear_fault", enum_number("Fault", "door_opened"))
    machine.empty_by_hand(hardware.SHOE_DOOR)
    machine.close_door(hardware.SHOE_DOOR)
    device.run_until_idle()
    walk.request("purge", role="floor")
    walk.request("path_inspected", role="floor")
    walk.request("self_test", role="service")
    device.run_until_idle()
    walk.request("service_mode", 1, role="service")
    walk.request("calibrate", 2, 301, role="service")
    walk.request("jog", enum_number("Part", "feed"), 1, role="service")
    device.run_until_idle()
    walk.request("service_mode", 0, role="service")
    device.run_until_idle()
    walk.request("mark_out_of_order", role="floor")
    walk.request("return_to_service", role="service")
    device.run_until_idle()
    walk.request("play_one_deck", 1, role="floor")
    for name, values in (
        ("deliver_deck", (1,)),
        ("load_shoe", (1,)),
        ("burn_cards", (1,)),
        ("draw_cards", (9, 1, 1)),
        ("end_shoe", (1,)),
        ("simulate_round", (9, 1)),
    ):
        role = "floor" if name in ("load_shoe", "simulate_round") else "table"
        walk.request(name, *values, role=role)
    walk.request("evict_owner", b"NOTTHERE", role="floor")
    walk.request("detach")


def _told(asks: Callable[[], object]) -> str:
    """Ask something; what the host was told."""
    try:
        asks()
    except Refusal as refusal:
        return refusal.error
    except CommandFailed as failed:
        return str(failed)
    return ANSWERED


def _connect(device: FailingDevice) -> str:
    device.connect()
    return ANSWERED


def _identify(device: FailingDevice) -> str:
    device.ask_clear("identify")
    return ANSWERED


def _say(device: FailingDevice, data: bytes) -> str:
    device.say(data)
    return ANSWERED
