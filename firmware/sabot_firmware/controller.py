"""The controller of one machine: time and sensor edges in, motor orders and events out.

The caller steps it with time and edges; each step returns how long nothing is due. ``execute`` runs the
command that ``command_table`` names. A refused command has changed nothing. An accepted command has begun,
and events report its result. A fault of the shuffler half never touches the round in play; a fault of the
shoe half voids it.
"""

from sabot_firmware import machine_constants, shoe, shuffler
from sabot_firmware.command_table import command_table
from sabot_firmware.dealing import POWER_CUT, Dealing
from sabot_firmware.deck_commands import DeckCommands
from sabot_firmware.decks import AUTOMATED_SHOE, CARD_BY_CARD
from sabot_firmware.hardware import (
    CHAMBER,
    ENTRY,
    EXIT,
    EXIT_TRAY,
    HOT,
    INSERTION,
    LEFT_BUTTON,
    PUSHER_HOME,
    RIGHT_BUTTON,
    SENSOR_HALVES,
    SHOE,
    SHOE_DOOR,
    SHUFFLER_DOOR,
    STORE,
    SUPPLY_LOW,
    Hardware,
)
from sabot_firmware.jam import Jam, steps_for
from sabot_firmware.machine_commands import MachineCommands
from sabot_firmware.panel import Panel
from sabot_firmware.persistent_state import CARDS_INSIDE, CARDS_MOVING, NO_CARDS, PersistentState
from sabot_firmware.refusals import forbidden
from sabot_firmware.rng import RngFailed
from sabot_firmware.service import Service
from sabot_firmware.shoe import ANY_BACK, Shoe
from sabot_firmware.shuffle_commands import ShuffleCommands
from sabot_firmware.shuffler import Shuffler
from sabot_firmware.wear import WearCounters
from sabot_firmware.whereabouts import SHOE_CONTENTS, SHUFFLER_CONTENTS, whereabouts
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryFailed, Refusal
from sabot_protocol.executor import Caller, Executor
from sabot_protocol.modes import SHOE as SHOE_NUMBER
from sabot_protocol.modes import SHUFFLER, check_command
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import FAULT_LATCHED_FLAG, ROUND_OPEN_FLAG
from sabot_protocol.wire_constants import KEY_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.event_log import EventLog
    from sabot_firmware.half import MachineHalf
    from sabot_firmware.rng.device_rng import DeviceRng
    from sabot_protocol.codec import Values

BUTTONS = {LEFT_BUTTON: 1, RIGHT_BUTTON: 2}  # the bit of each in ``buttons``
SOON_US = 1000000
COALESCE_US = 1000000
LOG_ROWS_AT_ONCE = 16


class UnhandledSensor(Exception):
    """An edge came from a sensor that the schema gives to no half and that the controller does not know."""


