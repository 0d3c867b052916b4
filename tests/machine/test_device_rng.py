"""The device's own generator on the simulated board: what fails stops shuffling, and nothing else."""

import ast
from math import ceil
from pathlib import Path
from random import Random

import pytest
import scipy
from tests.machine.tables import BLUE, RED, OwnChance, fault

import sabot_firmware
from sabot_firmware import shoe, shuffler
from sabot_firmware.hardware import SHUFFLER_DOOR
from sabot_firmware.rng import entropy_source as health
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_protocol.codec import CODEC
from sabot_simulators.dealer import Dealer
from sabot_simulators.emulated_device import SteppedDevice
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_device import MicroPythonDevice
from sabot_simulators.python_device import PythonDevice


@pytest.mark.slow
def test_the_cutoffs_follow_from_the_entropy_stated_and_one_false_alarm_in_a_million() -> None:
    entropy = health.ENTROPY_MILLIBITS / 1000
    assert ceil(20 / entropy) + 1 == health.REPETITION_CUTOFF
    likeliest = 2**-entropy
    below = scipy.stats.binom(health.WINDOW, likeliest).cdf
    quantile = next(k for k in range(health.WINDOW) if below(k) >= 1 - 2.0**-20)
    assert quantile + 1 == health.PROPORTION_CUTOFF
    assert health.START_UP >= 1024  # SP 800-90B, 4.3


@pytest.mark.slow
def test_the_simulated_source_is_worse_than_ideal_and_better_than_stated() -> None:
    """Its min-entropy by the Markov estimate of SP 800-90B (6.3.3), over a million samples."""
    raw = SimulatedMachine(Random(1)).noise(125_000)
    bits = "".join(f"{byte:08b}" for byte in raw)
    pairs = {pair: sum(bits[at : at + 2] == pair for at in range(len(bits) - 1)) for pair in ("00", "11")}
    ones = bits.count("1")
    stays = max(pairs["11"] / ones, pairs["00"] / (len(bits) - ones))
    assert 2 ** -(health.ENTROPY_MILLIBITS / 1000) > stays > 0.52


def test_rounds_are_played_with_the_devices_own_generator() -> None:
    table = OwnChance(1)
    assert table.open_table()
    orders = [[card.number for card in table.machine.shoe], [card.number for card in table.machine.store]]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(52))
    assert orders[0] != orders[1]
    assert table.play_round()
    assert table.faults() == []


def test_a_source_that_stands_still_is_found_at_power_up() -> None:
    table = OwnChance(1)
    table.machine.strike("stuck_noise")
    table.device.reboot()
    table.device.run_until_idle()
    assert table.faults() == [("controller", "rng_failed")]
    assert table.shuffler_state == shuffler.JAMMED
    assert table.shoe_state == shoe.EMPTY
    table.new_deck(RED)
    assert table.refused("shuffle", 1) == "wrong_state"


def test_a_source_that_dies_stops_shuffling_but_not_the_round() -> None:
    table = OwnChance(2)
    assert table.open_table()
    table.machine.strike("stuck_noise")
    assert table.deal_round()  # the deck in the shoe was shuffled before
    table._take()
    table.collect()
    table.device.run_until(lambda: table.shoe_state == shoe.READY)
    table.machine.load(table.decks.pop(1))
    table.device.run_until(lambda: True)
    assert table.refused("shuffle", 1) == "device_fault"
    assert table.faults() == [("controller", "rng_failed")]
    assert table.shuffler_state == shuffler.JAMMED
    assert table.deal_round()  # as was the other


