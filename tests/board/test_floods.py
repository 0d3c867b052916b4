"""A host without a key that sends as fast as a cable takes it, and reads, reads slowly or does not read."""

from random import Random

import pytest
from tests.board.heap import Garbage, Heap
from tests.board.table import SEED, Table

from sabot_firmware import shoe, shuffler
from sabot_protocol import frame
from sabot_protocol.grid import ANSWERED_AFTER
from sabot_protocol.wire_constants import OVERHEAD, SEALED_TO_DEVICE
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import PERIOD_US, clear_frame
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.runner_messages import RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine

# A packet of no session, which the device answers by a hint.
FOREIGN = bytes(frame.encode(bytes((SEALED_TO_DEVICE,)) + bytes(OVERHEAD)))
FLOODS = [
    ("usb", "reading", "identify"),
    ("usb", "slow", "identify"),
    ("usb", "deaf", "identify"),
    ("usb", "deaf", "foreign"),
    ("uart", "reading", "identify"),  # without flow control no host of a UART is deaf
    ("uart", "reading", "foreign"),
]
AT_ONCE = 24  # frames
AGAIN_US = 20_000
ATTENTIVE_US = 2_000  # of each 20 ms, a slow host reads
QUESTIONS = 12
SHARE_US = 20_000  # what one piece of the flood takes
LONGEST_COLLECTION_US = 26_000  # the board relies on it (PAUSE_US of its loop)
GROWTH = 4096
MOST_LIVE = 120_000


class Flooded(HostedPico):
    """A board with its owner on one cable; another host, without a key, floods the other.

    It sends ``identify``, or packets of no session, which are answered by hints.
    """

    def __init__(self, pico: Pico, machine: PinDrivenMachine, cable: str, host: str, sent: str) -> None:
        self.flooding = False
        self._cable, self._reads = cable, host
        self._foreign = sent == "foreign"
        self._next_us = 0
        self._dice = Random(SEED)
        super().__init__(pico, machine)

    def _say(self, data: bytes) -> None:
        wrap = runner_messages.uart if self._cable == "usb" else runner_messages.usb
        self.wiring.changes.append(wrap(data))

    def _said(self, ran: RunResult) -> bytes:
        return ran.uart if self._cable == "usb" else ran.usb

    def _frame(self) -> bytes:
        return FOREIGN if self._foreign else clear_frame("identify", self._dice)

    def _turn(self, end_us: int) -> None:
        now = self.machine.agenda.now_us
        if self.flooding and now >= self._next_us:
            self._next_us = now + AGAIN_US
            data = b"".join(self._frame() for _ in range(AT_ONCE))
            wrap = runner_messages.usb if self._cable == "usb" else runner_messages.uart
            self.wiring.changes.append(wrap(data))
        if self.flooding and self._reads != "reading":
            hears = self._reads == "slow" and now % AGAIN_US < ATTENTIVE_US
            self.wiring.changes.append(runner_messages.deaf(not hears))
        super()._turn(min(end_us, self._next_us) if self.flooding and end_us > now else end_us)

    def answer_times_us(self, questions: int = QUESTIONS) -> list[float]:
        """How long each of a few questions of the owner takes, at different moments."""
        took = []
        for _ in range(questions):
            self.run_for(self._dice.randrange(20_000, 90_000))
            began = self.pico.now_us
            self.ask("status")
            took.append(self.pico.now_us - began)
        return took


@pytest.mark.parametrize(("cable", "host", "sent"), FLOODS)
def test_a_flood_takes_nothing_from_the_owner_on_the_other_cable(
    pico: Pico, cable: str, host: str, sent: str
) -> None:
    """At rest and while a deck is shuffled: its session, its answer times, its memory, its cards."""
    pico.restore("new")
    device = Flooded(pico, PinDrivenMachine(Random(SEED)), cable, host, sent)
    device.provision()
    device.run_until_idle()
    garbage, heap = Garbage(device), Heap()
    live: list[int] = []
    garbage.on_collection = lambda _: live.append(heap.used(pico)[0])
    collected = garbage.collections
    quiet = device.answer_times_us()
    device.flooding = True
    device.run_for(3_000_000)
    met: list[float] = []
    flooded = []
    for _ in range(QUESTIONS):
        (took,) = device.answer_times_us(1)
        asked_us = device.pico.now_us - took
        ends = [(each.at_us, each.at_us + each.us) for each in collected]
        met.append(sum(end_us - max(at_us, asked_us) for at_us, end_us in ends if end_us > asked_us))
        flooded.append(took - met[-1])
    assert max(flooded) < max(quiet) + SHARE_US
    assert max(met) < LONGEST_COLLECTION_US
    assert max(live) - min(live) < GROWTH
    table = Table(device, Dealer(device))
    table.begin_shuffle(1_000)
    assert max(device.answer_times_us()) < (1 + ANSWERED_AFTER) * PERIOD_US
    device.run_until(lambda: device.shoe_state == shoe.READY or device.shuffler_state == shuffler.JAMMED)
    assert device.named("deck_counted") == [(1, 1, 52, 52)]
    assert not device.named("fault_raised")
    assert device.host.diagnostics.sessions == 1
    assert max(live) < MOST_LIVE
    assert len(live) > QUESTIONS
    assert [each for each in garbage.collections if each.moved or not each.asked_for] == []
