"""What a board meets: a pulled cable, a hanging processor, a memory that fails, a supply that goes."""

from random import Random

import pytest
from tests.board.bench import Latencies
from tests.board.heap import Garbage
from tests.board.table import HANDS, Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.rounds import CORRECT
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.notifications import RequestAnswered
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness.answer_times import PERIOD_US
from sabot_simulators.rp2040.hosted_pico import SHUFFLER_AT_WORK, HostedPico
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.wiring import PinDrivenMachine

REACTION_US = 2000  # from an edge to an order beside a command
CARRIED_OUT_MS = range(12, 19)  # after its tick a command is carried out


def test_a_pulled_cable_does_not_disturb_a_shuffle_and_no_event_is_lost(ready: Table) -> None:
    ready.begin_shuffle(3_000_000)
    ready.device.pull_cable()
    ready.device.run_for(20_000_000)
    assert ready.machine.count("chamber") == 0
    ready.device.plug_cable()
    ready.device.run_until_idle()
    assert ready.device.named("deck_counted") == [(1, 1, 52, 52)]
    assert ready.counts() == {"shoe": 52}
    assert len(ready.device.named("booted")) == 1


@pytest.mark.parametrize("seed", [3, 7, 11])
def test_a_host_that_asks_all_the_time_does_not_disturb_a_shuffle(pico: Pico, seed: int) -> None:
    """Its questions fill the heap several times; garbage is collected only while nothing moves."""
    pico.restore("new")
    device = HostedPico(pico, PinDrivenMachine(Random(seed)))
    device.provision()
    device.run_until_idle()
    table = Table(device, Dealer(device))
    garbage = Garbage(device)
    table.begin_shuffle(1_000)
    began = pico.now_us
    for _ in range(60):
        device.run_for(37_000)
        assert device.ask("status")[3] == shuffler.FEEDING
    device.run_until(lambda: device.shoe_state == shoe.READY or device.shuffler_state == shuffler.JAMMED)
    assert device.named("deck_counted") == [(1, 1, 52, 52)]
    assert table.counts() == {"shoe": 52}
    assert not device.named("fault_raised")
    assert len([each for each in garbage.collections if each.at_us > began]) > 1
    assert [each for each in garbage.collections if each.moved or not each.asked_for] == []


def test_a_host_that_floods_a_shuffle_has_to_wait(ready: Table) -> None:
    """Twelve questions at once, again and again: more than fit before the next card is done."""
    device = ready.device
    garbage, status = Garbage(device), CODEC.named("status")
    ready.begin_shuffle(1_000)
    end_us = device.machine.agenda.now_us + 4_000_000
    asked = 0
    while device.machine.agenda.now_us < end_us:
        while device.host.waiting() < 12:
            device.host.request(status.id, status.pack(()), device._now_ms())
            asked += 1
        device.run_for(2_000)
    device.run_until(lambda: device.shoe_state == shoe.READY or device.shuffler_state == shuffler.JAMMED)
    assert device.named("deck_counted") == [(1, 1, 52, 52)]
    assert not device.named("fault_raised")
    assert len([each for each in device.happened if isinstance(each, RequestAnswered)]) == asked > 100
    assert [each for each in garbage.collections if each.moved or not each.asked_for] == []


def test_a_host_that_asks_all_the_time_does_not_disturb_a_round(opened: Table) -> None:
    """Stacks are dealt, a stub goes out in one run, a deck is pushed and one is shuffled: for all of it."""
    device = opened.device
    garbage, status = Garbage(device), CODEC.named("status")
    asked_us = 0

    def ask() -> None:
        nonlocal asked_us
        if device.host.up and not device.host.waiting() and device.machine.agenda.now_us > asked_us + 37_000:
            asked_us = device.machine.agenda.now_us
            device.host.request(status.id, status.pack(()), device._now_ms())

    device.on_step = ask
    assert opened.dealer.play_round()
    assert device.named("round_ended") == [(1, CORRECT, 52 - 3 * HANDS, 52)]
    whole = {"store": 52, "shoe": 52}
    device.run_until(lambda: opened.counts() == whole or bool(device.named("fault_raised")))
    assert not device.named("fault_raised")
    assert len(garbage.collections) > 10
    assert [each for each in garbage.collections if each.moved or not each.asked_for] == []


