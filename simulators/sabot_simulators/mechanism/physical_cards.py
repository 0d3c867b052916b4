"""Cards as things: which one it is, what its back looks like, how thick it is, which way up it lies."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from random import Random

from sabot_firmware import hardware, machine_constants

RANKS = "A23456789TJQK"
SUITS = "SHDC"

_back_of = attrgetter("back")
_thickness_of = attrgetter("thickness_um")
_packs = count(1)


@dataclass(eq=False, slots=True)
class PhysicalCard:
    """One physical card. Two cards may look alike and are still two."""

    number: int
    """0 to 51 in the order of a new deck; -1 for a cover card."""
    back: int
    """What a colour reader sees of it face down: RED, BLUE or COVER."""
    thickness_um: int
    """What it adds to the height of a stack; a bent card adds more than it is thick."""
    face_up: bool = False
    bent: bool = False
    pack: int = 0
    """Which new deck it came out of; 0 for a single card."""
    laid_us: int = -1
    """When it was last laid into the tray, by whatever hand."""

    @property
    def name(self) -> str:
        """Rank and suit, as ``KS``; ``cover`` for a cover card."""
        return "cover" if self.number < 0 else RANKS[self.number % 13] + SUITS[self.number // 13]

    @property
    def colour(self) -> int:
        """What a colour reader sees of it as it lies."""
        return hardware.FACE if self.face_up else self.back

    @property
    def face(self) -> int:
        """What a card reader sees of it as it lies: its number, or NO_FACE."""
        return hardware.NO_FACE if self.face_up or self.number < 0 else self.number

    def bend(self, by_um: int) -> None:
        """It no longer lies flat: it takes so much more height."""
        self.bent = True
        self.thickness_um += by_um

    def warp(self, by_um: int) -> None:
        """It lies hollow, and takes so much more height; it moves as any other."""
        self.thickness_um += by_um

    def __deepcopy__(self, memo: object) -> "PhysicalCard":
        """A card holds only numbers: most of a copied machine is cards, and this is the quick way."""
        return PhysicalCard(
            self.number, self.back, self.thickness_um, self.face_up, self.bent, self.pack, self.laid_us
        )

    def __repr__(self) -> str:
        return f"<{self.name} {('?', 'red', 'blue', '?', 'cover')[self.back]}>"


def new_deck(back: int, random: Random, cards: int = machine_constants.DECK_CARDS) -> list[PhysicalCard]:
    """A deck in factory order: its mean thickness strays by up to 2 %, each card by a little."""
    mean = machine_constants.CARD_THICKNESS_UM * (1 + random.uniform(-0.02, 0.02))
    pack = next(_packs)
    return [
        PhysicalCard(number % 52, back, round(random.gauss(mean, 2)), pack=pack) for number in range(cards)
    ]


def swell(cards: Iterable[PhysicalCard], share: float) -> None:
    """Damp air or wear: every card gets thicker by this share, thinner if it is below 0."""
    for card in cards:
        card.thickness_um = round(card.thickness_um * (1 + share))


def one_card(back: int, random: Random, number: int | None = None) -> PhysicalCard:
    """A single card of a back, any one if no number is given."""
    number = random.randrange(machine_constants.DECK_CARDS) if number is None else number
    return PhysicalCard(number, back, round(random.gauss(machine_constants.CARD_THICKNESS_UM, 2)))


def cover_card(random: Random) -> PhysicalCard:
    """A cover card: thicker plastic of one colour."""
    return PhysicalCard(-1, hardware.COVER, round(random.gauss(machine_constants.CARD_THICKNESS_UM, 5)))


def height_um(cards: Iterable[PhysicalCard]) -> int:
    """How high these cards lie."""
    return sum(map(_thickness_of, cards))


def count_backs(cards: Iterable[PhysicalCard], back: int) -> int:
    """How many of these cards have this back."""
    return list(map(_back_of, cards)).count(back)
