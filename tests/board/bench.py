"""``make bench-board``: figures of the emulated Pico. Times are emulated, so they are the same everywhere.

Only the last line depends on this computer: how fast it emulates.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table as Printed
from tests.board import house
from tests.board.heap import Collection, Garbage, Heap, watched

from sabot_firmware import hardware, shoe
from sabot_firmware.boards.rp2040 import pins
from sabot_image_build.build import BuiltImage, build_uf2
from sabot_protocol import grid
from sabot_protocol.codec import CODEC
from sabot_protocol.link import KEEP_ALIVE_MS, SILENCE_MS
from sabot_protocol.schema import MAX_REVOKED
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import FLOOD, clear_frame
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.runner_messages import BoardReport, PinSet
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

SEED = 7
ROUNDS = 5
FLOOD_EVERY_US = 23_000
AROUND_US = 35_000  # of the second at which a keep-alive is due
ASKED_AROUND = 100
FEED_DRIVE = pins.ROLLERS[0][1]


class Latencies:
    """From a card at the insertion sensor to the feed roller's stop, which follows from nothing else."""

    def __init__(self, device: HostedPico) -> None:
        self.us: list[float] = []
        self._arrived_us: int | None = None
        machine, wiring = device.machine, device.wiring
        tell, obey = machine.on_edge, wiring._obey

        def edge(sensor: int, level: int, at_us: int) -> None:
            if sensor == hardware.INSERTION and level and machine._rollers[hardware.FEED].direction:
                self._arrived_us = at_us
            tell(sensor, level, at_us)

        def order(told: BoardReport) -> None:
            if isinstance(told, PinSet) and (told.pin, told.level) == (FEED_DRIVE, 0):
                if self._arrived_us is not None:
                    self.us.append(told.at_us - self._arrived_us)
                self._arrived_us = None
            obey(told)

        machine.on_edge = edge
        wiring._obey = order  # type: ignore[method-assign]


def shuffle_s(reports_at: list[tuple[str, float]]) -> float:
    """From the first card to the count of the first deck."""
    began = next(at for name, at in reports_at if name == "shuffler_changed(2)")
    return next(at for name, at in reports_at if name == "deck_counted") - began


def in_process_shuffle_s() -> float:
    """The same shuffle with the firmware in this process, which takes no time to think."""
    random = Random(SEED)
    machine = SimulatedMachine(random)
    device = PythonDevice(machine, random.randrange)
    told: list[tuple[str, float]] = []
    device.on_report = lambda name, values: told.append((_named(name, values), machine.agenda.now_us / 1e6))
    assert Dealer(device).open_table()
    return shuffle_s(told)


def _named(name: str, values: tuple[int | str, ...]) -> str:
    return f"{name}({values[0]})" if name == "shuffler_changed" else name


def main() -> int:
    """Measure and print."""
    image = build_uf2()
    table = Printed("figure", "emulated Pico", "goal", title="Sabot on an emulated Raspberry Pi Pico")
    with TemporaryDirectory() as folder:
        rom = bootrom(Path(folder))
        with Pico(image.path, board_wiring(), rom, watched=watched()) as pico:
            _measure(pico, image, table)
        with Pico(image.path, board_wiring(), rom, watched=watched()) as pico:
            _measure_keep_alives(pico, table)
        with Pico(image.path, board_wiring(), rom, watched=watched()) as pico:
            _measure_flood(pico, table)
        with Pico(image.path, board_wiring(), rom) as pico:
            _measure_beside(pico, table)
        with Pico(image.path, board_wiring(), rom, watched=watched(allocations=True)) as pico:
            _measure_allocations(pico, table)
        with Pico(image.path, board_wiring(), rom, watched=watched()) as pico:
            _measure_certificates(pico, table)
        with Pico(image.path, board_wiring(), rom) as pico:
            _measure_speed(pico, table)
    Console().print(table)
    return 0


