"""Every fault by its name, in a whole shuffle and round: belief is compared with truth at every step."""

from random import Random

import pytest

from sabot_firmware import hardware, shoe, shuffler
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import new_deck
from sabot_simulators.mechanism.faults import KINDS, Fault, UnknownFault
from sabot_simulators.mechanism.machine import Machine

HANDS = 7
CARDS = (1, 2, 26, 52)
ALL = [f"{kind}@{place}:{card}" for kind in KINDS for place in KINDS[kind][1] for card in CARDS]


class Cycle:
    """Load, shuffle, store, push, deal seven stacks, eject the stub; stops at the first jam."""

    def __init__(self, seed: int, *faults: str) -> None:
        random = Random(seed)
        self.machine = Machine(random, tuple(Fault.parse(each) for each in faults))
        self.device = InProcess(self.machine, random.randrange)
        self.device.each_step = self.compare
        self.deck = new_deck(hardware.RED, random)
        self.stacks: list[int] = []  # how many cards each stack really had
        self.found: str | None = None
        self.machine.load(list(self.deck))
        self.run()

    def run(self) -> None:
        device = self.device
        device.shuffler.shuffle(hardware.RED, device.now_us)
        device.run_until(lambda: device.shuffler.state in (shuffler.STORED, shuffler.JAMMED))
        if device.shuffler.jam is not None:
            self.found = f"{device.shuffler.jam.place}: {device.shuffler.jam.cause}"
            return
        if device.shuffler.verified() != 52:
            self.found = "count"
            return
        device.shoe.load(hardware.RED, device.now_us)
        device.run_until(lambda: device.shoe.state in (shoe.READY, shoe.JAMMED))
        for _ in range(HANDS):
            if device.shoe.state == shoe.READY:
                device.shoe.deal_stack(device.now_us)
                device.run_until(lambda: device.shoe.state in (shoe.STACK_WAITING, shoe.JAMMED))
            if device.shoe.state == shoe.STACK_WAITING:
                self.stacks.append(len(self.machine.take_exit()))
                device.run_until(lambda: device.shoe.state in (shoe.READY, shoe.JAMMED))
        if device.shoe.state == shoe.READY:
            device.shoe.eject(device.now_us)
            device.run_until(lambda: device.shoe.state in (shoe.EJECTED, shoe.JAMMED))
        if device.shoe.jam is not None:
            self.found = f"{device.shoe.jam.place}: {device.shoe.jam.cause}"
        elif device.shoe.dealt != 52:
            self.found = "count"

    def compare(self) -> None:
        """What is claimed at this moment is true, and every card is in one place."""
        truth = self.machine.truth()
        held = [card for cards in truth.values() for card in cards]
        assert len(held) == len({id(card) for card in held}) == 52
        claimed = self.device.shuffler.verified()
        if claimed is not None and self.device.shoe.state == shoe.EMPTY:
            assert claimed == len(truth["store"]), "a count that the mechanism contradicts"

    @property
    def correct(self) -> bool:
        """Whether the round really was as it must be."""
        return self.stacks == [3] * HANDS and len(self.machine.exit_tray) == 52 - 3 * HANDS


def test_without_a_fault_the_round_is_correct() -> None:
    cycle = Cycle(1)
    assert cycle.found is None
    assert cycle.correct


@pytest.mark.parametrize("fault", ALL)
def test_a_round_is_correct_or_the_fault_is_found(fault: str) -> None:
    for seed in range(3):
        cycle = Cycle(seed, fault)
        if cycle.found is None:
            assert cycle.correct, f"{fault} passed unseen"
        else:
            assert cycle.machine.faults.happened, f"{cycle.found} without a fault"


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("double_feed@tray:17", ("insertion: double_feed", "entry: double_feed")),
        ("aligned_double@tray:17", ("chamber: height_mismatch",)),
        ("stuck@entry:5", ("entry: card_stuck",)),
        ("stuck@insertion:5", ("insertion: card_stuck",)),
        ("grip_slip@chamber:30", ("chamber: grip_mismatch",)),
        ("lost_steps@chamber:30", ("chamber: grip_mismatch", "chamber: height_mismatch")),
        ("stall@feed:5", ("feed: misfeed", "entry: card_stuck")),
        ("stall@insert:5", ("insertion: card_stuck", "entry: double_feed")),
        ("misfeed@shoe:9", ("deal: misfeed",)),
        ("double_feed@shoe:9", ("exit: double_feed",)),
        ("stuck@exit:9", ("exit: double_feed",)),
        ("aligned_double@shoe:9", ("count",)),
    ],
)
def test_a_fault_is_found_where_it_shows(fault: str, found: tuple[str, ...]) -> None:
    cycle = Cycle(4, fault)
    assert cycle.found in found


def test_a_misfed_card_is_drawn_again_and_changes_nothing() -> None:
    cycle = Cycle(5, "misfeed@tray:20")
    assert cycle.found is None
    assert cycle.correct
    assert cycle.device.shuffler.retries > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jam", "no fault is called"),
        ("stuck@moon", "cannot happen at"),
        ("slip:0", "counted from 1"),
        ("slip:x", "not the number"),
    ],
)
def test_a_fault_nobody_knows_is_refused_with_what_there_is(text: str, words: str) -> None:
    with pytest.raises(UnknownFault, match=words):
        Fault.parse(text)


def test_a_fault_is_written_as_it_is_read() -> None:
    for text in ("double_feed@tray:17", "stuck@exit"):
        assert str(Fault.parse(text)) == text
    assert Fault.parse("slip") == Fault("slip", "tray")
