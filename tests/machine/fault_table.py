"""The fault table: every fault in every phase of the machine's work, and what the machine did about it.

Each row plays one table with two decks through two rounds and the shuffles between them (``PHASES`` are spans
of that cycle), lets one fault happen at its phase, and goes on as far as the machine lets it. Then the table
is brought back and must deal a correct round. ``python -m tests.machine.fault_table`` writes
``docs/faults.md``.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.machine.fault_cycle import (
    AT_ONCE_US,
    LAST_CARD,
    OTHER_SPANS,
    PHASES,
    SHELF,
    NotOccurred,
    RoundSeen,
    Row,
    Scene,
)

from sabot_firmware import kept
from sabot_firmware.critical import CriticalMemory
from sabot_protocol.codec import enum_name
from sabot_simulators.mechanism.faults import KINDS, RUNNERS_KINDS
from sabot_simulators.mechanism.mishaps import CARD_KINDS
from sabot_simulators.oracle import UNSEEN

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "faults.md"
# How a row ends
FOUND, LATER, MENDED, TOLERATED, WAITS = "found", "found later", "mended", "tolerated", "waits"
NEVER = "does not occur"

CLASSES = {
    FOUND: "F",
    LATER: "L",
    MENDED: "m",
    TOLERATED: "t",
    WAITS: "w",
    NEVER: "·",
    **dict.fromkeys(UNSEEN, "U"),
}
LEGEND = {
    FOUND: "it stopped or refused in the same phase, and said where and why",
    LATER: "nothing was to be seen at once; a later check found it, in the phase named",
    MENDED: "the shuffler half backed up and tried again (`retried`), and nothing stopped",
    TOLERATED: "counts and rounds stayed right; the last column says why, and what refuses later",
    WAITS: "it waits for what it cannot see, deals nothing and claims nothing; the floor ends the round",
    NEVER: "this fault has no occasion in this phase; the last column says why (played, not assumed)",
}

# The kinds, a table of the page each
GROUPS = {
    "Cards on their way": ("misfeed", "double_feed", "aligned_double", "slip", "snag", "stuck"),
    "Cards as they are": CARD_KINDS,
    "Sensors and switches": ("dirty_sensor", "dead_sensor", "chattering_sensor", "missed_switch"),
    "Movers": ("lost_steps", "grip_slip", "motor_stall"),
    "People": ("door_opened", "stack_not_taken", "stack_taken_early", "hand_in_exit"),
    "The board": ("over_temperature", "brown_out", "power_cut", "stuck_noise", *RUNNERS_KINDS),
}
TOGETHER = "Together"
ABOUT_TOGETHER = "Faults that hide each other, or that make each other worse, in the same phase."

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
NONE_BEHIND = "the last card has none behind it"
NEVER_WHY_IN = {
    ("double_feed@tray", LAST_CARD): NONE_BEHIND,
    ("aligned_double@tray", LAST_CARD): NONE_BEHIND,
    ("lost_steps@chamber", SHELF): "the platform only goes home, to its switch",
    ("missing_card@tray + extra_card@tray", LAST_CARD): "with the last card gone no other can join it",
    ("missing_card@tray + duplicate_card@tray", LAST_CARD): "with the last card gone no other can join it",
}

# Why counts and rounds stay right
A_LEVEL = "its level is read once, its edges are not counted"
NOT_AWAITED = "no card is awaited there, and it is clean again before one is"
NO_CLOCK = "a round in play and a shuffle begun need no clock"
TOLERATED_WHY = {
    **{f"chattering_sensor@{place}": A_LEVEL for place in ("tray", "chamber", "store", "shoe")},
    **{f"dirty_sensor@{place}": NOT_AWAITED for place in KINDS["dirty_sensor"][1]},
    "stack_not_taken@exit_tray": "the stack waits, the display says so, and no other comes before",
    "corrupted_record@controller": "a record is read when the power comes; the next save makes it whole",
    "wrong_clock@controller": NO_CLOCK,
    "unknown_clock@controller": NO_CLOCK,
}

BETWEEN_SENSORS = {
    "tray to entry (30 mm)": "the tray's sensor sees the card until it is drawn, and its edge at the entry "
    "must come in its window. A half that stopped is cleared only after its door was opened. A card left "
    "there is drawn with the next deck, counted, and found as one too many or by its back.",
    "entry to insertion (50 mm)": "a card is 88.9 mm long: it covers at least one of the two sensors",
    "insertion to chamber": "the insertion's sensor must become free and the height must grow by one card; a "
    "card that reached neither is a `height_mismatch`",
    "chamber to shelf": "the chamber must read empty and the shelf full when the carriage has arrived; the "
    "stack moves as one",
    "shelf to shoe": "the shelf must read empty and the shoe full when the pusher is home; a card that stays "
    "behind keeps the shelf's sensor covered",
    "shoe to exit (40 mm)": "a shoe whose deck came out short stays `blocked`: the missing card is purged "
    "past the exit, or its deck counts 52 again, or a person states that the path was inspected, and then "
    "the next count is claimed, not proved",
    "exit to a full exit tray": "the tray begins 6 mm behind the exit's sensor. A card that finds no room "
    "there, for example because a hand laid cards onto a stub, stops with its edge at the tray and covers "
    "the sensor: `double_feed`, the round is void, and nothing is proved. By itself the device ejects no "
    "more cards than the tray holds",
    "shelf to an overfull shoe": "the pusher stops against cards that have no room to go to, and its end "
    "switch is missed; the stack stays on the shelf, where the sensor sees it",
}

COMBINATIONS = (
    "missing_card@tray + extra_card@tray",
    "missing_card@tray + duplicate_card@tray",
    "missing_card@store + extra_card@store",
    "missing_card@shoe + extra_card@shoe",
    "aligned_double@shoe + extra_card@shoe",
    "door_opened@shuffler + missing_card@store",
    "corrupted_record@controller + power_cut@controller",
)

# Of which half a fault's place is; the rest concerns both
OF_THE_SHUFFLER = (
    "tray", "entry", "insertion", "chamber", "feed", "insert", "elevator", "gripper", "shelf", "shuffler",
)  # fmt: skip
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

    def line(self) -> tuple[str, str, str, str, str, str]:
        """Everything but the time."""
        return self.did, self.said, self.seen_in, self.round, self.cards, self.why


def rows() -> list[Row]:
    """Every row of the table."""
    single = [(f"{kind}@{place}",) for kind, (_, places) in KINDS.items() for place in places]
    combined = [tuple(each.split(" + ")) for each in COMBINATIONS]
    return [Row(faults, phase) for faults in single + combined for phase in PHASES]


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
        assert happened_us is not None, "the machine stopped without the fault"
        self.happened_us = happened_us
        self.deal_orders = list(scene.machine.deal_orders)
        self.crashed = len(scene.machine.crashed)
        self.signs = self._signs()
        self.retried = [
            Sign(at_us, at, "retried", enum_name("Place", int(values[1])))
            for at_us, at, name, values in scene.heard
            if name == "retried" and at_us >= happened_us
        ]
        self.wrong = list(scene.oracle.wrong)
        self.back = scene.bring_back()
        self.wrong_ever = scene.oracle.wrong
        self.kept_whole = self._kept_whole()
        held = set(map(id, scene.held()))
        self.lost = sum(id(card) not in held for card in scene.originals)

    def _signs(self) -> list[Sign]:
        """What showed the fault, in the order of time."""
        scene = self.scene
        signs = [Sign(at_us, at, says) for at_us, at, says in scene.refused]
        for at_us, at, name, values in scene.heard:
            if at_us < self.happened_us:
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
        memory = CriticalMemory(self.scene.chip, kept.RECORDS)
        return not kept.Kept(memory).damaged

    # -- what it comes to -----------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """The cells of the row."""
        row = self.row
        if not self.happened:
            why = NEVER_WHY_IN.get((row.name, row.phase)) or NEVER_WHY.get(row.name, "")
            return Outcome(NEVER if why else "no reason", why=why)
        did, why = self._class()
        sign = self.signs[0] if self.signs else self.retried[0] if did == MENDED else None
        outcome = Outcome(did, round=self._round(), cards=self._cards(), why=why)
        if sign is not None:
            outcome.after_ms = round((sign.at_us - self.happened_us) / 1000)
            outcome.said = sign.says if did != MENDED else self._retries()
            outcome.seen_in = sign.phase if sign.phase != row.phase else ""
        return outcome

    def _class(self) -> tuple[str, str]:
        unseen = self.unseen()
        if "no name" in unseen:
            return "no name", ""
        if self.signs:
            in_phase = self.signs[0].phase == self.row.phase
            if not in_phase and self.row.faults[0].partition("@")[0] in ("wrong_clock", "unknown_clock"):
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
        return (TOLERATED if why else "no reason"), why

    def unseen(self) -> list[str]:
        """The names of what no sensor could see and led to a claim that was not so."""
        names = [wrong.unseen or "no name" for wrong in self.wrong]
        for each in self.scene.rounds:
            if each.ended == "correct" and not each.composed_of(self.scene.originals) and each.counts_right():
                names.append("composition")
            elif each.ended == "correct" and not each.counts_right() and not self.wrong:
                names.append("no name")
        return names

    def rounds_after(self) -> list[RoundSeen]:
        """The rounds that had not ended when the fault happened."""
        return [
            each for each in self.scene.rounds if each.ended_us is None or each.ended_us >= self.happened_us
        ]

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


# -- the page -------------------------------------------------------------------------------------

_PHASE = re.compile(r"([a-z ]+?)(?: \((\d+) ms\))?")


def by_fault(outcomes: dict[Row, Outcome]) -> dict[str, dict[str, Outcome]]:
    """The rows of each fault."""
    table: dict[str, dict[str, Outcome]] = {}
    for row, outcome in outcomes.items():
        table.setdefault(row.name, {})[row.phase] = outcome
    return table


def render(outcomes: dict[Row, Outcome]) -> str:
    """The page."""
    table = by_fault(outcomes)
    counts = Counter(outcome.did for outcome in outcomes.values())
    lines = [
        "<!-- Generated by `python -m tests.machine.fault_table` from played tables. Do not edit. -->",
        "# What the machine does about faults",
        "",
        f"Every fault the simulated mechanism knows, in every phase of the work: {len(outcomes)} rows, each",
        "played from its own seed (`tests/machine/test_fault_table.py`). Two decks are at the table; a fault",
        "happens in the phase, then play goes on as far as the machine lets it: to the end of the round,",
        "through the next shuffle and the round after that. Afterwards people put everything right, and a",
        "correct round must be dealt, with every card of both decks accounted for. Times are machine time",
        "from the moment the fault really happened to the report, people's waiting included. Cards are",
        "intact if none ran into a closed slot, a full zone or another card.",
        "",
        "A fault of the shuffler half never disturbs the round in play, and the shoe half never tries twice:",
        "the tests hold every row to that.",
        "",
        "## Phases",
        "",
        "| phase | is |",
        "| --- | --- |",
        *(f"| {phase} | {says} |" for phase, says in PHASES.items()),
        *(f"| *{span}* | {says} |" for span, says in OTHER_SPANS.items()),
        "",
        "No fault begins in the phases in italics; some are seen there. A fault that needs a card or a move",
        f"takes the first one of its phase; one that does not happens {AT_ONCE_US // 1000} ms into it, in",
        "the midst of the motion.",
        "",
        "## What it did",
        "",
        "| | class | rows | means |",
        "| --- | --- | --- | --- |",
        *(f"| {CLASSES[did]} | {did} | {counts[did]} | {says} |" for did, says in LEGEND.items()),
        *(f"| U | `{name}` | {counts[name]} | {unseen.means} |" for name, unseen in UNSEEN.items()),
        "",
        "The classes marked U are what this set of sensors cannot see, by name, and what nothing found in",
        "the cycle. Where a later check found it after all, the row's last column names what could not be",
        "seen until then. A claim that is wrong for any other reason fails the suite.",
        "",
        "**A count is not a composition.** The machine proves how many cards there are and that each shows",
        "the right back. A second seven of spades in the place of the ace of hearts is still a card: see",
        f"`composition` under [{TOGETHER}](#{TOGETHER.lower()}). The faces read at the exit can tell, on the",
        "host, after the reveal; and two cards of one face in a round are the players' to see.",
        "",
        "## What excuses a wrong claim",
        "",
        "The oracle (`simulators/sabot_simulators/oracle`) judges every claim by the identity of its cards.",
        "Only these excuse a wrong one, and each excuse names the cards, the deck, the cause and the window.",
        "",
        "| excuse | claims that it excuses | names | window |",
        "| --- | --- | --- | --- |",
        *(f"| `{name}` | {each.excuses} | {each.names} | {each.window} |" for name, each in UNSEEN.items()),
        "",
        "## Between two sensors",
        "",
        "A card can lie where no sensor sees it. For each such place, this is why no count goes wrong by it:",
        "",
        *(f"- **{place}**: {why}" for place, why in BETWEEN_SENSORS.items()),
        "",
        "## At a glance",
        "",
        "| fault | " + " | ".join(PHASES) + " |",
        "| --- |" + " :-: |" * len(PHASES),
    ]
    for name, row in table.items():
        marks = [CLASSES.get(row[phase].did, "?") for phase in PHASES]
        lines.append(f"| `{name}` | " + " | ".join(marks) + " |")
    for group in (*GROUPS, TOGETHER):
        lines += ["", f"## {group}", ""]
        lines += [f"- `{kind}`: {KINDS[kind][0]}" for kind in GROUPS.get(group, ())] or [ABOUT_TOGETHER]
        lines += [
            "",
            "| fault | in phase (after) | did | reported | seen in | round | cards | why |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for name, row in table.items():
            if group_of(name) == group:
                lines += _lines(name, row)
    return "\n".join(lines) + "\n"


def group_of(name: str) -> str:
    """The group that a fault, or a combination of them, is in."""
    if " + " in name:
        return TOGETHER
    return next(group for group, kinds in GROUPS.items() if name.partition("@")[0] in kinds)


def _lines(name: str, row: dict[str, Outcome]) -> Iterable[str]:
    """The lines of one fault: phases that came to the same share one."""
    same: dict[tuple[str, ...], list[str]] = {}
    for phase in PHASES:
        outcome = row[phase]
        after = "" if outcome.after_ms is None else f" ({outcome.after_ms} ms)"
        same.setdefault(outcome.line(), []).append(phase + after)
    for cells, phases in sorted(same.items(), key=lambda each: each[0][0] == NEVER):
        did, *others = cells
        yield f"| `{name}` | {', '.join(phases)} | {did} | " + " | ".join(others) + " |"


def read(page: str) -> dict[Row, Outcome]:
    """The table, as the page has it."""
    found: dict[Row, Outcome] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 8 or not cells[0].startswith("`"):
            continue
        faults = tuple(cells[0].strip("`").split(" + "))
        for each in cells[1].split(", "):
            match = _PHASE.fullmatch(each)
            assert match is not None, each
            after_ms = None if match[2] is None else int(match[2])
            found[Row(faults, match[1])] = Outcome(cells[2], after_ms, *cells[3:])
    return {row: found[row] for row in rows() if row in found}


def _outcome(row: Row) -> Outcome:
    return Played(row).outcome()


def main() -> None:
    """Play every row and write the page."""
    table = rows()
    with ProcessPoolExecutor() as pool:
        outcomes = dict(zip(table, pool.map(_outcome, table, chunksize=16), strict=True))
    PAGE.write_text(render(outcomes), encoding="utf-8")
    counts = Counter(outcome.did for outcome in outcomes.values())
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}: {len(table)} rows\n")
    for did, number in counts.most_common():
        sys.stdout.write(f"  {did:<22}{number:>4}\n")


if __name__ == "__main__":
    main()
