"""Power cuts at every byte written and at hundreds of instants: nothing wrong is claimed, no round resumed.

The cycle is a table opened and two rounds, the second dealt while the first deck is shuffled again.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from random import Random

import pytest
from tests.machine.tables import RED, Table, void_reason
from tests.sweeps import Amount

from sabot_firmware import hardware, machine_constants, persistent_state, shoe, shuffler
from sabot_firmware.controller import Controller
from sabot_firmware.critical import HEAD_SIZE, CriticalMemory
from sabot_firmware.decks import CARD_BY_CARD, DEFAULT_HOURS
from sabot_firmware.event_log import EventLog
from sabot_firmware.persistent_state import CARDS_INSIDE, PersistentState
from sabot_firmware.rounds import CORRECT
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.errors import MemoryFailed, Refusal
from sabot_protocol.record_store import RECORDS, RecordStore
from sabot_simulators.chips import Power, PowerCut, SimFlash, SimFram
from sabot_simulators.dealer import Dealer
from sabot_simulators.emulated_device import OPENING_UTC_S
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.power_cuts import BLADE, BLADE_UM, GAME, CutPoint, Cycle, Restart, unaged

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("power")]  # the moments are found once

SHARDS = 4
PLAYED_ON = 8  # of so many cuts in the writes one is played on to the end of another round
INSTANTS = 260  # anywhere in the cycle, in a full run
INSTANTS_EACH = 14  # and in each pair of states of the halves
SAMPLED, SAMPLED_EACH = 16, 2  # the same in a sample
POWER_CUT = void_reason("power_cut")
UNKNOWN = [0xFFFF] * 7


# -- what must hold whenever the power comes back -------------------------------------------------


def told(moment: CutPoint) -> tuple[dict[int, tuple[int, int]], dict[int, int], int]:
    """What the host had heard: rounds that ended (verdict, count), that were voided, and the open one."""
    ended: dict[int, tuple[int, int]] = {}
    voided: dict[int, int] = {}
    opened = 0
    for name, values in moment.reports:
        numbers = [each for each in values if isinstance(each, int)]
        if name == "shoe_changed" and numbers[2]:
            opened = numbers[2]
        elif name == "round_ended":
            ended[numbers[0]] = numbers[1], numbers[3]
        elif name == "round_voided":
            voided[numbers[0]] = numbers[1]
    return ended, voided, 0 if opened in ended or opened in voided else opened


def check_after_boot(after: Restart) -> None:
    """Nothing is claimed, nothing resumed, nothing forgotten."""
    controller, record = after.device.controller, after.record
    ended, _, opened = told(after.moment)
    assert not record.damaged
    assert controller.dealing.round is None
    round_id, _, verdict, void, count = after.device.command("last_round")
    voided = after.named("round_voided")
    if record.round_open:  # it was on record before its first card moved: void, and said once
        assert voided == [(record.round_id, POWER_CUT)]
        assert (round_id, verdict, void, count) == (record.round_id, 0, POWER_CUT, 0)
    else:
        assert voided == []
        recorded = (record.round_id, record.verdict, record.void, record.count)
        assert (round_id, verdict, void, count) == recorded
    if opened:  # void for whoever heard of it, or ended at this very byte
        assert round_id >= opened
        assert record.round_open or (round_id == opened and verdict == CORRECT)
    for number, (said, cards) in ended.items():  # what was said stays so
        assert number != round_id or (verdict, void, count) == (said, 0, cards)
    assert after.named("round_ended") == []
    for deck in controller.persistent.decks.in_use:
        assert controller.whereabouts(deck.deck_id) == (False, UNKNOWN)
        assert deck.opened_s >= OPENING_UTC_S
    refused(after, "close_bets", max(round_id, 1), 2)
    refused(after, "dispense_stack", max(round_id, 1), 1)
    refused(after, "end_round", max(round_id, 1))
    survived(after)


def refused(after: Restart, name: str, *values: int) -> None:
    states = after.device.controller.shuffler.state, after.device.controller.shoe.state
    with pytest.raises(Refusal):
        after.device.command(name, *values)
    assert states == (after.device.controller.shuffler.state, after.device.controller.shoe.state)


def survived(after: Restart) -> None:
    """What was on record is what the new core goes by."""
    controller, record, moment = after.device.controller, after.record, after.moment
    assert controller.persistent.decks.last_played == record.decks.last_played
    assert controller.persistent.decks.highest_id == record.decks.highest_id
    assert [(d.deck_id, d.back, d.opened_s) for d in controller.persistent.decks.in_use] == [
        (d.deck_id, d.back, d.opened_s) for d in record.decks.in_use
    ]
    assert (controller.persistent.shuffle_id, controller.persistent.round_id) == (
        record.shuffle_id,
        record.round_id,
    )
    assert unaged(record.pack()) in (
        moment.on_record or unaged(PersistentState(RecordStore()).pack()),
        moment.in_mind,
    )
    assert moment.writing or unaged(record.pack()) == moment.in_mind
    assert not controller.persistent.out_of_order
    if record.decks.in_use:  # they were set before
        assert tuple(after.device.command("game"))[:5] == GAME
        assert tuple(after.device.command("calibration", BLADE))[1] == BLADE_UM
        assert controller.shuffler.blade_um == machine_constants.BLADE_UM + BLADE_UM


def check_play_goes_on(after: Restart) -> None:
    """The dealer brings the table back, and a whole round is dealt with every card."""
    device, dealer = after.device, after.dealer
    before = set(after.cards())
    record = after.record
    dealer.recover()
    deck_id = device.controller.shoe.deck
    if record.round_id:  # the number is used up, and so is the deck's turn
        with pytest.raises(Refusal) as caught:
            device.command("open_round", record.round_id, deck_id)
        assert caught.value.error == "stale"
        assert deck_id != record.decks.last_played
    assert dealer.play_round()
    assert after.named("round_ended") == [(dealer.round_id, CORRECT, 46, 52)]
    assert dealer.round_id > record.round_id
    counted = [int(values[1]) for values in after.named("deck_counted")]
    assert len(counted) == len(set(counted)) >= 1
    assert min(counted) > record.shuffle_id
    assert min(counted) > max((int(v[1]) for n, v in after.moment.reports if n == "deck_counted"), default=0)
    after_all = after.cards()
    assert before <= set(after_all)
    assert len(after_all) == len(set(after_all)) == 104
    assert after.oracle.claims
    assert after.oracle.wrong == []


def check(after: Restart, play_on: bool = True) -> None:
    after.device.run_until_idle()
    check_after_boot(after)
    if play_on:
        check_play_goes_on(after)


# -- at every byte ----------------------------------------------------------------------------------


@cache
def writes() -> list[CutPoint]:
    return Cycle(1).cut_at_writes()


def bytes_of(moments: list[CutPoint]) -> Iterator[tuple[int, CutPoint, int]]:
    """Every cut there is: a running number, the write, and how many of its bytes were written."""
    number = 0
    for moment in moments:
        for written in range(len(moment.writing)):
            yield number, moment, written
            number += 1


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cut_at_any_byte_written_claims_nothing_and_resumes_nothing(shard: int, amount: Amount) -> None:
    cuts = played_on = 0
    every = amount(97, full=1)  # prime, so that a sample meets every place of a record
    in_sample = {each.at_us for each in writes()[:: amount(4, full=1)]}  # cut in their middle in any case
    for number, moment, written in bytes_of(writes()):
        half = written == len(moment.writing) // 2 and moment.at_us in in_sample
        if number % SHARDS != shard or (number // SHARDS % every and not half):
            continue
        cuts += 1
        whole = number // SHARDS // every % PLAYED_ON == 0 or written == 0
        whole = whole and cuts % amount(3, full=1) == 0
        played_on += whole
        try:
            check(Restart(moment, written).boot(), whole)
        except Exception as error:
            raise AssertionError(f"cut after {written} bytes of a write at {moment.at_us} us") from error
    assert cuts > 750 // every
    assert played_on > 100 // every


def test_the_bytes_that_are_cut_are_all_the_bytes_of_the_cycle(amount: Amount) -> None:
    """The same cycle with a cut planned in the chip itself ends at the same byte, with the same cells."""
    whole = list(bytes_of(writes()))
    for number in Random(1).sample(range(len(whole)), amount(2, full=12)):
        cycle = Cycle(1)
        steps = cycle._chip.power.steps
        cycle._chip.power.cut_after(number)
        with pytest.raises(PowerCut):
            cycle._play()
        assert cycle._chip.power.steps == steps + number
        _, moment, written = whole[number]
        assert cycle._chip.cells == Restart(moment, written).chip.cells
    cycle = Cycle(1)
    steps = cycle._chip.power.steps
    cycle._play()
    assert cycle._chip.power.steps == steps + len(whole)


# -- at any instant ---------------------------------------------------------------------------------


@cache
def instants(full: bool) -> list[CutPoint]:
    """At random, and in each pair of states, which are the motions of both halves."""
    anywhere, each_pair = (INSTANTS, INSTANTS_EACH) if full else (SAMPLED, SAMPLED_EACH)
    random = Random(2)
    stretches = Cycle(2).stretches()
    end_us = max(until for each in stretches.values() for _, until in each)
    times = [random.randrange(end_us) for _ in range(anywhere)]
    for each in stretches.values():
        for _ in range(each_pair):
            since, until = random.choice(each)
            times.append(random.randrange(since, until))
    return Cycle(2).cut_at(sorted(times))


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cut_at_any_instant_claims_nothing_and_resumes_nothing(shard: int, amount: Amount) -> None:
    moments = instants(amount.full)
    assert len(moments) >= amount(30, full=400)
    for moment in moments[shard::SHARDS]:
        try:
            check(Restart(moment).boot())
        except Exception as error:
            raise AssertionError(f"cut at {moment.at_us} us in states {moment.states}") from error


def test_the_instants_are_in_every_motion(amount: Amount) -> None:
    moments = instants(amount.full)
    shufflers = {moment.states[0] for moment in moments}
    shoes = {moment.states[1] for moment in moments}
    assert shufflers >= {shuffler.IDLE, shuffler.FEEDING, shuffler.STORING, shuffler.STORED}
    assert shoes >= {shoe.EMPTY, shoe.LOADING, shoe.READY, shoe.ROUND_OPEN, shoe.DISPENSING}
    assert shoes >= {shoe.STACK_WAITING, shoe.EJECTING, shoe.STUB_WAITING}
    truths = [moment.things[0] for moment in moments]
    assert sum(bool(machine.feed_track.bodies) for machine in truths) > amount(2, full=50)
    assert sum(bool(machine.deal_track.bodies) for machine in truths) > amount(2, full=30)
    assert sum(machine.elevator.closed for machine in truths) > amount(2, full=30)
    assert sum(not machine._pusher_home for machine in truths) > amount(0, full=10)
    assert sum(not machine._shelf_up for machine in truths) > amount(0, full=10)


# -- again while it comes back ------------------------------------------------------------------------


def boot_steps(moment: CutPoint) -> int:
    """How many bytes a boot from this moment writes."""
    after = Restart(moment).boot()
    after.device.run_until_idle()
    return after.chip.power.steps


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_cut_while_the_power_comes_back_from_a_cut(shard: int, amount: Amount) -> None:
    random = Random(shard)
    cuts = 0
    every = amount(8, full=4)
    for moment in instants(amount.full)[shard :: SHARDS * every]:
        steps = boot_steps(moment)
        for cut_after in sorted(random.sample(range(steps), min(steps, 6))):  # in what the boot writes
            after = Restart(moment)
            after.chip.power.cut_after(cut_after)
            with pytest.raises(PowerCut):
                after.boot().device.run_until_idle()
            again(after, moment)
            cuts += 1
        after = Restart(moment).boot()  # and in what it moves
        after.device.run_for(random.randrange(1_400_000))
        again(after, moment)
        cuts += 1
    assert cuts > amount(1, full=40)


def again(after: Restart, moment: CutPoint) -> None:
    """The second boot: the round was and stays void."""
    was_open = after.record.round_open
    after.cut().chip.power.restore()
    after.record = PersistentState(after.memory())
    after.boot()
    after.device.run_until_idle()
    assert after.device.controller.dealing.round is None
    if was_open:
        assert after.device.command("last_round")[2:4] == (0, POWER_CUT)
    check_play_goes_on(after)


def test_three_cuts_in_a_row_at_any_byte_of_the_boot_void_one_round_once(amount: Amount) -> None:
    """Wherever the boot is cut, last_round says void, and the round is not void for another reason later."""
    moment = next(each for each in instants(amount.full) if each.states[1] == shoe.DISPENSING)
    steps = boot_steps(moment)
    assert steps > 100
    for cut_after in range(0, steps, amount(17, full=3)):
        after = Restart(moment)
        for _ in range(3):
            after.chip.power.cut_after(cut_after)
            with suppress(PowerCut):
                after.boot().device.run_until_idle()
            after.cut().chip.power.restore()
        after.record = PersistentState(after.memory())
        after.boot()
        after.device.run_until_idle()
        assert after.device.command("last_round")[0] == 1
        assert after.device.command("last_round")[2:4] == (0, POWER_CUT)
        assert len(after.named("round_voided")) == (1 if after.record.round_open else 0)


# -- what outlives a cut ------------------------------------------------------------------------------


def table(seed: int, *faults: str, hands: int = 3) -> tuple[Table, SimFram]:
    chip = SimFram(power=Power())
    return Table(
        seed, *faults, hands=hands, memory=CriticalMemory(chip, others=persistent_state.RECORDS)
    ), chip


@pytest.mark.rule("MD3 13.E")
def test_out_of_order_outlives_the_power_until_service_acts() -> None:
    at, _ = table(1, "stuck@exit:9")
    at.open_table()
    at.play_round()
    at.device.run_until_idle()
    at.machine.open_door(hardware.SHUFFLER_DOOR)
    at.machine.close_door(hardware.SHUFFLER_DOOR)
    at.device.run_until_idle()
    at.device.command("mark_out_of_order", role="floor")
    for _ in range(3):
        at.device.reboot()
        at.device.run_until_idle()
        assert (at.shuffler_state, at.shoe_state) == (shuffler.OUT_OF_ORDER, shoe.OUT_OF_ORDER)
        for command in (("shuffle", 1), ("open_round", 9, 2), ("empty_machine",), ("self_test",)):
            at.refused(*command)
    at.device.command("return_to_service", role="service")
    at.recover()
    assert at.play_round()
    assert len(at.all_cards()) == 104


@pytest.mark.rule("MD3 3.C")
def test_hours_go_on_while_the_power_is_off() -> None:
    at, _ = table(2)
    at.open_table()
    left = at.device.command("decks")[2]
    at.device.clock_wrong_by_s = DEFAULT_HOURS * 1800  # so long it was off
    at.device.reboot()
    assert at.device.command("decks")[2] == [each - DEFAULT_HOURS * 1800 for each in left]
    at.device.clock_wrong_by_s = DEFAULT_HOURS * 3600
    at.device.reboot()
    at.device.run_until_idle()
    at._mend()
    at.machine.load(at.decks[1])
    assert at.refused("shuffle", 1) == "past_its_hours"
    at.device.clock_known = False
    assert at.refused("shuffle", 1) == "time_unknown"


@pytest.mark.rule("MD3 3.B")
def test_turn_and_one_deck_play_outlive_the_power() -> None:
    at, _ = table(3)
    at.shuffle()
    at.device.command("play_one_deck", 1, role="floor")
    at.wait(lambda: at.shoe_state == shoe.READY)
    at.device.command("open_round", 1, 1)
    at.device.reboot()
    assert at.named("round_voided") == [(1, POWER_CUT)]
    assert at.device.command("game")[5] == 1
    assert at.device.command("decks")[3] == 1
    assert at.refused("register_deck", 1, RED, OPENING_UTC_S, role="floor") == "deck_used_before"


# -- damage -------------------------------------------------------------------------------------------


def record_at(name: str) -> int:
    """Where a record's first slot begins in the chip."""
    at = 0
    for each, most in RECORDS + persistent_state.RECORDS:
        if each == name:
            return at
        at += 2 * (HEAD_SIZE + most)
    raise KeyError(name)


