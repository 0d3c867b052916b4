"""What people do at the machine: load, take, open doors, press buttons, clear jams, repair."""

from random import Random

from sabot_firmware import hardware
from sabot_simulators.mechanism.hidden_cards import OverlookedCard, hidden_cards
from sabot_simulators.mechanism.moving_parts import DOORS, LIP_UM, SHOE, SHUFFLER, STALLS, MovingParts
from sabot_simulators.mechanism.physical_cards import PhysicalCard, count_backs, one_card


class ManualAccess(MovingParts):
    """The moving parts plus manual access. A card is in one place: what is put in was taken out before."""

    def __init__(self, random: Random, capacity: str, reader: bool) -> None:
        super().__init__(random, capacity, reader)
        self.handed_out: list[PhysicalCard] = []
        self.removed: list[PhysicalCard] = []  # taken away for good, or by an unseen hand
        self.last_taken: list[PhysicalCard] = []  # out of the exit tray
        self.overlooked: list[OverlookedCard] = []  # the oldest first
        self._contact = False

    def hold_contact(self, on: bool) -> None:
        """Somebody with the key of the logic compartment closes its contact, or lets it go."""
        self._contact = on

    def contact(self) -> bool:
        """Whether the contact in the logic compartment is closed."""
        return self._contact

    def load(self, cards: list[PhysicalCard]) -> None:
        """Somebody puts a stack into the tray, as far as it finds room; its first card is fed first."""
        cards = self._fitting(cards, len(self.tray))
        for card in cards:
            card.laid_us = self.agenda.now_us
        self._fill("tray", list(cards))
        self.presence()
        self.feed_track.draw()

    def take_tray(self) -> list[PhysicalCard]:
        """Somebody takes what lies in the tray."""
        taken, self.tray = self.tray, []
        return self._hand_out(taken)

    def take_exit(self) -> list[PhysicalCard]:
        """Somebody takes what lies in the exit tray."""
        if self.exit_tray and self.faults.strikes("stack_not_taken", "exit_tray"):
            return []
        return self.snatch_exit()

    def snatch_exit(self) -> list[PhysicalCard]:
        """A hand takes what lies in the exit tray, whether it is time to or not."""
        taken, self.exit_tray = self.exit_tray, []
        self._look_at_exit_room()
        self.last_taken = list(taken)
        return self._hand_out(taken)

    def put_into_exit(self, cards: list[PhysicalCard]) -> None:
        """A hand lays cards into the exit tray, as many as find room."""
        self.exit_tray += self._fitting(cards, len(self.exit_tray) + len(self.deal_track.beyond(LIP_UM)))
        self._look_at_exit_room()
        self.presence()

    def meddle_with_exit(self) -> None:
        """A hand lays the cards taken last into the exit tray, or any it has, or one from its pocket."""
        back = [card for card in self.last_taken if card in self.handed_out] or self.handed_out[:1]
        self.put_into_exit(back or [one_card(self.back_of(self.shoe), self.random)])

    def load_shoe(self, cards: list[PhysicalCard]) -> None:
        """Somebody puts a stack into the shoe, through its open door; its first card is dealt first."""
        self._need_open(hardware.SHOE_DOOR)
        self._fill("shoe", self._fitting(cards, len(self.shoe)))
        self.presence()

    def press(self, button: int) -> None:
        """Somebody presses a button and holds it."""
        self.sensors.set(button, 1)

    def release(self, button: int) -> None:
        """Somebody lets a button go."""
        self.sensors.set(button, 0)

    def open_door(self, door: int) -> None:
        """Somebody opens a door: all motors of its half stop at once."""
        self.opened_us[DOORS.index(door)] = self.agenda.now_us
        self.sensors.set(door, 0)
        self._cut(DOORS.index(door))

    def close_door(self, door: int) -> None:
        """Somebody closes a door again; nothing moves before it is ordered to."""
        self.sensors.set(door, 1)
        self._supply()

    def overlook(self, half: int, person: str, act: str) -> None:
        """A person who has a half in hand overlooks every card there that no sensor shows."""
        now_us = self.agenda.now_us
        path = tuple((self.feed_track, self.deal_track)[half].cards())
        self.overlooked += [
            OverlookedCard(card, half, place_um, path, person, act, now_us)
            for card, place_um in hidden_cards(self, half)
        ]

    def empty_by_hand(self, door: int, overlooked_by: str | None = None) -> list[PhysicalCard]:
        """Somebody takes every card out of a half, through its open door.

        With ``overlooked_by`` that person overlooks the cards of its track that cover no sensor.
        """
        self._need_open(door)
        track = self.deal_track if door == hardware.SHOE_DOOR else self.feed_track
        left = [] if overlooked_by is None else track.unseen()
        track.bodies = [body for body in track.bodies if body not in left]
        if door == hardware.SHOE_DOOR:
            self._vain[SHOE] = 0
            taken = self.exit_tray + self.deal_track.clear() + self.shoe
            self.exit_tray, self.shoe = [], []
            self._look_at_exit_room()
        else:
            self._vain[SHUFFLER] = 0
            taken = self.elevator.empty() + self.crashed + self.feed_track.clear() + self.store
            self.crashed, self.store = [], []
        track.bodies = left
        if overlooked_by is not None:
            self.overlook(DOORS.index(door), overlooked_by, "took the cards out")
        return self._hand_out(taken)

    def loosen(self, door: int) -> None:
        """Somebody pulls free what sticks, through the open door, and leaves it there."""
        self._need_open(door)
        (self.deal_track if door == hardware.SHOE_DOOR else self.feed_track).loosen()

    def repair(self) -> None:
        """Service repairs sensors, switches, motors and the noise source."""
        self.sensors.mend()
        self.ring_oscillator.stuck = False
        for number, roller in enumerate(self._rollers):
            if roller.stalled:
                roller.stalled = False
                self._turn(number, roller.direction)
                self.sensors.set(STALLS[number], 0)

    def back_of(self, cards: list[PhysicalCard]) -> int:
        """The back that most of these cards have; red if there are none."""
        return hardware.BLUE if 2 * count_backs(cards, hardware.BLUE) > len(cards) else hardware.RED

    # -- inside ---------------------------------------------------------------------------------

    def _hand_out(self, cards: list[PhysicalCard]) -> list[PhysicalCard]:
        self.handed_out += cards
        self.presence()
        return cards

    def _fitting(self, cards: list[PhysicalCard], there: int) -> list[PhysicalCard]:
        """The cards that a hand can lay where so many are; it keeps the rest."""
        room = max(self.capacity - there, 0)
        laid, kept = cards[:room], cards[room:]
        self._from_hands(cards)
        self.handed_out += kept
        return laid

    def _from_hands(self, cards: list[PhysicalCard]) -> None:
        """Cards that are put somewhere are in nobody's hands any more."""
        if cards and (self.handed_out or self.removed):
            leaving = set(map(id, cards))
            self.handed_out = [card for card in self.handed_out if id(card) not in leaving]
            self.removed = [card for card in self.removed if id(card) not in leaving]

    def _need_open(self, door: int) -> None:
        assert not self.sensors.levels[door], "the door is closed"
