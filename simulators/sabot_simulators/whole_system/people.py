"""The people at the table: a dealer with a human pace, who goes on after anything that happens."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

from sabot_driver.errors import SabotError
from sabot_firmware import shoe
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.host.messages import Status
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import RecoveryFailed
from sabot_simulators.emulated_device import WaitTimeout
from sabot_simulators.mechanism.physical_cards import new_deck
from sabot_simulators.soak_dealer import OPENED, SoakDealer
from sabot_simulators.whole_system.checks import note_sizes
from sabot_simulators.whole_system.world import LinkGone, WholeSystem

SECOND_US = 1_000_000
BETTING_S = (25, 60)
TAKING_US = (400_000, 2_500_000)
QUERIES = ("last_round", "decks", "status", "key_slots")
ASKS = 0.5  # that somebody looks something up between two rounds
ASKED_US = (2_000_000, 8_000_000)
PATIENCE_MS = (300, 2_000, 10_000)
CALLS = 0.2  # that the dealer calls the floor between two rounds
GIVE_UPS = 3  # then the table stays closed
FLOOR_ORDER = enum_number("VoidReason", "floor_order")


class TableDealer(SoakDealer):
    """A dealer who takes as long as people do."""

    device: WholeSystem

    def __init__(self, world: WholeSystem) -> None:
        super().__init__(world, Random(f"{world.scenario.seed}/people"))
        self.world = world

    def deal_round(self) -> bool:
        """One round; players bet before it."""
        self.world.run_for(self._random.randint(*BETTING_S) * SECOND_US)
        return super().deal_round()

    def take_stack(self) -> None:
        """Take the stack that waits, after a moment."""
        self.world.run_for(self._random.randint(*TAKING_US))
        super().take_stack()

    def recover(self) -> None:
        """Bring the table back to play: an open round is void first."""
        view = self.world.view()
        if view.open_round and self.shoe_state == shoe.ROUND_OPEN:
            self.world.command("void_round", view.open_round, FLOOR_ORDER, role="floor")
        super().recover()

    def _refill(self) -> bool:
        """Feed the decks; one whose registration was never seen to succeed still lies on the table."""
        for deck in self.world.view().decks:
            if deck.deck_id not in self.decks:
                self.decks[deck.deck_id] = new_deck(deck.back, self.world.machine.random)
                self.backs[deck.deck_id] = deck.back
                self._last_deck_id = max(self._last_deck_id, deck.deck_id)
        return super()._refill()


class Screen:
    """The table PC's screen: it asks for the status every few seconds, whether there is a session or not."""

    def __init__(self, world: WholeSystem) -> None:
        self._world = world
        self._random = Random(f"{world.scenario.seed}/screen")
        self._ask_later()

    def _ask_later(self) -> None:
        self._world.machine.agenda.after(self._random.randint(*ASKED_US), self._ask, None)

    def _ask(self, _: None) -> None:
        if self._world.pc.running:
            with suppress(SabotError):  # the screen shows it
                self._world.pc.ask(Status(), self._random.choice(PATIENCE_MS))
        if not self._world.pc.held_off or not self._world.troubles.over:
            self._ask_later()


class Table:
    """One table from its opening to the end of the scenario's time."""

    def __init__(self, world: WholeSystem) -> None:
        self.world = world
        self.dealer = TableDealer(world)
        self.screen = Screen(world)
        self._random = Random(f"{world.scenario.seed}/table")
        self.rounds = 0
        self.stops = 0
        self.gave_up = 0

    def play(self) -> None:
        """Play until the time is over; half-way the device is left alone, if the scenario says so."""
        world = self.world
        ends_us = world.scenario.minutes * 60 * SECOND_US
        if world.scenario.days_alone:
            self._play_until(ends_us // 2)
            world.leave_alone(round(world.scenario.days_alone * 86_400))
            self.screen = Screen(world)
            ends_us += world.machine.agenda.now_us - ends_us // 2
        self._play_until(ends_us)

    def _play_until(self, ends_us: int) -> None:
        world, agenda = self.world, self.world.machine.agenda
        going_on: bool | None = None if not self.dealer.decks else False
        while agenda.now_us < ends_us:
            try:
                if going_on is None:
                    going_on = self.dealer.open_table()
                elif not going_on:
                    self.stops += 1
                    self.dealer.recover()
                    going_on = True
                else:
                    self._between_rounds()
                    going_on = self.dealer.play_round()
                    self.rounds += 1
            except PowerCut:
                world.note("people notice that the power was off")
                world.wait_for_power()
                going_on = False
            except Refusal as refusal:
                world.note(f"people are refused: {refusal.error} {refusal.values}")
                going_on = False
                self._without_cut(lambda: world.run_for(10 * SECOND_US))
            except LinkGone:
                world.problem("the table PC had no session for an hour")
                return
            except (RecoveryFailed, WaitTimeout) as error:
                world.note(f"people give up: {error!r}")
                self.gave_up += 1
                going_on = False
                if self.gave_up >= GIVE_UPS:
                    self._without_cut(lambda: world.run_for(max(ends_us - agenda.now_us, SECOND_US)))
                else:
                    self._switch_off_and_on()

    def _switch_off_and_on(self) -> None:
        world = self.world
        world.machine.repair()
        world.cut_power()
        world.wait_for_power()

    def _without_cut(self, act: Callable[[], None]) -> None:
        try:
            act()
        except PowerCut:
            self.world.wait_for_power()

    def _between_rounds(self) -> None:
        world, random = self.world, self._random
        note_sizes(world)
        if random.random() < ASKS:
            world.command(random.choice(QUERIES))
        if random.random() < CALLS:
            world.command("call_floor", 1)
            world.command("call_floor", 0)
        if random.random() < OPENED:
            self.dealer.open_a_door()