def _measure(pico: Pico, image: BuiltImage, table: Printed) -> None:
    machine = PinDrivenMachine(Random(SEED))
    device = HostedPico(pico, machine)
    device.ask_clear("identify")
    table.add_row("from power to the first answer", f"{pico.now_us / 1e3:.0f} ms", "")
    device.provision()
    device.run_until_idle()
    device.run_for(1_000_000)
    answers = []
    for _ in range(10):
        began = pico.now_us
        device.ask("status")
        answers.append((pico.now_us - began) / 1e3)
        device.run_for(100_000)
    table.add_row("status answered, worst of 10", f"{max(answers):.1f} ms", "10 ms")
    heap, garbage = Heap(), Garbage(device)
    peak, whole = heap.used(pico)
    rests: list[int] = []  # after each collection

    def collected(_: Collection) -> None:
        rests.append(heap.used(pico)[0])

    garbage.on_collection = collected
    told: list[tuple[str, float]] = []

    def note(name: str, values: tuple[int | str, ...]) -> None:
        nonlocal peak
        told.append((_named(name, values), pico.now_us / 1e6))
        peak = max(peak, heap.used(pico)[0])

    device.on_report = note
    latencies = Latencies(device)
    dealer = Dealer(device)
    assert dealer.open_table()
    taken = shuffle_s(told)
    model = in_process_shuffle_s()
    table.add_row("52 cards shuffled", f"{taken:.2f} s", f"{model:.2f} s, in-process")
    table.add_row("edge to order, median", f"{median(latencies.us) / 1e3:.2f} ms", "")
    worst = max(latencies.us) / 1e3
    table.add_row(f"edge to order, worst of {len(latencies.us)}", f"{worst:.2f} ms", "2 ms")
    garbage.collections.clear()
    began, before = pico.now_us, pico.figures()
    assert dealer.play_round()
    round_s, after = (pico.now_us - began) / 1e6, pico.figures()
    table.add_row("a round with its shuffle", f"{round_s:.1f} s", "")
    busy = (after.cycles - before.cycles) / 125e6 / round_s
    table.add_row("  of which the processor worked", f"{100 * busy:.0f} %", "")
    runs = garbage.collections
    table.add_row("  collections of garbage in it", f"{len(runs)}", "")
    table.add_row("  the longest", f"{max(each.us for each in runs) / 1e3:.1f} ms", "")
    table.add_row("  while anything moved", f"{sum(bool(each.moved) for each in runs)}", "0")
    table.add_row("  not asked for", f"{sum(not each.asked_for for each in runs)}", "0")
    table.add_row("heap after a collection, at most", f"{max(rests):,} bytes of {whole:,}", "120,000")
    table.add_row("heap at most when something was told", f"{peak:,} bytes", "")
    table.add_row("flash of the program", f"{image.program_bytes:,} bytes", "")


def _measure_keep_alives(pico: Pico, table: Printed) -> None:
    """Ask around the time at which the device's and the host's keep-alives are due.

    A question that meets a collection of garbage waits for its end. Those are told apart.
    """
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    garbage, heard = Garbage(device), device.host.diagnostics
    device.run_for(1_000_000)
    device.ask("status")
    undisturbed: list[float] = []
    collected: list[float] = []
    met = 0
    for number in range(ASKED_AROUND):
        early_us = AROUND_US - 2 * AROUND_US * number // (ASKED_AROUND - 1)
        device.run_for(1_000 * KEEP_ALIVE_MS - early_us)
        frames, runs, began = heard.frames_in, len(garbage.collections), pico.now_us
        device.ask("status")
        took = (pico.now_us - began) / 1e3
        (undisturbed if len(garbage.collections) == runs else collected).append(took)
        met += heard.frames_in - frames > 1
    asked = f"the same around a keep-alive, worst of {len(undisturbed)}"
    table.add_row(asked, f"{max(undisturbed):.1f} ms", "10 ms")
    table.add_row("  of which the device's was sent in between", f"{met}", "")
    worst = f", {max(collected):.1f} ms the worst" if collected else ""
    table.add_row("  and that met a collection of garbage", f"{len(collected)}{worst}", "")


def _measure_flood(pico: Pico, table: Printed) -> None:
    """A deck is shuffled while its owner asks and hosts without a key flood both cables."""
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    heap, garbage, latencies, dice = Heap(), Garbage(device), Latencies(device), Random(SEED)
    live: list[int] = []
    garbage.on_collection = lambda _: live.append(heap.used(pico)[0])
    told: list[tuple[str, float]] = []
    device.on_report = lambda name, values: told.append((_named(name, values), pico.now_us / 1e6))
    status = CODEC.named("status")
    next_us = 0.0

    def flood() -> None:
        nonlocal next_us
        if pico.now_us < next_us or not device.host.up:
            return
        next_us = pico.now_us + FLOOD_EVERY_US
        for _ in range(FLOOD):
            device.wiring.changes.append(runner_messages.usb(clear_frame("identify", dice)))
            device.wiring.changes.append(runner_messages.uart(clear_frame("hello", dice)))
        if not device.host.waiting():
            device.host.request(status.id, status.pack(()), device._now_ms())

    dealer = Dealer(device)
    deck = dealer.new_deck(hardware.RED)
    garbage.collections.clear()
    device.on_step = flood
    dealer.feed(deck)
    device.run_until(lambda: bool(device.named("deck_counted")) or bool(device.named("fault_raised")))
    assert not device.named("fault_raised")
    table.add_row("the grid's period", f"{grid.PERIOD_MS} ms", "50 ms")
    goal = "15.8 s, 1.15 of the bound"
    table.add_row("both cables flooded: 52 cards shuffled", f"{shuffle_s(told):.2f} s", goal)
    rests = garbage.collections
    table.add_row("  rests", f"{len(rests)}, {max(each.us for each in rests) / 1e3:.1f} ms the longest", "")
    wrong = sum(bool(each.moved) or not each.asked_for for each in rests)
    table.add_row("  collections at another time", f"{wrong}", "0")
    table.add_row("  edge to order, worst of 52", f"{max(latencies.us) / 1e3:.2f} ms", "2 ms")
    table.add_row("  heap after a collection, at most", f"{max(live):,} bytes", "120,000")


