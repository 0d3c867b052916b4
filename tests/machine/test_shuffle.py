"""The shuffler half on the simulated mechanism: the order is the drawn one, the count the real one."""

from random import Random

import pytest

from sabot_firmware import figures, hardware, shuffler
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import Card, cover_card, new_deck
from sabot_simulators.mechanism.machine import Machine


class Bench:
    """One machine from a seed, with a note of what was drawn."""

    def __init__(self, seed: int, cards: int = figures.DECK_CARDS) -> None:
        self.random = Random(seed)
        self.machine = Machine(self.random)
        self.deck = new_deck(hardware.RED, self.random, cards)
        self.draws: list[int] = []
        self.device = InProcess(self.machine, self.draw)

    def draw(self, bound: int) -> int:
        self.draws.append(self.random.randrange(bound))
        return self.draws[-1]

    def shuffle(self) -> "Bench":
        self.machine.load(list(self.deck))
        self.device.shuffler.shuffle(hardware.RED, self.device.now_us)
        self.device.run_until(lambda: self.device.shuffler.state in (shuffler.STORED, shuffler.JAMMED))
        return self

    def intended(self) -> list[Card]:
        order: list[Card] = []
        for card, slot in zip(self.deck, self.draws, strict=True):
            order.insert(slot, card)
        return order


@pytest.mark.parametrize("seed", range(20))
def test_the_physical_order_is_the_drawn_one_and_52_are_verified(seed: int) -> None:
    bench = Bench(seed).shuffle()
    assert bench.device.shuffler.jam is None
    assert bench.machine.store == bench.intended()
    assert bench.device.shuffler.verified() == 52


@pytest.mark.parametrize("cards", [1, 2, 51, 53])
def test_another_number_of_cards_is_counted_as_what_it_is(cards: int) -> None:
    bench = Bench(3, cards).shuffle()
    counted = [values[2] for name, values in bench.device.reports if name == "deck_counted"]
    assert counted == [cards] == [len(bench.machine.store)]
    assert bench.device.shuffler.jam is not None  # a deck that is not 52 is stopped (MD3 5.B)


def test_every_card_is_in_one_place_at_every_moment() -> None:
    bench = Bench(5)

    def look() -> None:
        held = [card for cards in bench.machine.truth().values() for card in cards]
        assert len(held) == 52
        assert set(map(id, held)) == set(map(id, bench.deck))

    bench.device.each_step = look
    bench.shuffle()


def test_nothing_is_claimed_before_it_is_stored() -> None:
    bench = Bench(6)

    def look() -> None:
        if bench.device.shuffler.state != shuffler.STORED:
            assert bench.device.shuffler.verified() is None

    bench.device.each_step = look
    bench.shuffle()


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [Bench(7).shuffle() for _ in range(2)]
    assert runs[0].machine.agenda.now_us == runs[1].machine.agenda.now_us
    assert [card.name for card in runs[0].machine.store] == [card.name for card in runs[1].machine.store]


@pytest.mark.parametrize(
    ("stuck_at_um", "place"),
    [(10_000, "feed"), (60_000, "entry"), (120_000, "insertion"), (150_000, "insertion")],
)
def test_a_stuck_card_is_found_where_it_is(
    stuck_at_um: int, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(8)
    take = bench.machine._from_tray

    def sticky() -> object:
        body = take()
        if body is not None and len(bench.machine.tray) == 40:
            body.stuck_at_um = stuck_at_um
        return body

    monkeypatch.setattr(bench.machine.feed_track, "_take", sticky)
    bench.shuffle()
    jam = bench.device.shuffler.jam
    assert jam is not None
    assert jam.place == place
    assert bench.device.shuffler.verified() is None
    assert bench.machine._rollers[hardware.FEED].direction == 0
    assert bench.machine._rollers[hardware.INSERT].direction == 0


def test_a_grip_off_by_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(9)
    elevate = bench.machine.elevate
    moves = 0

    def slipping(position_um: int) -> None:
        nonlocal moves
        moves += 1
        elevate(position_um - (figures.CARD_THICKNESS_UM if moves > 60 else 0))

    monkeypatch.setattr(bench.machine, "elevate", slipping)
    bench.shuffle()
    jam = bench.device.shuffler.jam
    assert jam is not None
    assert jam.cause == "grip_mismatch"
    assert bench.device.shuffler.verified() is None


def test_two_cards_together_are_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for offset_um in (0, 2_000, 20_000):
        bench = Bench(10)
        take = bench.machine._from_tray

        def double(take=take, bench=bench, offset_um=offset_um):  # type: ignore[no-untyped-def]
            body = take()
            if body is not None and len(bench.machine.tray) == 30:
                body.cards.append(bench.machine.tray.pop(0))
                body.length_um += offset_um
            return body

        monkeypatch.setattr(bench.machine.feed_track, "_take", double)
        bench.shuffle()
        assert bench.device.shuffler.jam is not None, offset_um
        assert bench.device.shuffler.verified() is None


@pytest.mark.rule("MD3 3.B")
@pytest.mark.parametrize("wrong", ["other deck", "face up", "cover"])
def test_a_card_that_does_not_belong_is_found_at_the_entry(wrong: str) -> None:
    bench = Bench(11)
    if wrong == "face up":
        bench.deck[20].face_up = True
    elif wrong == "cover":
        bench.deck[20] = cover_card(bench.random)
    else:
        bench.deck[20] = new_deck(hardware.BLUE, bench.random)[20]
    bench.shuffle()
    jam = bench.device.shuffler.jam
    assert jam is not None
    causes = {"other deck": "wrong_deck", "face up": "face_up_card", "cover": "foreign_card"}
    assert (jam.place, jam.cause) == ("entry", causes[wrong])
    assert bench.device.shuffler.entered == 21


def test_a_stack_is_never_lowered_onto_another_deck() -> None:
    bench = Bench(12)
    other = new_deck(hardware.BLUE, bench.random)
    bench.machine.store = list(other)  # the pusher has not taken it
    bench.machine.load([])
    bench.shuffle()
    jam = bench.device.shuffler.jam
    assert jam is not None
    assert (jam.place, jam.cause) == ("store", "sensor_disagrees")
    assert bench.machine.store == other
    assert bench.machine.stack() == bench.intended()
    assert bench.device.shuffler.verified() is None
    assert [name for name, _ in bench.device.reports if name == "deck_counted"] == []


def test_counts_that_disagree_are_not_reported_as_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffler.Shuffler, "verified", lambda self: None)
    bench = Bench(13).shuffle()
    names = [name for name, _ in bench.device.reports]
    assert "deck_counted" not in names
    assert "fault_raised" in names
