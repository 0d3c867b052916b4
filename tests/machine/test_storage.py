"""What is kept across power cuts, thoroughly: every cut, cuts in the recovery from cuts, and random lives."""

import struct
from copy import deepcopy
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.sweeps import Amount

from sabot_firmware.critical import CriticalMemory
from sabot_firmware.event_log import KEPT_ROWS, SECTORS, EventLog, gap_row, sectors_for
from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.record_store import RECORDS
from sabot_simulators.chips import PowerCut, SimFlash, SimFram

LIVES = 3 * settings().max_examples

pytestmark = pytest.mark.slow

# -- critical memory ----------------------------------------------------------------------------


def loaded(memory: CriticalMemory, name: str) -> bytes | str | None:
    """A record as it is found, "damaged" if it is."""
    try:
        return memory.load(name)
    except MemoryDamaged:
        return "damaged"


def boot(memory: CriticalMemory) -> None:
    """About what a device end saves while it boots and takes a command."""
    count = struct.unpack("<4sI", memory.load("boot") or bytes(8))[1] + 1
    memory.save("boot", b"MEM1" + struct.pack("<I", count))
    memory.save("events", struct.pack("<II", count, 0))
    slot = f"command.{count % 16}"
    memory.save(slot, b"BEGUN" + bytes([count]))
    memory.save(slot, b"ENDED" + bytes([count]) * 60)
    memory.save("hosts", b"TABLE-PC" + struct.pack("<I", count))


def test_a_device_that_is_cut_at_every_byte_of_its_boot_never_loses_what_it_had() -> None:
    whole = SimFram()
    boot(CriticalMemory(whole))
    first = whole.power.steps
    for steps in range(first + 1):
        chip = SimFram()
        chip.power.cut_after(steps)
        cuts = 0
        highest = 0
        while True:  # the next boots are cut a little later each
            try:
                boot(CriticalMemory(chip))
                break
            except PowerCut:
                cuts += 1
                chip.power.restore()
                found = loaded(CriticalMemory(chip), "boot")
                assert found is None or isinstance(found, bytes)
                count = struct.unpack("<4sI", found or bytes(8))[1]
                assert count in (highest, highest + 1)  # never back
                highest = count
                for name, _ in RECORDS:
                    value = loaded(CriticalMemory(chip), name)
                    assert value != "damaged", (steps, cuts, name)
                    if name.startswith("command.") and value:
                        number = int(name[8:])
                        assert value in (b"BEGUN" + bytes([number]), b"ENDED" + bytes([number]) * 60)
                chip.power.cut_after(steps + 7 * cuts if cuts < 6 else None)


def test_a_flipped_bit_anywhere_gives_the_newest_record_or_damage(amount: Amount) -> None:
    chip = SimFram()
    memory = CriticalMemory(chip)
    random = Random(1)
    newest: dict[str, bytes] = {}
    for name, most in RECORDS:
        for _ in range(random.randrange(1, 4)):
            newest[name] = random.randbytes(random.randrange(most + 1))
            memory.save(name, newest[name])
    damaged = 0
    at = 0
    for name, most in RECORDS:
        for address in range(at, at + 2 * (9 + most)):
            for bit in range(8) if amount.full else (address % 8,):
                chip.flip(address, bit)
                found = loaded(CriticalMemory(chip), name)
                assert found in (newest[name], "damaged"), (name, address, bit)
                damaged += found == "damaged"
                chip.flip(address, bit)
        at += 2 * (9 + most)
    sizes = (9 + len(record) for record in newest.values())
    assert damaged == amount(1, full=8) * sum(sizes)  # no more than it must be


