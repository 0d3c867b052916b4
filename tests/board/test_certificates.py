"""A person with a certificate at the emulated Pico: signatures take seconds and hold nothing up."""

from tests.board.bench import Latencies
from tests.board.heap import Garbage, Heap
from tests.board.house import FLOOR, bind, certificate, proof
from tests.board.table import Table

from sabot_firmware import shoe, shuffler
from sabot_protocol.codec import CODEC
from sabot_protocol.grid import ANSWERED_AFTER, PERIOD_MS
from sabot_protocol.notifications import RequestAnswered
from sabot_simulators.rp2040.hosted_pico import HostedPico

MOST_LIVE = 120_000
EDGE_TO_ORDER_US = 2_000


def answered(device: HostedPico, number: int) -> bool:
    """Whether a request has its answer, and it is no refusal."""
    found = [each for each in device.happened if isinstance(each, RequestAnswered)]
    return any(each.request_id == number and not each.status for each in found)


def test_a_certificate_shown_while_a_deck_is_shuffled_delays_no_edge_and_no_answer(ready: Table) -> None:
    """It is checked when the shuffle is over. Cards, ticks, memory and other answers are as without it."""
    device = ready.device
    bind(device)
    garbage, heap = Garbage(device), Heap()
    live: list[int] = []
    garbage.on_collection = lambda _: live.append(heap.used(device.pico)[0])
    latencies = Latencies(device)
    ready.begin_shuffle(500_000)
    message = CODEC.named("certificate")
    number = device.host.request(message.id, message.pack(certificate()), device._now_ms())
    device.run_for(300_000)  # a tick takes one frame of the owner
    took: list[float] = []
    while device.shuffler_state == shuffler.FEEDING:
        began = device.pico.now_us
        device.ask("status")
        took.append(device.pico.now_us - began)
        assert not answered(device, number)
        device.run_for(300_000)
    assert max(took) < (1 + ANSWERED_AFTER) * PERIOD_MS * 1000
    assert max(latencies.us) < EDGE_TO_ORDER_US
    device.run_until(lambda: device.shoe_state == shoe.READY)
    device.run_until(lambda: answered(device, number))
    assert device.named("deck_counted") == [(1, 1, 52, 52)]
    assert device.ask("elevate", *proof(device, 1, 1))[0] == FLOOR
    device.ask("play_one_deck", 1)
    device.run_for(200_000)
    assert [each[2] for each in device.named("certificate_used")] == ["dana"]
    assert not device.named("fault_raised")
    assert max(live) <= MOST_LIVE
    assert all(each.asked_for and not each.moved for each in garbage.collections)
