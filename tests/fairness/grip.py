"""One shuffle of a deck that is not as thick or as flat as it should be."""

from random import Random

from tests.machine.shuffler_half import Half, intended

from sabot_firmware import hardware, shuffler
from sabot_simulators.mechanism.physical_cards import new_deck, swell

RIGHT, WRONG = "right", "wrong"


def outcome(seed: int, share: float = 0, warped: int = 0, by_um: int = 0, lost_steps: bool = False) -> str:
    """One shuffle of a deck that has swollen by a share, some of its cards warped."""
    random = Random(seed)
    half = Half(*(["lost_steps@chamber:30"] if lost_steps else []))
    deck = new_deck(hardware.RED, random)
    swell(deck, share)
    for card in random.sample(deck, warped):
        card.warp(by_um)
    half.draws = [random.randrange(bound) for bound in range(1, 53)]
    half.machine.load(list(deck))
    half.begin(52)
    half.run(lambda: half.half.state in (shuffler.STORED, shuffler.JAMMED))
    if half.half.jam is not None:
        return half.half.jam.cause
    order = [card.number for card in half.machine.store]
    return RIGHT if order == intended(deck, half.draws) else WRONG