CORE_SIZE = dict(persistent_state.RECORDS)["core"]


@pytest.mark.parametrize("kind", ["a bit", "every byte", "the mark"])
def test_a_damaged_record_claims_nothing_until_service_has_looked(kind: str) -> None:
    at, chip = table(4)
    at.open_table()
    at.device.command("open_round", 7, 1)
    at.device.command("close_bets", 7, 3)
    at.device.command("dispense_stack", 7, 1)
    at.device.run_for(150_000)
    start = record_at("core")
    for slot in (start, start + HEAD_SIZE + CORE_SIZE):
        if kind == "a bit":
            chip.flip(slot + HEAD_SIZE + 20, 3)
        elif kind == "the mark":
            chip.flip(slot, 2)
        else:
            chip.cells[slot : slot + HEAD_SIZE + CORE_SIZE] = b"\x5a" * (HEAD_SIZE + CORE_SIZE)
    at.device.reports.clear()
    reboot_over(at, chip)
    at.device.run_until_idle()
    assert at.faults()[0] == ("controller", "memory_damaged")
    assert (at.shuffler_state, at.shoe_state) == (shuffler.OUT_OF_ORDER, shoe.OUT_OF_ORDER)
    assert at.device.command("decks")[0] == []
    assert at.named("round_ended") == []
    at.refused("dispense_stack", 7, 2)
    at.refused("end_round", 7)
    reboot_over(at, chip)  # it stays out of order
    at.device.run_until_idle()
    assert at.shoe_state == shoe.OUT_OF_ORDER
    at.device.command("return_to_service", role="service")
    at._last_deck_id = 2  # the host knows which numbers were used
    back_to_play(at)


