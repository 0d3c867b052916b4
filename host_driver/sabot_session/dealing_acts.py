"""Acts of other ways to deal than in stacks: card by card, from a manual shoe, from the hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sabot_session.act_base import Act, D, F
from sabot_table.rule_texts import DealingMethod


@dataclass(frozen=True, slots=True)
class ChangeMethod(Act):
    """Cards are dealt another way from now on."""

    NAME = "change_method"
    ROLES = (F,)
    ACTION = "change_method"

    method: DealingMethod
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlayOnePack(Act):
    """The floor chooses to go on with one pack."""

    NAME = "play_one_pack"
    ROLES = (F,)
    ACTION = "play_one_pack"


@dataclass(frozen=True, slots=True)
class StartShuffle(Act):
    """The dealer begins to shuffle a pack by hand."""

    NAME = "start_shuffle"
    ROLES = (D,)
    ACTION = "start_shuffle"

    pack_id: int


@dataclass(frozen=True, slots=True)
class FinishShuffle(Act):
    """The dealer has shuffled a pack by hand."""

    NAME = "finish_shuffle"
    ROLES = (D,)
    ACTION = "finish_shuffle"

    pack_id: int


@dataclass(frozen=True, slots=True)
class VerifyShuffle(Act):
    """The floor looked at a stack that was shuffled by hand."""

    NAME = "verify_shuffle"
    ROLES = (F,)
    ACTION = "verify_shuffle"

    pack_id: int


@dataclass(frozen=True, slots=True)
class DeclineCut(Act):
    """A player does not want to cut; the dealer tells it."""

    NAME = "decline_cut"
    ROLES = (D,)
    ACTION = "decline_cut"

    pack_id: int
    seat: int


@dataclass(frozen=True, slots=True)
class CutPack(Act):
    """A pack is cut so many cards from the top, by a seat or by the dealer (0)."""

    NAME = "cut"
    ROLES = (D,)
    ACTION = "cut"

    pack_id: int
    from_top: int
    seat: int = 0


@dataclass(frozen=True, slots=True)
class OrderRecut(Act):
    """The floor orders another cut."""

    NAME = "order_recut"
    ROLES = (F,)
    ACTION = "order_recut"

    pack_id: int


@dataclass(frozen=True, slots=True)
class PlaceCover(Act):
    """The second cover card lies so many cards above the bottom."""

    NAME = "place_cover"
    ROLES = (D,)
    ACTION = "place_cover"

    pack_id: int
    above_bottom: int


@dataclass(frozen=True, slots=True)
class LaidIn(Act):
    """A pack lies in the machine's shoe, and the door is shut; the machine checks with its sensors."""

    NAME = "laid_in"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class LoadPack(Act):
    """A pack lies in the manual shoe, or in the dealer's hand."""

    NAME = "load"
    ROLES = (D,)
    ACTION = "load"

    pack_id: int


@dataclass(frozen=True, slots=True)
class Burn(Act):
    """A new shoe's first card is shown, and as many cards as it counts go with it, face down."""

    NAME = "burn"
    ROLES = (D,)
    ACTION = "burn"

    pack_id: int
    first: str


@dataclass(frozen=True, slots=True)
class EndShoe(Act):
    """The cards of a finished manual shoe are in the discard rack."""

    NAME = "discard"
    ROLES = (D,)
    ACTION = "discard"

    pack_id: int


@dataclass(frozen=True, slots=True)
class CollectVigorish(Act):
    """The dealer collects the vigorish that a seat owes."""

    NAME = "collect_vigorish"
    ROLES = (D,)
    ACTION = "collect_vigorish"

    seat: int


@dataclass(frozen=True, slots=True)
class Dealt(Act):
    """Every hand has the cards that it begins with, dealt by hand one after the other."""

    NAME = "dealt"
    ROLES = (D,)
    ACTION = "deal_card"