def _measure_beside(pico: Pico, table: Printed) -> None:
    """How much longer a round takes while the other deck is shuffled."""
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    dealer = Dealer(device)
    assert dealer.open_table()
    took: list[float] = []
    for beside in (False, True):
        deck, began = device.view().shoe_deck, pico.now_us
        assert dealer.deal_round()
        took.append((pico.now_us - began) / 1e6)
        if not beside:
            dealer._take()
            dealer.collect()
            dealer.wait(lambda: dealer.shoe_state == shoe.READY)
            dealer.feed(deck)
    table.add_row("a round of 7 hands, nothing shuffled", f"{took[0]:.1f} s", "")
    table.add_row("  the same while the other deck is shuffled", f"{took[1]:.1f} s", "")


def _measure_allocations(pico: Pico, table: Printed) -> None:
    """What is allocated: by a question, and by cards on their way while nobody talks."""
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    dealer, garbage = Dealer(device), Garbage(device)
    device.ask("status")
    device.run_for(100_000)
    garbage.allocated.clear()
    device.ask("status")
    device.run_for(100_000)
    asked = sum(size for _, size in garbage.allocated)
    table.add_row("heap a question and its answer take", f"{asked:,} bytes", "")
    device.wiring.changes.append(runner_messages.usb(clear_frame("identify", Random(SEED))))
    garbage.allocated.clear()
    device.run_for(100_000)
    clear = sum(size for _, size in garbage.allocated)
    table.add_row("heap a frame without a session and its answer take", f"{clear:,} bytes", "")
    dealer.feed(dealer.new_deck(hardware.RED))
    device.run_for(1_000_000)
    device.pull_cable()
    device.run_for(SILENCE_MS * 1000)  # until the device has given up its session
    garbage.allocated.clear()
    device.run_for(5_000_000)
    moved = sum(size for _, size in garbage.allocated)
    table.add_row("  allocated by five seconds of a shuffle, nobody there", f"{moved:,} bytes", "0")


def _measure_certificates(pico: Pico, table: Printed) -> None:
    """What a certificate, a proof and the longest list take at rest, and the heap of a round afterwards."""
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    heap, garbage = Heap(), Garbage(device)
    live: list[int] = []
    garbage.on_collection = lambda _: live.append(heap.used(pico)[0])
    house.bind(device)

    def seconds(what: Callable[[], object]) -> str:
        began = pico.now_us
        what()
        return f"{(pico.now_us - began) / 1e6:.1f} s"

    table.add_row("a certificate shown", seconds(lambda: device.ask("certificate", *house.certificate())), "")
    status, asked = CODEC.named("status"), 0.0
    message = CODEC.named("elevate")
    number = device.host.request(message.id, message.pack(house.proof(device, 1, 1)), device._now_ms())
    device.run_for(100_000)
    for _ in range(10):
        began = pico.now_us
        device.ask(status.name)
        asked = max(asked, (pico.now_us - began) / 1e3)
        device.run_for(50_000)
    table.add_row("  status meanwhile, worst of 10", f"{asked:.1f} ms", "")
    device.run_until(lambda: not device.host.is_pending(number))
    table.add_row("  a proof", seconds(lambda: device.ask("elevate", *house.proof(device, 2, 1))), "")
    ids = [each.to_bytes(16, "big") for each in range(MAX_REVOKED)]
    table.add_row(f"  a list of {MAX_REVOKED}", seconds(lambda: house.hand_over(device, 2, ids)), "")
    table.add_row("  heap after a collection, at most", f"{max(live):,} bytes", "")
    live.clear()
    dealer = Dealer(device)
    assert dealer.open_table()
    assert dealer.play_round()
    table.add_row("  the same in the round that follows", f"{max(live):,} bytes", "120,000")


def _measure_speed(pico: Pico, table: Printed) -> None:
    """How fast this computer emulates while nobody looks into it."""
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    dealer = Dealer(device)
    assert dealer.open_table()
    rates = []
    for _ in range(ROUNDS):
        wall, began = time.perf_counter(), pico.now_us
        assert dealer.play_round()
        rates.append((pico.now_us - began) / 1e6 / (time.perf_counter() - wall))
    shown = f"{median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})"
    table.add_row(f"emulated seconds a second here, median of {ROUNDS} rounds", shown, "10")


if __name__ == "__main__":
    sys.exit(main())