def test_only_service_clears_it_and_only_if_the_source_works_again() -> None:
    table = OwnChance(3)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    table.machine.strike("stuck_noise")
    assert table.refused("commit_shuffle", deck_id) == "device_fault"
    assert table.shuffler_state == shuffler.JAMMED
    table.machine.open_door(SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    table.machine.close_door(SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    assert table.refused("clear_fault", fault("rng_failed"), role="floor") == "service_only"
    assert table.refused("clear_fault", fault("rng_failed"), role="service") == "not_cleared"
    table.machine.repair()
    table.device.command("clear_fault", fault("rng_failed"), role="service")
    table.device.run_until_idle()
    assert table.shuffler_state == shuffler.IDLE
    table.feed(deck_id)
    assert table.shuffled()


def test_the_same_seed_shuffles_alike_and_another_one_differently() -> None:
    orders = []
    for seed in (1, 1, 2):
        table = OwnChance(seed)
        table.shuffle()
        table.device.run_until(lambda table=table: table.shoe_state == shoe.READY)  # type: ignore[misc]
        orders.append([card.number for card in table.machine.shoe])
    assert orders[0] == orders[1] != orders[2]


def test_on_micropython_the_same_noise_gives_the_same_order(micropython: str) -> None:
    orders = []
    for joined in (False, True):
        machine = SimulatedMachine(Random(1))
        # the source is compiled into the heap
        device: SteppedDevice = (
            MicroPythonDevice(machine, None, heap="576k") if joined else PythonDevice(machine, None)
        )
        dealer = Dealer(device)
        device.run_until_idle()
        dealer.feed(dealer.new_deck(RED))
        device.run_until(lambda device=device: device.shoe_state == shoe.READY)  # type: ignore[misc]
        orders.append([card.number for card in machine.shoe])
        if isinstance(device, MicroPythonDevice):
            device.close()
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(52))


@pytest.mark.parametrize("own", [True, False])
def test_a_generator_for_tests_shows_in_the_identity(own: bool) -> None:
    random = Random(1)
    wired = HostedDevice(SimulatedMachine(random), None if own else random.randrange)
    flags = CODEC.named("identity").unpack(CODEC.named("identity").pack((
        1, 0, bytes(8), wired.end.identity.flags, 0, bytes(4), 1, 192, bytes(8), "m", "v",
    )))[3]  # fmt: skip
    assert bool(int(flags) & 0x0004) is not own


def test_no_generator_for_tests_is_part_of_the_firmware_proper() -> None:
    """What a board's image is made of (everything but other boards) knows no other generator."""
    root = Path(sabot_firmware.__path__[0])
    for path in root.rglob("*.py"):
        if "boards" in path.relative_to(root).parts:
            continue
        text = path.read_text(encoding="utf-8")
        assert "ScriptedRng" not in text, path
        assert "scripted_rng" not in text, path
        for each in ast.walk(ast.parse(text)):
            if isinstance(each, ast.ClassDef) and each.name != "DeviceRng":
                assert "DeviceRng" not in [base.id for base in each.bases if isinstance(base, ast.Name)], path
    assert DeviceRng.test is False


def test_a_laboratory_gets_samples_of_its_own() -> None:
    table = OwnChance(5)
    table.device.run_until_idle()
    raw = b"".join(table.device.command("rng_samples", 1, 128, role="lab")[1] for _ in range(4))
    made = b"".join(table.device.command("rng_samples", 2, 128, role="lab")[1] for _ in range(4))
    assert len(raw) == len(made) == 512
    assert raw != made
    assert len(set(made)) > 200
    table.machine.strike("stuck_noise")
    assert table.refused("commit_shuffle", table.new_deck(RED)) == "device_fault"
    assert table.device.command("rng_samples", 1, 8, role="lab")[1] in (bytes(8), b"\xff" * 8)  # as it is
    assert table.refused("rng_samples", 2, 8, role="lab") == "device_fault"


def test_blue_follows_red_with_fresh_noise_for_each_shuffle() -> None:
    table = OwnChance(4)
    asked: list[int] = []
    read = table.machine.ring_oscillator.read

    def counted(count: int) -> bytes:
        asked.append(count)
        return read(count)

    table.device.controller.shuffle_commands.rng._noise._read = counted
    table.shuffle(back=RED)
    assert sum(asked) * 8 == 1024
    table.shuffle(back=BLUE)
    assert sum(asked) * 8 == 2048
