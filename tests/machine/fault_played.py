"""A row of the fault table, played: what the machine did about its faults, and whether that was sound."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.machine.fault_cycle import SHELF, SHUFFLE, TRANSFER, NotOccurred, RoundSeen, Row, Scene
from tests.machine.fault_rows import OF_THE_SHUFFLER

from sabot_firmware import hardware, persistent_state, shoe
from sabot_firmware.critical import CriticalMemory
from sabot_protocol.codec import enum_name
from sabot_simulators.mechanism.fault_effects import CARD_KINDS
from sabot_simulators.mechanism.faults import KINDS

# How a row ends
FOUND, LATER, MENDED, TOLERATED, WAITS = "found", "found later", "mended", "tolerated", "waits"
NEVER = "does not occur"
NO_SIGN = "no sign"

# Why a fault has no occasion in a phase: for all phases, and where that differs
NO_CARD_FROM_TRAY = "no card is on its way from the tray"
NO_CARD_FROM_SHOE = "no card is on its way from the shoe"
NO_TRAY, NO_STORE = "no cards lie in the tray", "no cards lie on the shelf"
NEVER_WHY = {
    "misfeed@tray": NO_CARD_FROM_TRAY,
    "misfeed@shoe": NO_CARD_FROM_SHOE,
    "double_feed@tray": NO_CARD_FROM_TRAY,
    "double_feed@shoe": NO_CARD_FROM_SHOE,
    "aligned_double@tray": NO_CARD_FROM_TRAY,
    "aligned_double@shoe": NO_CARD_FROM_SHOE,
    "slip@tray": NO_CARD_FROM_TRAY,
    "slip@shoe": NO_CARD_FROM_SHOE,
    **{f"{kind}@{place}": NO_CARD_FROM_TRAY for kind in ("snag", "stuck") for place in KINDS["snag"][1]},
    "stuck@deal": NO_CARD_FROM_SHOE,
    "stuck@exit": NO_CARD_FROM_SHOE,
    **{f"{kind}@tray": NO_TRAY for kind in CARD_KINDS},
    **{f"{kind}@store": NO_STORE for kind in CARD_KINDS if "store" in KINDS[kind][1]},
    "missed_switch@elevator": "the platform does not go home",
    "missed_switch@gripper": "the gripper does not move",
    "missed_switch@shelf": "nothing is lowered onto the shelf",
    "missed_switch@pusher": "the pusher does not move",
    "lost_steps@chamber": "the platform does not move",
    "grip_slip@chamber": "the gripper does not move",
    "stack_not_taken@exit_tray": "nothing is there to be taken, or it is not yet time to",
    "stack_taken_early@exit_tray": "nothing lies in the exit tray",
    "torn_record@controller": "no record is written",
    "missing_card@tray + extra_card@tray": NO_TRAY,
    "missing_card@tray + duplicate_card@tray": NO_TRAY,
    "missing_card@store + extra_card@store": NO_STORE,
    "door_opened@shuffler + missing_card@store": NO_STORE,
    "aligned_double@shoe + extra_card@shoe": NO_CARD_FROM_SHOE,
}
SECOND_FIRST = "the second fault stopped it before"
ONLY = "the fault has no occasion at this card"
NONE_BEHIND = "the last card has none behind it"
NEVER_WHY_IN = {
    ("double_feed@tray", SHUFFLE): NONE_BEHIND,
    ("aligned_double@tray", SHUFFLE): NONE_BEHIND,
    ("lost_steps@chamber", SHELF): "the platform only goes home, to its switch",
    ("missing_card@tray + extra_card@tray", SHUFFLE): "with the last card gone no other can join it",
    ("missing_card@tray + duplicate_card@tray", SHUFFLE): "with the last card gone no other can join it",
    ("missing_card@shoe + extra_card@shoe", TRANSFER): "with the last card gone no other can join it",
}

# Why counts and rounds stay right
A_LEVEL = "its level is read once, its edges are not counted"
NOT_AWAITED = "no card is awaited there, and it is clean again before one is"
NO_CLOCK = "a round in play and a shuffle begun need no clock"
TOLERATED_WHY = {
    **{f"chattering_sensor@{place}": A_LEVEL for place in ("tray", "chamber", "store", "shoe")},
    **{f"dirty_sensor@{place}": NOT_AWAITED for place in KINDS["dirty_sensor"][1]},
    "stack_not_taken@exit_tray": "the stack waits, the display says so, and no other comes before",
    "stack_taken_early@exit_tray": "the stack was whole: the device sees it taken and goes on",
    "corrupted_record@controller": "a record is read when the power comes; the next save makes it whole",
    "wrong_clock@controller": NO_CLOCK,
    "unknown_clock@controller": NO_CLOCK,
}

SHUFFLER_PLACES = ("tray", "feed", "entry", "insertion", "chamber", "store")
SHOE_PLACES = ("pusher", "shoe", "deal", "exit", "exit_tray")
UNCLAIMED = ("unproved", "door_open", "out_of_order")


@dataclass
class Outcome:
    """What the machine did: the cells of a row."""

    did: str
    """The class: found, mended, ..., or the name of what no sensor can see."""
    after_ms: int | None = None
    """Machine time from the fault to the report."""
    said: str = ""
    seen_in: str = ""
    """The phase of the report, if it is another."""
    round: str = ""
    cards: str = ""
    why: str = ""
    then_did: str = ""
    """Whether the second fault of a pair was found."""
    defects: str = ""
    """What the machine must not have done; empty in a sound table."""


# -- a row ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sign:
    """Something the machine let be known."""

    at_us: int
    phase: str
    says: str
    place: str = ""


class Played:
    """A row that was played: what the machine said, and what became of everything."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.scene = scene = Scene(row)
        self.happened = True
        try:
            scene.play()
        except NotOccurred:
            self.happened = False
            return
        happened_us = scene.happened_us()
        if happened_us is None and row.then:
            self.happened = False
            return
        assert happened_us is not None, "the machine stopped without the fault"
        self.happened_us = happened_us
        self.then_us = scene.then_us()
        self.since_us = happened_us if self.then_us is None else min(happened_us, self.then_us)
        self.deal_orders = list(scene.machine.deal_orders)
        states = [values[0] for name, values in scene.device.reports if name == "shoe_changed"]
        self.scene_motions = scene.motions + states.count(shoe.STARTING)  # each self-test turns it once
        self.crashed = len(scene.machine.crashed)
        self.signs = self._signs()
        self.retried = [
            Sign(at_us, at, "retried", enum_name("Place", int(values[1])))
            for at_us, at, name, values in scene.heard
            if name == "retried" and at_us >= self.since_us
        ]
        self.wrong = list(scene.oracle.wrong)
        self.back = scene.bring_back()
        self.then_us = scene.then_us()
        self.later_signs = self._signs()
        self.wrong_ever = scene.oracle.wrong
        self.kept_whole = self._kept_whole()
        held = set(map(id, scene.held()))
        self.lost = sum(id(card) not in held for card in scene.originals)

    def _signs(self) -> list[Sign]:
        """What showed the fault, in the order of time."""
        scene = self.scene
        signs = [Sign(at_us, at, says) for at_us, at, says in scene.refused]
        for at_us, at, name, values in scene.heard:
            if at_us < self.since_us:
                continue
            if name == "fault_raised":
                place = enum_name("Place", int(values[1]))
                signs.append(Sign(at_us, at, f"{place}: {enum_name('Fault', int(values[0]))}", place))
            elif name == "round_ended" and values[1] != 1:
                says = f"{enum_name('Verdict', int(values[1]))}, {values[3]} of 52"
                signs.append(Sign(at_us, at, says, "exit_tray"))
            elif name == "round_voided" and enum_name("VoidReason", int(values[1])) == "power_cut":
                signs.append(Sign(at_us, at, "round void: power_cut", "controller"))
            elif name in ("shuffler_changed", "shoe_changed"):
                half = name.partition("_")[0]
                state = enum_name("ShufflerState" if half == "shuffler" else "ShoeState", int(values[0]))
                if state in UNCLAIMED:
                    signs.append(Sign(at_us, at, f"{half}: {state}"))
        signs.sort(key=lambda sign: sign.at_us)
        return signs

    def _kept_whole(self) -> bool:
        """Whether critical memory is sound when the power comes the next time."""
        memory = CriticalMemory(self.scene.chip, persistent_state.RECORDS)
        return not persistent_state.PersistentState(memory).damaged

    # -- what it comes to -----------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """The cells of the row."""
        outcome = self._cells()
        outcome.defects = "; ".join(self.defects(outcome)) if self.happened else ""
        return outcome

    def _cells(self) -> Outcome:
        row = self.row
        if not self.happened:
            why = NEVER_WHY_IN.get((row.name, row.phase)) or NEVER_WHY.get(row.name, "")
            if row.then:
                why = SECOND_FIRST if self.scene.then_us() is not None else why or ONLY
            return Outcome(NEVER if why else "no reason", why=why)
        did, why = self._class()
        sign = self.signs[0] if self.signs else self.retried[0] if did == MENDED else None
        outcome = Outcome(did, round=self._round(), cards=self._cards(), why=why)
        if sign is not None:
            outcome.after_ms = round((sign.at_us - self.since_us) / 1000)
            outcome.said = sign.says if did != MENDED else self._retries()
            outcome.seen_in = sign.phase if sign.phase != row.phase else ""
        if row.then:
            outcome.then_did = self._then()
            outcome.said = "; ".join(dict.fromkeys(sign.says for sign in self.signs))
        return outcome

    def _then(self) -> str:
        """What became of the second fault."""
        then_us = self.then_us
        if then_us is None:
            return NEVER
        if any(sign.at_us >= then_us for sign in self.later_signs):
            return FOUND
        again = [at_us for at_us, _, name, _ in self.scene.heard if name == "retried" and at_us >= then_us]
        return MENDED if again else NO_SIGN

    # -- what must hold for every row -----------------------------------------------------------

    def defects(self, outcome: Outcome) -> Iterable[str]:
        """What the machine did that it must never do."""
        yield from self._wrong_claims(outcome)
        yield from self._wrong_moves()
        if not self.back:
            yield "the table does not come back"
        if not self.kept_whole:
            yield "critical memory is damaged"
        if self.lost:
            yield f"{self.lost} cards are lost"

    def _wrong_claims(self, outcome: Outcome) -> Iterable[str]:
        """Nothing is claimed that is not so, and no fault without a name shows nothing."""
        for wrong in self.wrong_ever:
            if wrong.unseen is None:
                yield f"wrong claim: {wrong.what}"
        unseen = self.unseen()
        for each in self.scene.rounds:
            if each.ended == "correct" and not unseen:
                if not each.counts_right() or not each.from_the_top():
                    yield f"round {each.round_id} is called correct"
                if not each.composed_of(self.scene.originals):
                    yield f"round {each.round_id} has a foreign card"
        ends = {each.ended for each in self.rounds_after()}
        if outcome.did in (FOUND, LATER):
            if not outcome.said:
                yield "no report"
        elif outcome.did in (MENDED, TOLERATED):
            if not ends <= {"correct"}:
                yield "no sign, and a round that is not correct"
        elif outcome.did == WAITS:
            if outcome.round not in ("correct", "void: floor_order"):
                yield "it waits, and the round is neither correct nor ended by the floor"
        elif outcome.did not in unseen or outcome.did == "no name":
            yield "silent: no sign, no reason"

    def _wrong_moves(self) -> Iterable[str]:
        """The shuffler half never touches the round; the shoe half never tries twice, and voids it."""
        kind, _, place = self.row.faults[0].partition("@")
        if not self.row.then and (
            (place in OF_THE_SHUFFLER and kind != "bent_card") or kind == "over_temperature"
        ):
            for each in self.scene.rounds:
                if each.ended.startswith("void"):
                    yield f"round {each.round_id} is void by the shuffler half"
        if not {sign.place for sign in self.retried} <= set(SHUFFLER_PLACES):
            yield "the shoe half has tried again"
        if hardware.BACK in self.deal_orders:
            yield "the deal roller was turned back"
        if self.deal_orders.count(hardware.FORWARD) > self.scene_motions:
            yield "the deal roller was started more often than it was asked for"
        for sign in self.signs:
            in_play = self.in_play_at(sign.at_us) if sign.place in SHOE_PLACES else None
            if in_play is not None and not in_play.ended.startswith("void"):
                yield f"{sign.says}, and round {in_play.round_id} is not void"

    # -- its class --------------------------------------------------------------------------------

    def _class(self) -> tuple[str, str]:
        unseen = self.unseen()
        if "no name" in unseen:
            return "no name", ""
        if self.signs:
            in_phase = self.signs[0].phase == self.row.phase
            if not in_phase and not self.row.then and "_clock@" in self.row.name:
                return self._tolerated()
            return (FOUND if in_phase else LATER), f"until then {unseen[0]}" if unseen else ""
        if self.scene.gave_up_waiting:
            return WAITS, ""
        if unseen:
            return unseen[0], ""
        if self.retried:
            return MENDED, ""
        return self._tolerated()

    def _tolerated(self) -> tuple[str, str]:
        why = TOLERATED_WHY.get(self.row.name, "")
        if self.row.then:
            why = "each of the two alone shows nothing either"
        return (TOLERATED if why else "no reason"), why

    def unseen(self) -> list[str]:
        """The names of what no sensor could see and led to a claim that was not so."""
        names = [wrong.unseen or "no name" for wrong in self.wrong]
        for each in self.scene.rounds:
            if each.ended == "correct" and not each.composed_of(self.scene.originals) and each.counts_right():
                names.append("composition")
            elif each.ended == "correct" and not each.counts_right() and not self.wrong:
                by_hand = "hand_in_exit@exit_tray" in (*self.row.faults, self.row.then)
                laid = by_hand and each.right_but_for_a_hand()
                names.append("laid_onto_a_stack" if laid else "no name")
        return names

    def rounds_after(self) -> list[RoundSeen]:
        """The rounds that had not ended when the fault happened."""
        return [each for each in self.scene.rounds if each.ended_us is None or each.ended_us >= self.since_us]

    def in_play_at(self, at_us: int) -> RoundSeen | None:
        """The round that was in play at a moment."""
        for each in self.scene.rounds:
            if each.opened_us <= at_us and (each.ended_us is None or at_us <= each.ended_us):
                return each
        return None

    def _round(self) -> str:
        rounds = [each.ended for each in self.rounds_after()]
        for ended in rounds:
            if ended.startswith("void"):
                return ended
        if "" in rounds:
            return "forgotten, no claim"
        return rounds[0] if rounds else "none in play"

    def _cards(self) -> str:
        return f"{self.crashed} crashed" if self.crashed else "intact"

    def _retries(self) -> str:
        counts = Counter(sign.place for sign in self.retried)
        return "retried at " + ", ".join(f"{place} ({times})" for place, times in counts.items())
