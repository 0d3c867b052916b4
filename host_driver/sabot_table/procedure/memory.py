"""The state of a table that survives a restart: packs, the round in play, seats, units, meters."""

import json
from dataclasses import asdict, dataclass, field


@dataclass
class PackState:
    """One deck, or one batch of decks for a shoe, from its arrival until it is removed."""

    pack_id: int
    back: str
    opened_s: int
    state: str = "received"
    shuffled_by: str = ""  # "machine", "hand", "prepared"
    shuffle_verified: bool = False  # by the floor, after a shuffle by hand (MDM 5.A(2))
    counted: bool = False  # by the shuffler, after its last shuffle
    cut_by: int | None = None  # a seat; None: the dealer or nobody
    declined: list[int] = field(default_factory=list)  # seats that did not want to cut
    must_leave: str = ""  # why, once it must
    removal_reason: str = ""  # a `RemovalReason`, once it must
    uncounted_rounds: int = 0  # since its stub was last counted
    seen: int | None = None  # cards that the count of its last shuffle saw


@dataclass
class RoundState:
    """One round, or a simulated one."""

    round_id: int
    pack_id: int
    method: str
    wagers: dict[int, dict[str, int]] = field(default_factory=dict)
    wagers_known: bool = True  # else chips lie there: ``wagers`` has the betting seats only
    cards_known: bool = True  # else the dealer settled hands that nobody told
    stacks: list[int] = field(default_factory=list)  # cards in each, by the automated shoe
    dealt: int = 0  # cards, one by one
    draws: int = 0  # of the device, whatever became of the cards
    drawn: list[int] = field(default_factory=list)  # by which draw each card came; 0: by none of this round
    reserved: int = 0  # drawn in error and not seen: the next card (MD3 13.B)
    opened_by: list[str] = field(default_factory=list)  # cards known before: a simulated round's first
    player: list[str] = field(default_factory=list)
    banker: list[str] = field(default_factory=list)
    banker_third_waits: bool = False  # an unseen card is already the Banker's third (MDM 13.B)
    dealer: list[str] = field(default_factory=list)
    hands: dict[int, list[str]] = field(default_factory=dict)
    source: str = ""
    advice: str = ""  # the device's verdict of a wrong count, which the dealer decides (MD3 10.C(2))
    forfeits: list[int] = field(default_factory=list)
    abandoned: list[int] = field(default_factory=list)
    must_hit_seat: int | None = None
    simulated: bool = False
    void_clause: str = ""
    void_why: str = ""
    settlement: dict[str, object] | None = None  # once it is settled
    cards_in_device: bool = False  # they must come out before all is collected (MD3 13.D)


@dataclass
class TableMemory:
    """All of a table."""

    ruleset_sha256: str
    version: int = 1
    state: str = "closed"
    method: str = ""
    packs: list[PackState] = field(default_factory=list)
    highest_pack: int = 0
    last_pack: int = 0  # the pack of the round (mini: the shoe) played last, void or not
    delivered: int = 0  # the pack that came out of the device for its turn and is not in the shoe yet
    one_pack: bool = False
    round: RoundState | None = None
    rounds: int = 0
    seated: list[int] = field(default_factory=list)
    marked: dict[int, int] = field(default_factory=dict)  # seat -> vigorish owed
    units: dict[str, str] = field(default_factory=dict)  # those out of order: "failed", "covered", "sign"
    model: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    carried: int = 0  # unseen cards that open the next hand (MDM 13.A)
    exposed: list[str] = field(default_factory=list)  # cards that open a simulated round (MDM 13.D)
    cover: str = ""  # "", "out", "announce", "last", "over" (MDM 9.D)
    meters: dict[str, int] | None = None
    newest_s: int = 0

    def save(self) -> str:
        """As JSON, for `TableProcedure.restore`."""
        return json.dumps(asdict(self), sort_keys=True)