class CriticalLives(RuleBasedStateMachine):
    """Saves, cuts, reboots, flipped bits and deaf spells, against what each record may be."""

    records = (("a", 4), ("b", 70), ("c", 0))
    names = st.sampled_from([name for name, _ in records])

    def __init__(self) -> None:
        super().__init__()
        self.chip = SimFram(256)
        self.memory = CriticalMemory(self.chip, records=self.records)
        self.may_be: dict[str, list[bytes | None]] = {name: [None] for name, _ in self.records}
        self.flipped = False

    @rule(name=names, data=st.binary(max_size=70), steps=st.none() | st.integers(0, 85), fault=st.booleans())
    def save(self, name: str, data: bytes, steps: int | None, fault: bool) -> None:
        data = data[: dict(self.records)[name]]
        self.chip.power.cut_after(steps)
        self.chip.deaf = fault and steps is None
        try:
            self.memory.save(name, data)
            assert not self.chip.deaf
            self.may_be[name] = [data]
        except PowerCut:
            self.may_be[name].append(data)
            self.chip.power.restore()
            self.reboot()
        except MemoryFailed:
            assert self.chip.deaf
        self.chip.deaf = False
        self.chip.power.restore()

    @rule()
    def reboot(self) -> None:
        self.memory = CriticalMemory(self.chip, records=self.records)

    @precondition(lambda self: not self.flipped)
    @rule(address=st.integers(0, 255), bit=st.integers(0, 7))
    def flip(self, address: int, bit: int) -> None:
        self.chip.flip(address, bit)
        self.flipped = True

    @invariant()
    def each_record_is_one_it_may_be(self) -> None:
        for name, may_be in self.may_be.items():
            found = loaded(self.memory, name)
            if found == "damaged":
                assert self.flipped
                continue
            assert found is None or isinstance(found, bytes)
            assert found in may_be, name
            if not self.flipped:
                self.may_be[name] = [found]  # and from now on nothing else


TestCriticalLives = CriticalLives.TestCase
TestCriticalLives.settings = settings(max_examples=LIVES, stateful_step_count=30, deadline=None)

# -- the event log ------------------------------------------------------------------------------


class Table:
    """A log on a small flash, its reboots, and the truth about what is in it."""

    least = 12

    def __init__(self, sectors: int = 4, sector_size: int = 512, queue_bytes: int = 600) -> None:
        self.flash = SimFlash(sectors, sector_size=sector_size)
        self.queue_bytes = queue_bytes
        self.truth: list[bytes] = []
        self.mount()

    def mount(self) -> None:
        """A reboot: what waited is lost."""
        self.log = EventLog(self.flash, self.least, self.queue_bytes)
        self.waiting: list[bytes] = []
        self.pending = 0  # dropped, and not said yet

    def add(self, row: bytes) -> None:
        self.log.add(row)
        self.waiting.append(row)
        while sum(len(each) + 16 for each in self.waiting) > self.queue_bytes:
            self.waiting.pop(0)
            self.pending += 1

    def flush(self, limit: int) -> None:
        """Write; a cut is followed by a reboot."""
        would = ([gap_row(self.pending)] if self.pending else []) + self.waiting
        try:
            written = self.log.flush(limit)
        except PowerCut:
            self.flash.power.restore()
            done = self.log.newest - len(self.truth)  # what it had ended by then
            self.mount()
            assert self.log.newest - len(self.truth) in (done, done + 1)
            self.truth += would[: self.log.newest - len(self.truth)]
            return
        assert written >= min(1, limit, len(would))
        assert self.log.newest == len(self.truth) + written
        self.truth += would[:written]
        if self.pending and written:
            self.pending = 0
            written -= 1
        del self.waiting[:written]

    def check(self) -> None:
        """Whether the log is the end of the truth, without a hole."""
        log = self.log
        assert log.newest == len(self.truth)
        assert 1 <= log.oldest <= log.newest + 1
        assert log.rows(0, 1000) == [
            (number, self.truth[number - 1]) for number in range(log.oldest, log.newest + 1)
        ]
        assert log.due() == bool(self.waiting or self.pending)


def any_row(random: Random) -> bytes:
    return random.randbytes(random.choice((1, 3, 20, 33, 64, 64, 150, 200)))