@dataclass(frozen=True, slots=True)
class CountStub(Act):
    """The dealer counted the stub; where it does not fit, every hand's cards too. Seat 0 is the dealer."""

    NAME = "count_stub"
    ROLES = (D,)
    ACTION = "count_stub"

    stub: int
    hands: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PassStub(Act):
    """The stub goes to the discards uncounted."""

    NAME = "pass_stub"
    ROLES = (D,)
    ACTION = "pass_stub"


@dataclass(frozen=True, slots=True)
class Announce(Act):
    """The first four cards lie open and are these."""

    NAME = "announce"
    ROLES = (D,)
    ACTION = "announce"

    player: tuple[str, ...]
    banker: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnThird(Act):
    """A hand's third card lies open and is this one."""

    NAME = "third_card"
    ROLES = (D,)
    ACTION = "third_card"

    to: Literal["player", "banker"]
    card: str


@dataclass(frozen=True, slots=True)
class Settle(Act):
    """The wagers are settled as shown."""

    NAME = "settle"
    ROLES = (D, F)
    ACTION = "settle"


@dataclass(frozen=True, slots=True)
class Collect(Act):
    """The cards of the round are off the layout."""

    NAME = "collect"
    ROLES = (D,)
    ACTION = "collect"


@dataclass(frozen=True, slots=True)
class TakenOut(Act):
    """The cards of a void round were taken out of a machine that cannot be used."""

    NAME = "taken_out"
    ROLES = (D,)
    ACTION = "empty_device"


@dataclass(frozen=True, slots=True)
class ReportDrawnInError(Act):
    """A card too many was drawn; its name if somebody saw it."""

    NAME = "drawn_in_error"
    ROLES = (D,)
    ACTION = "drawn_in_error"

    seen: str | None = None


@dataclass(frozen=True, slots=True)
class ReportThird(Act):
    """The Player got a third card against the rules; its name if somebody saw it."""

    NAME = "unauthorised_third"
    ROLES = (D,)
    ACTION = "unauthorised_third"

    seen: str | None = None


@dataclass(frozen=True, slots=True)
class ReportExposed(Act):
    """A card was seen that belongs to no hand."""

    NAME = "card_exposed"
    ROLES = (D,)
    ACTION = "card_exposed"

    card: str


@dataclass(frozen=True, slots=True)
class ReportTooFew(Act):
    """The shoe cannot finish the round."""

    NAME = "too_few_cards"
    ROLES = (D,)
    ACTION = "too_few_cards"


@dataclass(frozen=True, slots=True)
class ReportCover(Act):
    """The cover card came out of a manual shoe."""

    NAME = "cover_card"
    ROLES = (D,)
    ACTION = "cover_card"


@dataclass(frozen=True, slots=True)
class AnnounceLastHand(Act):
    """The dealer announces the shoe's last hand."""

    NAME = "announce_last_hand"
    ROLES = (D,)
    ACTION = "announce_last_hand"


@dataclass(frozen=True, slots=True)
class BeginSimulated(Act):
    """A card that was seen opens a round without wagers."""

    NAME = "begin_simulated"
    ROLES = (D,)
    ACTION = "begin_simulated"


@dataclass(frozen=True, slots=True)
class AuthoriseSimulated(Act):
    """The floor lets the machine deal a round without wagers."""

    NAME = "authorise_simulated"
    ROLES = (F,)


ACTS: tuple[type[Act], ...] = (
    ChangeMethod, PlayOnePack, StartShuffle, FinishShuffle, VerifyShuffle, DeclineCut, CutPack,
    OrderRecut, PlaceCover, LaidIn, LoadPack, Burn, EndShoe, CollectVigorish, Dealt, CountStub,
    PassStub, Announce, TurnThird, Settle, Collect, TakenOut, ReportDrawnInError, ReportThird, ReportExposed,
    ReportTooFew, ReportCover, AnnounceLastHand, BeginSimulated, AuthoriseSimulated,
)  # fmt: skip