def reboot_over(at: Table, chip: SimFram) -> None:
    """Power off and on, and the memory is looked at anew."""
    at.device.memory = CriticalMemory(chip, others=persistent_state.RECORDS)
    at.device.reboot()


def back_to_play(at: Table) -> None:
    """Recovery up to a correct round; cards of decks that are no longer known are taken away."""
    at.recover()
    at.device.reports.clear()
    assert at.play_round()
    assert [values[1:] for values in at.named("round_ended")] == [(CORRECT, 43, 52)]
    assert len(at.all_cards()) == len({id(card) for card in at.all_cards()})


def test_a_damaged_wear_record_only_begins_anew() -> None:
    at, chip = table(5)
    at.open_table()
    start = record_at("wear")
    chip.cells[start : start + 200] = b"\x5a" * 200
    reboot_over(at, chip)
    at.device.run_until_idle()
    assert at.faults() == []
    assert at.device.command("wear")[0][0] == 0


# -- a memory that takes nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["deaf", "failing"])
def test_nothing_begins_that_could_not_be_recorded(failure: str) -> None:
    at, chip = table(6)
    at.device.run_until_idle()
    deck_id = at.new_deck(RED)
    at.machine.load(at.decks[deck_id])
    at.decks[deck_id] = []
    at.device.run_until(lambda: True)
    fail(chip, failure)
    assert at.refused("register_deck", 2, hardware.BLUE, OPENING_UTC_S, role="floor") == "memory_failed"
    assert at.device.command("decks")[0] == [1]
    assert at.refused("shuffle", deck_id) == "memory_failed"
    assert at.shuffler_state == shuffler.IDLE
    work(chip)
    assert at.device.command("shuffle", deck_id) == (1,)
    at.shuffled()
    at.wait(lambda: at.shoe_state == shoe.READY)
    fail(chip, failure)
    assert at.refused("open_round", 1, deck_id) == "memory_failed"
    assert at.shoe_state == shoe.READY
    assert at.device.command("last_round")[0] == 0
    assert at.device.command("decks")[3] == 0  # the turn was not used
    work(chip)
    at.device.command("open_round", 1, deck_id)