@pytest.mark.parametrize("sector_size", [512, 1024])
def test_a_log_that_is_cut_at_any_step_is_a_true_end_of_what_was_written(
    sector_size: int, amount: Amount
) -> None:
    """At every step of two rounds of the ring: cut, cut again soon after, then it goes on."""
    every = amount(5, full=1)
    table = Table(3, sector_size)
    random = Random(sector_size)
    steps = 0
    while min(table.flash.erases) < 2:
        for _ in range(random.randrange(1, 4)):
            table.add(any_row(random))
        limit = random.randrange(1, 4)
        whole = deepcopy(table)
        whole.flush(limit)
        for step in range(whole.flash.power.steps - table.flash.power.steps):
            steps += 1
            if steps % every:
                continue
            cut = deepcopy(table)
            cut.flash._random = steps
            cut.flash.power.cut_after(step)
            cut.flush(limit)
            assert cut.flash.power.cuts == 1
            cut.check()
            for again in (steps * 7 % 97, steps % 13, None):
                cut.add(any_row(random))
                cut.flash.power.cut_after(again)
                cut.flush(2)
                cut.flash.power.restore()
                cut.check()
            cut.mount()
            cut.check()
        table = whole
        table.check()


def test_a_thousand_rows_are_always_there_also_after_cuts_and_while_a_sector_is_erased() -> None:
    assert sectors_for(KEPT_ROWS) == 21 <= SECTORS
    random = Random(4)
    flash = SimFlash()
    log = EventLog(flash)
    truth: list[bytes] = []
    cuts = 0
    while len(truth) < 4000:
        row = random.randbytes(random.choice((64, 64, 64, 50, 10)))
        log.add(row)
        if random.random() < 0.05 and cuts < 57 * (len(truth) // KEPT_ROWS):
            flash.power.cut_after(random.randrange(64 + 9))
        try:
            assert log.flush(1) == 1
            truth.append(row)
        except PowerCut:
            cuts += 1
            flash.power.restore()
            log = EventLog(flash)
            if log.newest > len(truth):
                truth.append(row)
        flash.power.restore()
        assert log.newest == len(truth)
        assert log.newest - log.oldest + 1 >= min(KEPT_ROWS, len(truth))
        if len(truth) % 500 == 0:
            assert [each for _, each in log.rows(0, 2000)] == truth[log.oldest - 1 :]
    assert cuts > 100
    assert max(flash.erases) - min(flash.erases) <= 1


def test_the_smallest_ring_keeps_its_thousand_rows_through_a_cut_erase() -> None:
    """21 sectors full of the longest rows of the promise, cut at every page of the next erase."""
    full = SimFlash(sectors_for(KEPT_ROWS))
    log = EventLog(full)
    row = bytes(range(64))
    for _ in range(21 * 51):
        log.add(row)
        log.flush(1)
    assert (log.oldest, log.newest, full.erases) == (1, 21 * 51, [1] * 21)
    for steps in range(16):
        for seed in range(4):
            flash = SimFlash(sectors_for(KEPT_ROWS), seed=7 * steps + seed)
            flash.cells[:] = full.cells
            log = EventLog(flash)
            assert log.oldest == 1
            log.add(row)
            flash.power.cut_after(steps)
            with pytest.raises(PowerCut):
                log.flush(1)
            flash.power.restore()
            log = EventLog(flash)
            assert log.oldest in (1, 52)
            assert [number for number, _ in log.rows(0, 2000)] == list(range(log.oldest, 21 * 51 + 1))


class LogLives(RuleBasedStateMachine):
    """Rows, flushes, cuts and reboots in any order, against a list."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()

    @rule(rows=st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=6))
    def add(self, rows: list[bytes]) -> None:
        for row in rows:
            self.table.add(row)

    @rule(limit=st.integers(0, 8))
    def flush(self, limit: int) -> None:
        self.table.flush(limit)

    @rule(steps=st.integers(0, 400), limit=st.integers(1, 8))
    def flush_and_cut(self, steps: int, limit: int) -> None:
        self.table.flash.power.cut_after(steps)
        self.table.flush(limit)
        self.table.flash.power.restore()

    @rule()
    def reboot(self) -> None:
        self.table.mount()

    @rule(number=st.integers(0, 60), most=st.integers(0, 9))
    def read(self, number: int, most: int) -> None:
        log = self.table.log
        numbers = range(max(number, log.oldest), log.newest + 1)[:most]
        assert log.rows(number, most) == [(each, self.table.truth[each - 1]) for each in numbers]

    @invariant()
    def it_is_a_true_end(self) -> None:
        self.table.check()


TestLogLives = LogLives.TestCase
TestLogLives.settings = settings(max_examples=LIVES, stateful_step_count=40, deadline=None)