class Controller(Executor):
    """Handles edges and time, reports changes of both halves, and starts automatic steps.

    ``report`` takes an event's name and its values, as ``DeviceProtocol.emit`` does. ``utc_s`` returns the
    time of day in seconds, None while it is unknown.
    """

    def __init__(
        self,
        hardware: Hardware,
        memory: RecordStore,
        rng: "DeviceRng",
        report: "Callable[..., object]",
        utc_s: "Callable[[], int | None]",
        log: "EventLog | None" = None,
    ) -> None:
        self.hardware = hardware
        self.report = report
        self.utc_s = utc_s
        self.log = log
        self.now_us = 0
        self.persistent = PersistentState(memory)
        self.wear = WearCounters(memory)
        self.shuffle_commands = ShuffleCommands(self, rng)
        self.shuffler = Shuffler(hardware)
        self.shoe = Shoe(hardware, self.on_grid)
        self.deck_commands = DeckCommands(self)
        self.dealing = Dealing(self)
        self.service = Service(self)
        self.machine_commands = MachineCommands(self)
        self.panel = Panel(hardware)
        self._caller: Caller | None = None
        self._coalesce_until_us: int | None = None  # repeated acts of people are reported once until then
        self._pressed = 0  # the buttons reported since then
        self._commands = command_table(self)
        self.configure()

    # -- power-up -------------------------------------------------------------------------------

    def start(self, now_us: int) -> None:
        """Handle power-up: void an interrupted round and start the self-test of both halves."""
        self.now_us = now_us
        self.deck_commands.start()
        persistent = self.persistent
        if persistent.damaged:  # nothing is claimed before service has inspected the machine
            persistent.out_of_order = True
            persistent.shuffler_inside = persistent.shoe_inside = CARDS_MOVING
            self._report_jam(Jam("controller", "memory_damaged", 0), "shoe")
        deck_id = persistent.round_deck if persistent.round_open else 0
        if persistent.round_open:
            persistent.round_open = False
            persistent.void = POWER_CUT
            self.report("round_voided", persistent.round_id, persistent.void)
        self.save_state()
        self.shuffler.was_working = persistent.shuffler_inside == CARDS_MOVING
        self.shoe.was_working = persistent.shoe_inside != NO_CARDS
        self.shoe.block(persistent.missing, persistent.short_deck)
        moved = persistent.shoe_inside == CARDS_MOVING
        if moved and not persistent.missing and not self.hardware.level(SHOE):
            self.shoe.block(1, deck_id)  # its last card may lie between shoe and exit
        self.shoe.inspected, self.shoe.cleared = persistent.inspected, persistent.cleared
        self.start_halves()
        self.process_changes()

    def start_halves(self) -> None:
        """Start the self-test of both halves and of the generator."""
        for half in (self.shuffler, self.shoe):
            half.latched = self.persistent.out_of_order
            half.start(self.now_us)
        if not self.shuffle_commands.start() and not self.persistent.out_of_order:
            self.shuffle_commands.fail()

    def configure(self) -> None:
        """Set the shuffler half up for the game's capacity and the calibrations."""
        batch = self.hardware.capacity > machine_constants.DECK_CAPACITY
        blade_um = machine_constants.BLADE_BATCH_UM if batch else machine_constants.BLADE_UM
        travel_um = (
            machine_constants.ELEVATOR_TRAVEL_BATCH_UM if batch else machine_constants.ELEVATOR_TRAVEL_DECK_UM
        )
        calibration = self.persistent.calibration
        self.shuffler.configure(blade_um + calibration[0][0], calibration[1][0], travel_um)

    # -- time and edges -------------------------------------------------------------------------

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """Handle a change of a sensor's level. After the edges of one moment the caller calls ``step``."""
        self.now_us = now_us
        whose = SENSOR_HALVES[sensor]
        shuffler_half, shoe_half = self.shuffler, self.shoe
        if whose & 1:
            shuffler_half.edge(sensor, level, at_us, now_us)
        if whose & 2:
            shoe_half.edge(sensor, level, at_us, now_us)
        if not whose:
            self._handle_input(sensor, level)
        elif not shuffler_half.unreported and not shoe_half.unreported:
            return  # automatic steps follow with ``step``
        self.process_changes()

    def _handle_input(self, sensor: int, level: int) -> None:
        """Handle an edge of a door, a button, the supply or the temperature switch."""
        if sensor == SHUFFLER_DOOR:
            self._door(self.shuffler, level, "chamber", self.shuffler.entered)
        elif sensor == SHOE_DOOR:
            self._door(self.shoe, level, "shoe", 0)
        elif sensor == SUPPLY_LOW:
            if level:
                self._stop_all("supply_low")
        elif sensor == HOT:
            if level and self.shuffler.state not in (shuffler.JAMMED, shuffler.OUT_OF_ORDER):
                self.shuffler.stop("controller", "over_temperature", 0)  # the round may be dealt out
        elif sensor not in BUTTONS:
            raise UnhandledSensor("no half and no rule of the controller handles sensor %d" % sensor)
        elif level:
            button = BUTTONS[sensor]
            if not self._pressed & button:
                self._pressed |= button
                self._begin_coalescing()
                self.report("buttons", button)

    def _door(self, half: "MachineHalf", level: int, place: str, cards: int) -> None:
        self.service.stop_jog()  # the interlock cut the motor, and closing the door must not restart it
        if level:
            half.door_closed()
        else:
            half.door_opened(place, cards)
            if half is self.shuffler:
                self.shuffler.forget_shelf()
                if self.shoe.state == shoe.LOADING and self.shoe.deck:
                    self.shoe.stop("pusher", "door_opened", 0)  # hands could reach the deck on its way
            elif half.state == shoe.DOOR_OPEN:
                self.shoe.forget()

    def _stop_all(self, cause: str) -> None:
        for half in (self.shoe, self.shuffler):
            if half.state not in (half.states.jammed, half.states.starting, half.states.out_of_order):
                half.stop("controller", cause, 0)

    def step(self, now_us: int) -> int | None:
        """Do what is due now; return the microseconds until something is due, or None."""
        self.now_us = now_us
        jog_due = None
        if self.service.jogged >= 0:
            jog_due = self.service.jog_due_us()  # first, so that nothing delays the end of a jog
        shuffler_half, shoe_half = self.shuffler, self.shoe
        due = shuffler_half.step(now_us)
        of_shoe = shoe_half.step(now_us)
        if due is None or (of_shoe is not None and of_shoe < due):
            due = of_shoe
        if shuffler_half.unreported or shoe_half.unreported or self._start_next_step():
            self._report_changes()
        if self.machine_commands.locating_until_us is not None:
            due = sooner(due, self.machine_commands.locate_due_us())
        if self._coalesce_until_us is not None:
            due = sooner(due, self._end_coalescing(self._coalesce_until_us))
        if jog_due is not None:
            due = sooner(due, jog_due)
        if due is not None and due < SOON_US and (shuffler_half.state == shuffler.FEEDING or not self.idle()):
            return due  # cards move: the rest can wait, but not for a stack that nobody takes
        due = sooner(due, self.deck_commands.hours_due_us())
        if self.shuffler.unreported or self.shoe.unreported:
            self._report_changes()  # the record could not be written, and the halves have stopped
        return due

    def after_us(self, us: int) -> int:
        """The time so many microseconds from now, in ticks."""
        return ticks.add(self.now_us, us)

    def left_us(self, until_us: int) -> int:
        """Microseconds from now until a time in ticks; negative if it is past."""
        return ticks.diff(until_us, self.now_us)

    def idle_and_empty(self) -> bool:
        """Whether nothing moves and no card is inside, by states, record and every sensor."""
        if not self.idle() or self.persistent.damaged:
            return False
        if self.persistent.shuffler_inside != NO_CARDS or self.persistent.shoe_inside != NO_CARDS:
            return False
        for sensor in (ENTRY, INSERTION, CHAMBER, STORE, SHOE, EXIT):
            if self.hardware.level(sensor):
                return False
        return True

    def idle(self) -> bool:
        """Whether no motion runs and no jog is on; flash may be written only then."""
        return self.shuffler.idle() and self.shoe.idle() and self.service.jogged < 0

    def paused(self) -> bool:
        """Whether no card moves now, possibly only between two cards: the board may collect garbage.

        A jog does not count, since it waits for no edge.
        """
        return self.shuffler.paused() and self.shoe.paused()

    def end_pause(self, now_us: int) -> None:
        """Resume the motions that paused for the board."""
        self.now_us = now_us
        self.shuffler.end_pause(now_us)
        self.shoe.end_pause(now_us)

    # -- changes of state and automatic steps ---------------------------------------------------

    def process_changes(self) -> None:
        """Report changes of state and start automatic steps, if there are any."""
        if self.shuffler.unreported or self.shoe.unreported or self._start_next_step():
            self._report_changes()

    def _report_changes(self) -> None:
        """Report every change of state, and start automatic steps until none is left."""
        while True:
            half = self.shuffler if self.shuffler.unreported else self.shoe
            if half.unreported:
                state = half.next_unreported()
                self._save_contents()
                if not self._coalesces(half, state):
                    self._report_change(half, state)
            elif not self._start_next_step():
                break
        self.update_panel()

    def _report_change(self, half: "MachineHalf", state: int) -> None:
        before, half.reported = half.reported, state
        if half is self.shuffler:
            self._shuffler_changed(before, state)
        else:
            self._shoe_changed(before, state)

    def _coalesces(self, half: "MachineHalf", state: int) -> bool:
        """Whether the report of this change is held back, because a door opens and closes repeatedly."""
        quiet = half.states.quiet()
        if half.reported in quiet and state in quiet:
            self._begin_coalescing()
            half.door_changes += 1
            if half.door_changes > 2:
                half.coalesced = state
                return True
        else:
            self.report_coalesced(half)
        half.coalesced = -1
        return False

    def report_coalesced(self, half: "MachineHalf") -> None:
        """Report the state of a half whose report was held back, if there is one."""
        if half.coalesced >= 0 and half.coalesced != half.reported:
            self._report_change(half, half.coalesced)
        half.coalesced = -1

    def _begin_coalescing(self) -> None:
        if self._coalesce_until_us is None:
            self._coalesce_until_us = self.after_us(COALESCE_US)

    def _end_coalescing(self, until_us: int) -> int | None:
        """Report held-back states when the time is over; else microseconds until then."""
        left = self.left_us(until_us)
        if left > 0:
            return left
        self._coalesce_until_us = None
        self._pressed = 0
        for half in (self.shuffler, self.shoe):
            half.door_changes = 0
            self.report_coalesced(half)
        return None

    def _start_next_step(self) -> bool:
        """Start one automatic step, such as loading a proved deck; whether one was started."""
        state = self.shoe.state
        if state == shoe.STUB_WAITING and not self.hardware.level(EXIT_TRAY):
            self.shoe.taken_out()
            return True
        if self.service.emptying:
            return self.service.continue_emptying()
        if state == shoe.EMPTY and self.persistent.game.method == AUTOMATED_SHOE and self.may_push():
            self.push_stored()
            return True
        if self.log is not None and self.log.due() and self.idle():
            self.log.flush(LOG_ROWS_AT_ONCE)
        return False

    def may_push(self) -> bool:
        """Whether the pusher may load the shoe.

        It may only between rounds, only into an empty shoe, and only with a deck that was counted as whole.
        """
        half = self.shuffler
        return (
            half.stored_deck != 0
            and self.shoe.state == shoe.EMPTY
            and half.stored == self.persistent.game.cards()
            and half.state != shuffler.STORING
            and not self.persistent.out_of_order
            and self.persistent.decks.find(half.stored_deck) is not None
        )

    def push_stored(self) -> None:
        """Push the proved deck from the shelf into the shoe."""
        deck = self.persistent.decks.find(self.shuffler.stored_deck)
        assert deck is not None
        cards = self.shuffler.stored
        self.persistent.shoe_inside = CARDS_INSIDE
        if self.save_state():
            self.shuffler.take_from_shelf()
            self.shoe.load(deck.deck_id, deck.back, cards, self.now_us)

    def push_unproved(self) -> None:
        """Push cards of unknown count from the shelf into the shoe, on their way out."""
        self.persistent.shoe_inside = CARDS_INSIDE
        if self.save_state():
            self.shoe.load(0, ANY_BACK, 0, self.now_us, shoe.UNPROVED)

    def shoe_loaded_by_hand(self) -> bool:
        """Whether the sensors see cards in the shoe and nowhere else in its half."""
        level = self.hardware.level
        inside = level(SHOE) and level(SHOE_DOOR) and level(PUSHER_HOME)
        return bool(inside and not level(EXIT) and not level(EXIT_TRAY))

    def save_state(self) -> bool:
        """Save the persistent state; if that fails, stop both halves and return False."""
        try:
            self.persistent.save()
        except MemoryFailed:
            self.persistent.out_of_order = self.shuffler.latched = self.shoe.latched = True
            self._stop_all("memory_damaged")
            return False
        return True

    def _save_contents(self) -> None:
        persistent, half = self.persistent, self.shoe
        inside = SHUFFLER_CONTENTS.get(self.shuffler.state)
        if inside is not None:
            persistent.shuffler_inside = inside
        inside = SHOE_CONTENTS.get(half.state)
        if inside is not None:
            persistent.shoe_inside = inside
        elif half.state == shoe.UNPROVED:
            persistent.shoe_inside = persistent.shoe_inside or CARDS_INSIDE
        persistent.missing, persistent.short_deck = half.missing, half.short_deck
        persistent.inspected, persistent.cleared = half.inspected, half.cleared
        self.save_state()

    def _shuffler_changed(self, before: int, state: int) -> None:
        half = self.shuffler
        deck_id = half.feeding_deck or half.stored_deck
        if half.retried:  # only now: the time of a retry would reveal the shuffle's progress
            self._report_retries(half.retried)
        self.report("shuffler_changed", state, deck_id)
        expected = self.persistent.game.cards()
        if before == shuffler.FEEDING and state in (shuffler.HOLDING, shuffler.STORING):
            self._counted(half.feeding_deck, half.inserted, expected)
            self.dealing.deck_counted(half.feeding_deck)
            self._report_roller_times()
            self.shuffle_commands.finished()
        elif state == shuffler.JAMMED and half.jam is not None:
            if half.jam.cause == "count_wrong":  # MD3 5.B: that deck leaves the table
                count = half.counted()
                if count is not None:  # None: the three counts disagree
                    self._counted(half.feeding_deck, count, expected)
                self.deck_commands.wrong_count(half.feeding_deck)
            self.shuffle_commands.failed()
            self._report_jam(half.jam, "shuffler")
        self._report_self_test(half, before, SHUFFLER)

    def _report_retries(self, places: "list[str]") -> None:
        for place in places:
            self.wear.add("retries")
            fault = "misfeed" if place == "feed" else "card_stuck"
            self.report("retried", enum_number("Fault", fault), enum_number("Place", place))
        places.clear()

    def _counted(self, deck_id: int, count: int, expected: int) -> None:
        self.panel.counted(count, expected)
        self.report("deck_counted", deck_id, self.shuffle_commands.shuffle_id(), count, expected)
        self.wear.add("cards_fed", count)
        self.wear.put("feed_permille", self.shuffler.feed_permille)
        self._save_wear()

    def _report_roller_times(self) -> None:
        """Report how long cards took at each roller since the last shuffle."""
        timed, sums, squares = [0, 0, 0], [0, 0, 0], [0, 0, 0]
        for half in (self.shuffler, self.shoe):
            for roller in range(3):
                timed[roller] += half.timed[roller]
                sums[roller] += half.sums[roller]
                squares[roller] += half.squares[roller]
                half.timed[roller] = half.sums[roller] = half.squares[roller] = 0
        self.report(
            "roller_times", self.shuffle_commands.shuffle_id(), tuple(timed), tuple(sums), tuple(squares)
        )

    def _shoe_changed(self, before: int, state: int) -> None:
        half = self.shoe
        current = self.dealing.round
        self.report("shoe_changed", state, half.deck, current.round_id if current is not None else 0)
        if state == shoe.JAMMED and half.jam is not None:
            self._report_jam(half.jam, "shoe")
            if before == shoe.LOADING and self.shuffler.state == shuffler.IDLE and self.hardware.level(STORE):
                self.shuffler.enter(shuffler.UNPROVED)  # the deck was not pushed, and nothing proves it now
        self.dealing.shoe_changed(state, before)
        if state == shoe.STUB_WAITING:
            self.wear.put("deal_permille", half.deal_permille)
            self._save_wear()
        self._report_self_test(half, before, SHOE_NUMBER)

    def _report_self_test(self, half: "MachineHalf", before: int, number: int) -> None:
        if before == half.states.starting:
            sound = half.jam is None or half.jam.cause == "power_lost"
            self.report("self_tested", number, 1 if sound else 0)

    def _save_wear(self) -> None:
        for roller, name in enumerate(("feed_ms", "insert_ms", "deal_ms")):
            half: MachineHalf = self.shoe if roller == 2 else self.shuffler
            turned, half.turned_ms[roller] = half.turned_ms[roller], 0
            self.wear.add(name, turned)
        try:
            self.wear.save()
        except MemoryFailed:
            self.save_state()  # statistics may be lost; the persistent state is tried apart

    def _report_jam(self, jam: Jam, half: str) -> None:
        self.wear.add("faults")
        self.wear.add("jams_" + jam.place)
        place = enum_number("Place", jam.place)
        self.report("fault_raised", jam.fault(), place, jam.cards, steps_for(jam.cause, half))

    def update_panel(self) -> None:
        """Show the states of both halves on display and lamp."""
        self.panel.update(
            self.shuffler, self.shoe, self.machine_commands.locating(), self.machine_commands.floor_called
        )

    # -- commands -------------------------------------------------------------------------------

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """(shuffler state, shoe state, fault, status flags, round id, stack)."""
        current = self.dealing.round
        flags = ROUND_OPEN_FLAG if current is not None else 0
        jam = self.shoe.jam or self.shuffler.jam
        fault = 0
        if jam is not None:
            flags |= FAULT_LATCHED_FLAG
            fault = jam.fault()
        return (
            self.shuffler.state,
            self.shoe.state,
            fault,
            flags,
            current.round_id if current is not None else 0,
            len(current.stacks) if current is not None else 0,
        )

    def on_grid(self) -> bool:
        """Whether bytes may pass the cables only at the ticks of the grid.

        That is so while cards go into secret slots. Allocates nothing.
        """
        state = self.shuffler.state
        return state == shuffler.FEEDING or state == shuffler.STORING

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Execute a command of the wire; Refusal if it may not be executed now."""
        handler = self._commands.get(name)
        if handler is None:
            raise Refusal("not_supported")
        self.prepare_command()
        check_command(name, self.shuffler.state, self.shoe.state)
        self._caller = caller
        answer = handler(*values)
        self.process_changes()
        return answer

    def prepare_command(self) -> None:
        """Bring up to date what the next command depends on: the age of the decks."""
        self.deck_commands.grow_older()

    def forget_numbers(self) -> None:
        """Let the numbers of rounds and decks begin anew."""
        self.persistent.forget_numbers()
        self.save_state()

    def take_entropy(self, entropy: bytes) -> None:
        """Mix the host's bytes into the generator; MemoryFailed if they cannot be saved."""
        self.shuffle_commands.rng.take(entropy)

    def draw_key(self) -> bytes:
        """32 secret bytes of the generator, which change no shuffle; Refusal if it failed."""
        try:
            return self.shuffle_commands.rng.random(KEY_SIZE)
        except RngFailed:
            raise Refusal("device_fault", (enum_number("Fault", "rng_failed"),)) from None

    def who(self) -> "tuple[bytes, int]":
        """Host id and person of the command that is being executed."""
        caller = self._caller
        return (bytes(8), 0) if caller is None else (caller.host_id, caller.person)

    def role(self) -> int:
        """The role of the caller whose command is being executed."""
        return 0 if self._caller is None else self._caller.role

    def refuse_if_unfit(self) -> None:
        """Refusal if the machine must not begin anything new."""
        if self.persistent.out_of_order:
            raise forbidden("out_of_order")
        if self.hardware.level(HOT):
            raise forbidden("too_hot")
        if self.service.emptying:
            raise forbidden("in_use")

    def whereabouts(self, deck_id: int) -> "tuple[bool, list[int]]":
        """Whether all cards of a deck are proved, and how many of them are at each place."""
        claimed = self.persistent.game.method == CARD_BY_CARD and self.shoe.state != shoe.LOADING
        return whereabouts(
            deck_id, self.shuffler, self.shoe, claimed or self.shoe.claimed or self.shoe.cleared
        )


def sooner(first: int | None, second: int | None) -> int | None:
    """The shorter of two waits; None means no deadline."""
    if first is None or (second is not None and second < first):
        return second
    return first