def test_a_deck_is_pushed_only_when_the_record_says_that_the_shoe_has_cards() -> None:
    memory = RecordStore()
    at = Table(6, memory=memory)
    on_record: list[int] = []
    push = at.machine.push

    def noted(forward: bool) -> None:
        if forward:
            on_record.append(PersistentState(memory).shoe_inside)
        push(forward)

    at.machine.push = noted  # type: ignore[method-assign]
    at.device.run_until_idle()
    at.feed(at.new_deck(RED))
    at.wait(lambda: at.shoe_state == shoe.READY)
    assert on_record == [CARDS_INSIDE]


def fail(chip: SimFram, failure: str) -> None:
    if failure == "deaf":
        chip.deaf = True
    else:
        chip.failing = 1 << 30


def work(chip: SimFram) -> None:
    chip.deaf = False
    chip.failing = 0


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("failure", ["deaf", "failing"])
@pytest.mark.parametrize("when_us", range(0, 7_500_000, 250_000))
@pytest.mark.sweep(every=7)
def test_a_memory_that_fails_in_a_round_voids_it_and_the_machine_is_out_of_order(
    failure: str, when_us: int
) -> None:
    at, chip = table(7)
    assert at.open_table()
    heard = at.device.reports
    heard.clear()
    at.machine.agenda.after(when_us, lambda _: fail(chip, failure), 0)
    going_on = False
    with suppress(Refusal):
        going_on = at.play_round()
    at.device.run_until_idle()
    ended = {values[0] for values in at.named("round_ended")}
    voided = {values[0] for values in at.named("round_voided")}
    assert not going_on or not voided
    assert not ended & voided
    work(chip)
    at.device.reports.clear()
    reboot_over(at, chip)
    at.device.run_until_idle()
    last = at.device.command("last_round")
    if 1 in ended:  # what was said stays so
        assert last[2:4] == (CORRECT, 0)
        assert at.named("round_voided") == []
    elif last[0] == 1:
        assert last[2] == 0
        assert last[3] != 0
    assert not any(at.device.controller.whereabouts(each)[0] for each in (1, 2))
    back_to_play(at)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("failure", ["deaf", "failing"])