def test_commands_for_one_half_do_not_delay_the_cards_of_the_other(ready: Table) -> None:
    """A stack is dispensed just when a card comes to the insertion roller: edges waited up to 7 ms for that.

    A tick takes the command, and some milliseconds later it is carried out.
    """
    device, dealer, machine = ready.device, ready.dealer, ready.machine
    dealer.feed(dealer.new_deck(hardware.RED))
    assert dealer.shuffled()
    dealer.wait(lambda: dealer.shoe_state == shoe.READY)
    dealer.feed(dealer.new_deck(hardware.BLUE))
    device.ask("open_round", 1, 1)
    device.ask("close_bets", 1, HANDS)
    latencies, tell = Latencies(device), machine.on_edge
    dispense = CODEC.named("dispense_stack")
    entered_us = way_us = stack = 0

    def edge(sensor: int, level: int, at_us: int) -> None:
        nonlocal entered_us, way_us, stack
        if sensor == hardware.INSERTION and level and entered_us:
            way_us, entered_us = at_us - entered_us, 0
        elif sensor == hardware.ENTRY and level and device.shuffler_state == shuffler.FEEDING:
            entered_us = at_us
            after_tick_us = (at_us + way_us) % PERIOD_US
            if way_us and after_tick_us // 1000 in CARRIED_OUT_MS and device.shoe_state == shoe.ROUND_OPEN:
                stack += 1
                device.host.request(dispense.id, dispense.pack((1, stack)), device._now_ms())
        tell(sensor, level, at_us)

    machine.on_edge = edge
    while device.shuffler_state == shuffler.FEEDING and stack < HANDS:
        device.run_for(PERIOD_US)
        if device.shoe_state == shoe.STACK_WAITING:
            machine.take_exit()
    assert stack > 2
    assert not device.named("fault_raised")
    assert max(latencies.us) < REACTION_US


def test_the_watchdog_ends_what_hangs_and_the_motors_stand(ready: Table) -> None:
    ready.begin_shuffle(2_000_000)
    ready.device.pico.hang(60_000_000)
    ready.device.run_until(lambda: ready.device.resets == 1)
    assert all(roller.direction == hardware.STOP for roller in ready.machine._rollers)
    ready.device.host.disconnect()
    ready.device.connect()
    ready.device.run_until(lambda: ready.device.shuffler_state not in SHUFFLER_AT_WORK)
    ready.device.run_for(50_000)
    assert ready.device.named("booted")[-1] == (enum_number("BootReason", "watchdog"),)
    raised = [values[0] for values in ready.device.named("fault_raised")]
    assert enum_number("Fault", "watchdog_reset") in raised
    assert ready.device.shuffler_state == shuffler.JAMMED
    assert not ready.device.named("deck_counted")


def test_a_supply_that_fails_stops_everything(ready: Table) -> None:
    ready.begin_shuffle(2_000_000)
    ready.machine.sensors.set(hardware.SUPPLY_LOW, 1)
    ready.device.run_for(20_000)
    assert all(roller.direction == hardware.STOP for roller in ready.machine._rollers)
    ready.device.run_for(100_000)  # until it has been told
    assert ready.device.shuffler_state == shuffler.JAMMED
    assert ready.device.named("fault_raised")[0][0] == enum_number("Fault", "supply_low")


def test_a_memory_that_takes_no_writes_refuses_a_shuffle(ready: Table) -> None:
    deck = ready.dealer.new_deck(hardware.RED)
    ready.machine.load(ready.dealer.decks[deck])
    ready.device.run_for(50_000)
    ready.device.pico.break_fram("deaf")
    with pytest.raises(Refusal, match=r"memory_failed|interrupted"):
        ready.device.command("shuffle", deck)
    assert ready.counts() == {"tray": 52}


def test_a_crash_of_the_program_stops_the_motors_and_the_link_lives(ready: Table) -> None:
    """Nothing answers on the I2C bus from one moment to the next: an OSError in the middle of a shuffle."""
    ready.begin_shuffle(2_000_000)
    ready.device.pico.break_expanders()
    ready.device.run_for(3_000_000)
    assert all(roller.direction == hardware.STOP for roller in ready.machine._rollers)
    ready.device.host.disconnect()
    ready.device.connect()
    status = ready.device.ask("status")
    assert status[3:6] == (
        enum_number("ShufflerState", "out_of_order"),
        enum_number("ShoeState", "out_of_order"),
        enum_number("Fault", "watchdog_reset"),
    )
    assert ready.device.resets == 0


def test_a_power_cut_in_a_round_voids_it(opened: Table) -> None:
    device = opened.device
    device.command("open_round", 1, 1)
    device.command("close_bets", 1, 7)
    device.command("dispense_stack", 1, 1)
    device.run_for(150_000)
    device.power_off()
    device.power_on()
    device.connect()
    device.run_until(lambda: bool(device.named("round_voided")))
    assert device.named("round_voided") == [(1, enum_number("VoidReason", "power_cut"))]
    assert device.ask("last_round")[0] == 1
    assert device.shoe_state != shoe.READY