def test_a_round_that_is_voided_while_the_memory_fails_is_void_once(failure: str) -> None:
    """The shoe had stopped for the memory, and the command then had it take a step that its table lacks."""
    at, chip = table(9)
    assert at.open_table()
    at.device.command("open_round", 1, 1)
    fail(chip, failure)
    at.device.command("void_round", 1, void_reason("floor_order"))
    at.device.run_until_idle()
    assert (at.shuffler_state, at.shoe_state) == (shuffler.JAMMED, shoe.JAMMED)
    assert at.named("round_voided") == [(1, void_reason("floor_order"))]
    work(chip)
    reboot_over(at, chip)
    at.device.run_until_idle()
    # The record still says that the round is open. The device cannot know what it told, so it tells it again:
    # both times the round is void, and the first reason counts (``round_voided`` in ``meanings``).
    assert at.device.command("last_round")[:4:3] == (1, POWER_CUT)
    assert at.named("round_voided") == [(1, void_reason("floor_order")), (1, POWER_CUT)]
    back_to_play(at)


class LosesOneVerdict(RecordStore):
    """Critical memory in which the first write of a verdict fails; it keeps what was written since."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = False
        self.since: list[PersistentState] = []

    def save(self, name: str, record: bytes) -> None:
        """Write a record."""
        if name == "core":
            store = RecordStore()
            store.save(name, record)
            state = PersistentState(store)
            if state.verdict and not self.lost:
                self.lost = True
                raise MemoryFailed("once")
            if self.lost:
                self.since.append(state)
        super().save(name, record)


@pytest.mark.rule("MD3 13.D")
def test_a_round_whose_end_could_not_be_recorded_is_on_record_as_open_until_it_is_void() -> None:
    memory = LosesOneVerdict()
    at = Table(11, hands=2, memory=memory)
    assert at.open_table()
    assert not at.deal_round()
    at.device.run_until_idle()
    assert at.shoe_state == shoe.JAMMED
    assert at.named("round_ended") == []
    assert at.named("round_voided") == [(1, void_reason("shoe_failed"))]
    assert at.device.command("last_round")[2:] == (0, void_reason("shoe_failed"), 0)
    assert memory.since
    for state in memory.since:
        assert state.round_open or state.void == void_reason("shoe_failed")
        assert (state.verdict, state.count) == (0, 0)


@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("failure", ["deaf", "failing"])
@pytest.mark.parametrize("command", ["end_round", "void_round"])
def test_a_round_dealt_card_by_card_that_ends_while_the_memory_fails_is_void(
    command: str, failure: str
) -> None:
    """Its end could not be recorded: it is never told to be correct, and the shoe stands."""
    at, chip = table(10)
    at.device.run_until_idle()
    at.device.command("set_game", "md-mini-baccarat", CARD_BY_CARD, 1, 1, 24, role="floor")
    deck_id = at.shuffle()
    at.device.command("deliver_deck", deck_id)
    at.wait(lambda: at.shoe_state == shoe.STUB_WAITING)
    cards = list(at.machine.exit_tray)
    at.machine.take_exit()
    at.device.run_until(lambda: True)
    at.machine.handed_out.clear()
    at.machine.open_door(hardware.SHOE_DOOR)
    at.device.run_until(lambda: True)
    at.machine.load_shoe(cards)
    at.machine.close_door(hardware.SHOE_DOOR)
    at.device.run_until(lambda: True)
    at.device.command("load_shoe", deck_id, role="floor")
    at.device.command("open_round", 1, deck_id)
    at.device.command("close_bets", 1, 2)
    fail(chip, failure)
    at.device.command(command, 1, *([void_reason("floor_order")] if command == "void_round" else []))
    at.device.run_until_idle()
    assert at.shoe_state == shoe.JAMMED
    assert at.named("round_ended") == []
    assert [values[0] for values in at.named("round_voided")] == [1]


def test_a_memory_that_cannot_be_read_at_power_up_claims_nothing_and_forgets_nothing() -> None:
    at, chip = table(8)
    at.open_table()
    fail(chip, "failing")
    at.device.reports.clear()
    reboot_over(at, chip)
    at.device.run_until_idle()
    assert at.shoe_state == shoe.OUT_OF_ORDER
    assert at.faults()[0] == ("controller", "memory_damaged")
    work(chip)
    reboot_over(at, chip)
    at.device.run_until_idle()
    assert at.device.command("decks")[0] == [1, 2]


class HalfBroken(RecordStore):
    """Critical memory that fails as it is told to."""

    loads, writes_and_fails = True, False

    def load(self, name: str) -> bytes | None:
        """Read a record, or fail."""
        if not self.loads:
            raise MemoryFailed(name)
        return super().load(name)

    def save(self, name: str, data: bytes) -> None:
        """Write a record, and fail afterwards if told so."""
        super().save(name, data)
        if self.writes_and_fails:
            raise MemoryFailed(name)


def test_a_write_that_may_have_succeeded_is_not_taken_for_one_that_did_not() -> None:
    """The command was refused and undone; the record in memory says that it was executed."""
    memory = HalfBroken()
    state = PersistentState(memory)
    state.round_id = 1
    state.save()
    before = state.pack()
    state.round_id = 2
    memory.writes_and_fails = True
    with pytest.raises(Refusal):
        state.save_or_undo(before)
    assert state.round_id == 1
    memory.writes_and_fails = False
    state.save()
    assert PersistentState(memory).round_id == 1


def test_a_record_that_could_not_be_read_is_not_overwritten() -> None:
    memory = HalfBroken()
    state = PersistentState(memory)
    state.round_id = 7
    state.save()
    memory.loads = False
    unread = PersistentState(memory)
    memory.loads = True
    with pytest.raises(MemoryFailed):
        unread.save()
    assert PersistentState(memory).round_id == 7


def test_a_machine_whose_memory_failed_is_out_of_order_until_service_returns_it() -> None:
    at, chip = table(13)
    assert at.open_table()
    at.device.command("open_round", 1, 1)
    fail(chip, "deaf")
    at.device.command("void_round", 1, void_reason("floor_order"))
    at.device.run_until_idle()
    work(chip)
    for door in (hardware.SHOE_DOOR, hardware.SHUFFLER_DOOR):
        at.machine.open_door(door)
        at.device.run_until(lambda: True)
        at.machine.empty_by_hand(door)
        at.machine.close_door(door)
        at.device.run_until(lambda: True)
        at.device.command("clear_fault", enum_number("Fault", "memory_damaged"), role="service")
        at.device.run_until_idle()
    assert (at.shuffler_state, at.shoe_state) == (shuffler.OUT_OF_ORDER, shoe.OUT_OF_ORDER)
    at.device.command("return_to_service", role="service")
    at.device.run_until_idle()
    assert (at.shuffler_state, at.shoe_state) == (shuffler.IDLE, shoe.EMPTY)


def test_a_half_that_was_cleared_needs_no_clearing_after_a_power_cut() -> None:
    at, chip = table(15)
    at.device.run_until_idle()
    at.machine.strike("over_temperature")
    at.device.run_for(70_000_000)
    at.machine.open_door(hardware.SHUFFLER_DOOR)
    at.device.run_until(lambda: True)
    at.machine.close_door(hardware.SHUFFLER_DOOR)
    at.device.run_until(lambda: True)
    at.device.command("clear_fault", enum_number("Fault", "over_temperature"), role="floor")
    at.device.run_until_idle()
    at.device.reports.clear()
    reboot_over(at, chip)
    at.device.run_until_idle()
    assert at.shuffler_state == shuffler.IDLE
    assert at.faults() == []


def test_after_a_damaged_record_a_card_may_lie_where_no_sensor_sees_it() -> None:
    """The record no longer says what moved, so the shuffler half stops until its door was opened."""
    at, chip = table(14)
    at.device.run_until_idle()
    start = record_at("core")
    chip.cells[start : start + 400] = b"\x5a" * 400
    reboot_over(at, chip)
    at.device.run_until_idle()
    at.device.command("return_to_service", role="service")
    at.device.run_until_idle()
    assert at.faults()[-1] == ("chamber", "power_lost")


# -- the log in flash -----------------------------------------------------------------------------------


class QuietFlash(SimFlash):
    """A flash that is never written while anything moves."""

    def __init__(self, power: Power, machine: SimulatedMachine) -> None:
        super().__init__(power=power)
        self._machine = machine
        self.controller: Controller | None = None

    def program(self, address: int, data: bytes) -> None:
        """Write, if nothing moves."""
        self._nothing_moves()
        super().program(address, data)

    def erase(self, sector: int) -> None:
        """Erase, if nothing moves."""
        self._nothing_moves()
        super().erase(sector)

    def _nothing_moves(self) -> None:
        machine = self._machine
        assert self.controller is not None
        assert self.controller.idle()
        assert [roller.direction for roller in machine._rollers] == [0, 0, 0]
        assert machine.elevator._arrives_us <= machine.agenda.now_us
        assert machine._pusher_home
        assert not [body for body in machine.feed_track.bodies if body.speed_um_ms]


class Logged(HostedDevice):
    """A device with chips on one supply, cut like all of it."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        machine = SimulatedMachine(random)
        self.power = Power()
        self.fram = SimFram(power=self.power)
        self.flash = QuietFlash(self.power, machine)
        super().__init__(
            machine,
            random.randrange,
            CriticalMemory(self.fram, others=persistent_state.RECORDS),
            EventLog(self.flash),
        )

    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        self.flash.controller = controller
        return controller

    def reboot(self, now_ms: int | None = None) -> None:
        """Everything but chips and mechanism is new."""
        self.power.restore()
        self.memory = CriticalMemory(self.fram, others=persistent_state.RECORDS)
        self._log = EventLog(self.flash)
        super().reboot(now_ms)

    def rows(self) -> list[tuple[int, str]]:
        """Number and name of every row of the log."""
        assert self._log is not None
        found = []
        for number, row in self._log.rows(0, 2000):
            message = CODEC.find(row[0])
            assert message is not None
            found.append((number, message.name))
        return found


def test_the_log_is_written_only_while_nothing_moves_and_tells_of_every_round() -> None:
    device = Logged(1)
    dealer = Dealer(device, hands=2)
    assert dealer.open_table()
    for _ in range(3):
        assert dealer.play_round()
    device.run_until_idle()
    device.run_for(1_000_000)
    names = [name for _, name in device.rows()]
    assert names.count("round_ended") == 3
    assert names.count("deck_counted") == 5
    assert [number for number, _ in device.rows()] == list(range(1, len(names) + 1))
    assert device.command("log", 1)[1] == len(names)
    heard = [name for name, _ in device.events()]
    assert names == [name for name in heard if name in set(names)][: len(names)]


def test_a_jog_is_a_motion_too() -> None:
    device = Logged(2)
    dealer = Dealer(device)
    device.run_until_idle()
    device.command("service_mode", 1, role="service")
    for part in ("feed", "deal", "elevator", "pusher"):
        amount = {"elevator": 20_000}.get(part, 1)
        device.command("jog", enum_number("Part", part), amount, role="service")
        device.command("locate", 1)
        device.run_for(100_000)
    assert dealer.shoe_state == shoe.SERVICE


def test_the_log_outlives_cuts_at_any_step_and_so_does_play(amount: Amount) -> None:
    random = Random(3)
    device = Logged(3)
    dealer = Dealer(device, hands=2)
    assert dealer.open_table()
    cuts = 0
    while cuts < amount(6, full=25):
        known = device.rows()
        device.power.cut_after(random.randrange(1, 2500))
        try:
            while True:
                assert dealer.play_round()
                known = device.rows()
        except PowerCut:
            cuts += 1
            open_round = device.controller.dealing.round
            device.reboot()
            rows = device.rows()
            kept_rows = [row for row in known if row[0] >= rows[0][0]]
            assert rows[: len(kept_rows)] == kept_rows  # what was written before is there
            assert [number for number, _ in rows] == list(range(rows[0][0], rows[-1][0] + 1))
            if open_round is not None:
                round_id, _, verdict, void, _ = device.command("last_round")
                assert (round_id, verdict, void) in (
                    (open_round.round_id, 0, POWER_CUT),
                    (open_round.round_id, CORRECT, 0),  # ended at this very byte
                )
            dealer.recover()
            assert len({id(c) for c in all_cards(dealer)}) == 104
    assert "round_voided" in [name for _, name in device.rows()]


def all_cards(dealer: Dealer) -> list[object]:
    held: list[object] = [card for cards in dealer.device.machine.truth().values() for card in cards]
    return held + [card for cards in dealer.decks.values() for card in cards]
