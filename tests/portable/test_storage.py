"""What is kept across power cuts: critical memory on a simulated FRAM, the event log on a simulated flash."""

from sabot_firmware.critical import CURRENT, HEAD_SIZE, CriticalMemory, LayoutRefused
from sabot_firmware.event_log import EventLog, LogRefused, gap_row, sectors_for
from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.record_store import RECORDS
from sabot_simulators.chips import FlashMisuse, Power, PowerCut, SimFlash, SimFram

SMALL = (("a", 5), ("b", 11))
SAVES = (("a", b"one"), ("b", b"first"), ("a", b"two2"), ("a", b""), ("b", b"the second!"), ("a", b"three"))
DAMAGED = b"it is damaged"


def small(chip):
    return CriticalMemory(chip, records=SMALL)


def load(chip, name):
    """What a reboot finds."""
    try:
        return small(chip).load(name)
    except MemoryDamaged:
        return DAMAGED


def save_all(chip, saves, before):
    """Save one after the other until the power goes; what each record may be then."""
    memory = small(chip)
    may_be = {name: (before.get(name),) for name, _ in SMALL}
    try:
        for name, data in saves:
            may_be[name] = (may_be[name][0], data)
            memory.save(name, data)
            may_be[name] = (data,)
    except PowerCut:
        pass
    chip.power.restore()
    return may_be


def written(saves):
    """A chip with these saves, whole."""
    chip = SimFram(128)
    save_all(chip, saves, {})
    return chip


def copy(chip):
    other = SimFram(chip.size)
    other.cells[:] = chip.cells
    return other


# -- critical memory ----------------------------------------------------------------------------


def test_what_was_saved_is_there_after_a_reboot():
    for fill in (0x00, 0xFF):
        chip = SimFram(fill=fill)
        memory = CriticalMemory(chip, (("decks", 300),))
        for name, most in RECORDS + (("decks", 300),):
            assert memory.load(name) is None
            for size in (0, 1, most):
                memory.save(name, bytes([size & 255]) * size)
                assert memory.load(name) == bytes([size & 255]) * size
        again = CriticalMemory(chip, (("decks", 300),))
        for name, most in RECORDS + (("decks", 300),):
            assert again.load(name) == bytes([most & 255]) * most


def test_a_cut_after_any_byte_leaves_the_old_or_the_new_record():
    total = written(SAVES).power.steps
    for steps in range(total + 1):
        for fill in (0x00, 0xFF):
            chip = SimFram(128, fill=fill)
            chip.power.cut_after(steps)
            may_be = save_all(chip, SAVES, {})
            for name in may_be:
                assert load(chip, name) in may_be[name], (steps, name)


def test_a_cut_while_going_on_after_a_cut_leaves_the_old_or_the_new_record():
    first, then = SAVES[:3], (("a", b"four"), ("b", b"fourth"))
    for steps in range(written(first).power.steps + 1):
        chip = SimFram(128)
        chip.power.cut_after(steps)
        save_all(chip, first, {})
        found = {name: load(copy(chip), name) for name, _ in SMALL}
        more = 0
        while True:
            again = copy(chip)
            again.power.cut_after(more)
            try:
                for name in found:
                    assert small(again).load(name) == found[name]  # this may write its last byte
            except PowerCut:
                again.power.restore()
            may_be = save_all(again, then, found)
            for name in may_be:
                assert load(again, name) in may_be[name], (steps, more, name)
            if again.power.cuts == 0:
                break
            more += 1


def test_a_flipped_bit_damages_a_record_or_nothing():
    for count in range(1, len(SAVES) + 1):
        chip = written(SAVES[:count])
        newest = {"a": None, "b": None}
        newest.update(dict(SAVES[:count]))
        for bit in range(8 * small(chip).used):
            chip.flip(bit // 8, bit % 8)
            for name in newest:
                assert load(chip, name) in (newest[name], DAMAGED), (count, bit, name)
            chip.flip(bit // 8, bit % 8)


def test_a_flipped_bit_after_a_cut_gives_no_other_record():
    for steps in range(written(SAVES).power.steps + 1):
        chip = SimFram(128)
        chip.power.cut_after(steps)
        may_be = save_all(chip, SAVES, {})
        for bit in range(steps % 5, 8 * small(chip).used, 5):
            torn = copy(chip)
            torn.flip(bit // 8, bit % 8)
            for name in may_be:
                assert load(torn, name) in may_be[name] + (DAMAGED,), (steps, bit, name)


def test_a_damaged_record_is_not_replaced_by_the_older_one():
    chip = written((("a", b"old"), ("a", b"new")))
    chip.flip(HEAD_SIZE + 5 + HEAD_SIZE, 0)  # in the data of slot 1
    memory = small(chip)
    for _ in range(2):
        try:
            memory.load("a")
            raise AssertionError("not noticed")
        except MemoryDamaged:
            pass
    memory.save("a", b"again")
    assert memory.load("a") == b"again"
    assert load(chip, "a") == b"again"


def test_once_the_new_record_was_seen_the_older_one_never_returns():
    chip = written((("a", b"old"),))
    chip.power.cut_after(HEAD_SIZE + 3 + 1)  # the save lacks its last byte
    save_all(chip, (("a", b"new"),), {})
    assert load(chip, "a") == b"new"
    chip.flip(HEAD_SIZE + 5 + HEAD_SIZE, 0)
    assert load(chip, "a") == DAMAGED


def test_a_save_that_never_returned_does_no_damage_whatever_it_left():
    chip = written((("a", b"old"),))
    chip.power.cut_after(HEAD_SIZE + 3 + 1)
    save_all(chip, (("a", b"new"),), {})
    for bit in range(8 * (HEAD_SIZE + 5)):
        torn = copy(chip)
        torn.flip(HEAD_SIZE + 5 + bit // 8, bit % 8)
        assert load(torn, "a") in (b"old", b"new"), bit


def test_a_record_that_goes_bad_while_the_power_is_on_is_noticed():
    chip = written((("a", b"old"), ("a", b"new")))
    memory = small(chip)
    assert memory.load("a") == b"new"
    chip.flip(HEAD_SIZE + 5 + HEAD_SIZE, 0)
    try:
        memory.load("a")
        raise AssertionError("not noticed")
    except MemoryDamaged:
        pass


def test_one_wrong_reading_damages_nothing():
    for known in (False, True):
        for at in range(12):
            for bit in (0, 3, 9 * 8 - 1):
                chip = written((("a", b"old"), ("a", b"new")))
                memory = small(chip)
                if known:
                    memory.load("a")
                memory._chip = MisreadsAt(chip, at, bit)
                assert memory.load("a") == b"new", (known, at, bit)
                try:
                    memory.save("a", b"newer")
                except MemoryFailed:  # it looked as if it were not there
                    assert memory.load("a") in (b"new", b"newer")
                    memory.save("a", b"newer")
                assert load(chip, "a") == b"newer"


def test_one_wrong_reading_does_not_open_the_only_good_slot():
    for saves in ((("a", b"new"),), (("a", b"old"), ("a", b"new"))):
        for at in range(4):
            for bit in range(72):
                chip = written(saves)
                memory = small(chip)
                memory._chip = MisreadsAt(chip, at, bit)
                chip.power.cut_after(1)
                try:
                    memory.save("a", b"newer")
                except PowerCut:
                    chip.power.restore()
                assert load(chip, "a") == b"new", (at, bit)


class MisreadsAt:
    """A chip of which one reading has a wrong bit."""

    def __init__(self, chip, left, bit):
        self.chip = chip
        self.left = left
        self.bit = bit
        self.write = chip.write

    def read(self, address, length):
        data = bytearray(self.chip.read(address, length))
        if self.left == 0:
            data[self.bit // 8 % length] ^= 1 << self.bit % 8
        self.left -= 1
        return bytes(data)


def test_a_damaged_record_stays_damaged_until_a_save_has_ended():
    for slots in ((0,), (1,), (0, 1)):
        chip = written((("a", b"old"), ("a", b"new")))
        for slot in slots:
            chip.flip(slot * (HEAD_SIZE + 5) + HEAD_SIZE, 0)
        before = load(chip, "a")
        assert before == (b"new" if slots == (0,) else DAMAGED)
        whole = HEAD_SIZE + 5 + 2
        for steps in range(whole + 1):
            for more in range(whole + 1):  # the second try is cut too
                torn, was = copy(chip), before
                for cut, data in ((steps, b"newer"), (more, b"later")):
                    torn.power.cut_after(cut)
                    save_all(torn, (("a", data),), {})
                    found = load(torn, "a")
                    assert found == data if cut == whole else found in (was, data), (slots, steps, more)
                    was = found


def test_an_unknown_chip_is_damaged_and_can_be_used():
    chip = SimFram(128, fill=0x5A)
    assert load(chip, "a") == DAMAGED
    small(chip).save("a", b"one")
    assert load(chip, "a") == b"one"
    assert load(chip, "b") == DAMAGED


def test_a_write_that_does_not_hold_is_told():
    chip = written((("a", b"old"),))
    memory = small(chip)
    chip.deaf = True
    try:
        memory.save("a", b"new")
        raise AssertionError("not noticed")
    except MemoryFailed:
        pass
    chip.deaf = False
    assert memory.load("a") == b"old"
    memory.save("a", b"new")
    assert load(chip, "a") == b"new"


def test_a_chip_that_does_not_answer_is_told_and_costs_nothing():
    accesses = 12
    for failing in range(accesses):
        chip = written((("a", b"old"),))
        memory = small(chip)
        fails = FailsAt(chip, failing)
        memory._chip = fails
        try:
            memory.save("a", b"new")
            assert fails.left >= 0, "an access failed and nobody was told"
            memory._chip = chip
        except MemoryFailed:
            assert load(copy(chip), "a") in (b"old", b"new")
            assert memory.load("a") == load(copy(chip), "a")
        memory.save("a", b"newer")
        assert load(chip, "a") == b"newer"
    chip.failing = 1
    try:
        memory.load("a")
        raise AssertionError("not told")
    except MemoryFailed:
        pass
    assert memory.load("a") == b"newer"


class FailsAt:
    """A chip of which one access fails, before anything is written."""

    def __init__(self, chip, left):
        self.chip = chip
        self.left = left
        for name in ("size", "sectors", "sector_size", "page_size"):
            if hasattr(chip, name):
                setattr(self, name, getattr(chip, name))

    def count(self):
        self.left -= 1
        if self.left == -1:
            raise OSError("no answer")

    def read(self, address, length):
        self.count()
        return self.chip.read(address, length)

    def write(self, address, data):
        self.count()
        self.chip.write(address, data)

    def program(self, address, data):
        self.count()
        self.chip.program(address, data)

    def erase(self, sector):
        self.count()
        self.chip.erase(sector)


def test_sequence_numbers_wrap():
    chip = SimFram(128)
    memory = small(chip)
    memory.save("a", b"x")
    memory._layout["a"].sequence = 0xFFFC
    for turn in range(8):
        value = bytes([turn])
        for steps in (HEAD_SIZE + 1 + 1, None):  # all but the last mark; then whole
            old = load(copy(chip), "a")
            torn = copy(chip)
            torn.power.cut_after(steps)
            save_all(torn, (("a", value),), {"a": old})
            assert load(torn, "a") == value, (turn, steps)
        memory.save("a", value)
    assert memory._layout["a"].sequence == 4


def test_a_save_reads_little_once_the_slots_are_known():
    chip = written(SAVES)
    memory = small(chip)
    memory.load("b")
    reads, writes, steps = chip.reads, chip.writes, chip.power.steps
    memory.save("b", b"0123456789a")
    assert (chip.reads - reads, chip.writes - writes) == (4, 4)
    assert chip.power.steps - steps == HEAD_SIZE + 11 + 2


def test_records_that_do_not_fit_are_refused():
    for chip, others in (
        (SimFram(3705), ()),
        (SimFram(), (("log", 15000),)),
        (SimFram(), (("keys", 4),)),
        (SimFram(), (("big", 70000),)),
    ):
        try:
            CriticalMemory(chip, others)
            raise AssertionError("accepted")
        except LayoutRefused:
            pass
    size = CriticalMemory(SimFram()).used
    memory = CriticalMemory(SimFram(size))
    assert memory.used == size
    try:
        memory.save("boot", bytes(9))
        raise AssertionError("too long")
    except MemoryFailed:
        pass
    assert memory.load("boot") is None


def test_a_slot_is_never_another_records():
    chip = SimFram(128)
    CriticalMemory(chip, records=(("a", 5),)).save("a", b"one")
    other = CriticalMemory(chip, records=(("b", 5),))
    assert chip.cells[0] == CURRENT
    try:
        other.load("b")
        raise AssertionError("taken for b")
    except MemoryDamaged:
        pass


# -- the event log ------------------------------------------------------------------------------


def test_evidence_is_in_both_rings_and_nothing_else_in_the_second_one():
    flash, second = SimFlash(2, sector_size=4096), SimFlash(2, sector_size=4096)
    log = EventLog(flash, 1, evidence=EventLog(second, 1))
    log.add(b"a state")
    log.add(b"a fault", True)
    assert log.due()
    assert log.flush(10) == 1  # the evidence first, and at most one erase at a time
    assert [row for _, row in log.evidence.rows(0, 9)] == [b"a fault"]
    assert not log.rows(0, 9)
    assert log.flush(10) == 2
    assert not log.due()
    for number in range(400):
        log.add(b"%064d" % number)
        while log.due():
            log.flush(10)
    log = EventLog(flash, 1, evidence=EventLog(second, 1))
    assert b"a fault" not in [row for _, row in log.rows(0, 1000)]
    assert [row for _, row in log.evidence.rows(0, 9)] == [b"a fault"]


def test_a_ring_of_evidence_that_fails_does_not_keep_the_log_waiting():
    flash, second = SimFlash(2), SimFlash(2)
    log = EventLog(flash, 1, evidence=EventLog(second, 1))
    second.failing = 1 << 30
    log.add(b"a fault", True)
    for _ in range(3):
        log.flush(10)
    assert [row for _, row in log.rows(0, 9)] == [b"a fault"]
    assert log.evidence.failed
    second.failing = 0
    log.flush(10)
    assert [row for _, row in log.evidence.rows(0, 9)] == [b"a fault"]


def row_of(number, size=20):
    return bytes([(number * 7 + at) & 255 for at in range(size)])


def fill(log, truth, sizes):
    """Add and flush one row of each size, noting it in the truth once it is there."""
    for size in sizes:
        row = row_of(len(truth) + 1, size)
        log.add(row)
        while log.due():
            assert log.flush(10) or log.failed
        truth.append(row)


def check(log, truth):
    """Whether the log is a true end of the truth, without holes."""
    assert log.newest == len(truth), (log.newest, len(truth))
    found = log.rows(0, 10000)
    assert [number for number, _ in found] == list(range(log.oldest, log.newest + 1))
    for number, row in found:
        assert row == truth[number - 1], number


def test_the_last_rows_are_kept_over_several_rounds_of_the_ring():
    flash = SimFlash(sectors_for(40, 1024), sector_size=1024)
    log, truth = EventLog(flash, 40), []
    check(log, truth)
    for turn in range(200):
        fill(log, truth, (64,))
        assert log.newest - log.oldest + 1 >= min(40, len(truth)), turn
        if turn % 9 == 0:
            log = EventLog(flash, 40)
        if turn % 5 == 0:
            check(log, truth)
    assert max(flash.erases) >= 3
    assert max(flash.erases) - min(flash.erases) <= 1


def test_rows_are_read_in_parts():
    flash = SimFlash(4, sector_size=512)
    log, truth = EventLog(flash, 1), []
    fill(log, truth, (1, 200, 64, 5, 100, 199, 33))
    number, found = 0, []
    while True:
        part = log.rows(number, 2)
        assert len(part) <= 2
        if not part:
            break
        found += part
        number = part[-1][0] + 1
    assert found == log.rows(0, 100)
    assert log.rows(6, 1) == [(6, truth[5])]
    assert log.rows(8, 5) == []
    assert log.rows(0, 0) == []


def test_reading_on_costs_nothing_for_the_rows_before():
    flash = SimFlash(4)
    log, truth = EventLog(flash, 1), []
    fill(log, truth, (20,) * 250)
    for number in range(1, 251):
        reads = flash.reads
        assert log.rows(number, 1) == [(number, truth[number - 1])]
        assert flash.reads - reads <= 2
        if number % 60 == 0:
            fill(log, truth, (30,) * 3)
    for number in (200, 7, 8, 9, 8, 251, 262, 1):  # anywhere, and while rows come and go
        there = [(each, truth[each - 1]) for each in (number, number + 1) if each <= 262]
        assert log.rows(number, 2) == there
    for number in range(263, 270):  # a reader that waits for the next row
        fill(log, truth, (30,))
        reads = flash.reads
        assert log.rows(number, 5) == [(number, truth[number - 1])]
        assert flash.reads - reads <= 2 or number == 263
    while log.oldest == 1:
        fill(log, truth, (200,))
    assert log.rows(2, 1) == [(log.oldest, truth[log.oldest - 1])]
    check(log, truth)


def test_a_cut_at_any_step_leaves_a_true_end_of_the_log():
    base = SimFlash(3, sector_size=1024)
    before = []
    fill(EventLog(base, 1), before, [70] * 46)  # well into the second round
    rows = (200, 9, 150, 64, 199, 3, 64)
    steps = 0
    cut = True
    while cut:
        flash = SimFlash(3, seed=steps, sector_size=1024)
        flash.cells[:] = base.cells
        truth = list(before)
        log = EventLog(flash, 1)
        flash.power.cut_after(steps)
        cut = False
        try:
            fill(log, truth, rows)
        except PowerCut:
            cut = True
            flash.power.restore()
            log = EventLog(flash, 1)
            if log.newest == len(truth) + 1:  # the power went after its last byte
                truth.append(row_of(len(truth) + 1, rows[len(truth) - len(before)]))
        flash.power.restore()
        check(log, truth)
        fill(log, truth, rows)  # life goes on, over anything torn
        check(log, truth)
        check(EventLog(flash, 1), truth)
        steps += 3


def test_what_the_queue_drops_is_counted_where_it_was():
    flash = SimFlash(4, sector_size=512)
    log = EventLog(flash, 1, queue_bytes=216)
    for number in range(1, 16):
        log.add(row_of(number))
    assert (log.dropped, log.newest, log.due()) == (9, 0, True)
    assert log.flush(3) == 3
    log.add(row_of(16))
    log.add(row_of(17))
    log.add(row_of(18, 200))
    assert log.dropped == 9 + 6
    assert log.flush(1) == 1
    assert log.flush(10) == 1
    assert not log.due()
    rows = [row for _, row in log.rows(0, 100)]
    assert rows == [gap_row(9), row_of(10), row_of(11), gap_row(6), row_of(18, 200)]


def test_a_flush_erases_one_sector_at_most():
    flash = SimFlash(4, sector_size=512)
    log = EventLog(flash, 1)
    for number in range(10):
        log.add(row_of(number, 200))
    written = []
    while log.due():
        erases = sum(flash.erases)
        written.append(log.flush(100))
        assert sum(flash.erases) - erases <= 1
    assert written == [2] * 5


def test_a_write_that_does_not_hold_is_tried_elsewhere():
    flash = SimFlash(4, sector_size=512)
    log, truth = EventLog(flash, 1), []
    fill(log, truth, (20, 20))
    for fault in ("deaf", "failing"):
        log.add(row_of(len(truth) + 1))
        setattr(flash, fault, 1)
        assert log.flush(5) == 0
        setattr(flash, fault, 0)
        assert log.due()
        assert log.flush(5) == 1
        truth.append(row_of(len(truth) + 1))
        check(log, truth)
        check(EventLog(flash, 1), truth)
    assert log.failed == 2


def test_an_access_that_fails_costs_no_row_and_makes_none():
    for size in (20, 200):
        for failing in range(8):
            flash = SimFlash(3, sector_size=512)
            log, truth = EventLog(flash, 1), []
            fill(log, truth, (200,))
            log._flash = FailsAt(flash, failing)
            fill(log, truth, (size,) * 3)
            assert log.failed == (1 if log._flash.left < 0 else 0)
            log._flash = flash
            check(log, truth)
            check(EventLog(flash, 1), truth)
            fill(log, truth, (64,) * 5)
            check(log, truth)


def test_a_bad_sector_head_costs_that_sector_alone():
    flash = SimFlash(5, sector_size=512)
    log, truth = EventLog(flash, 1), []
    fill(log, truth, (40,) * 80)
    firsts = [log._firsts[log._sector(place)] for place in range(log._held)] + [log.newest + 1]
    assert len(firsts) == 6
    for place in range(1, 4):
        at = log._sector(place) * 512
        flash.flip(at + 5, 1)
        numbers = [number for number, _ in EventLog(flash, 1).rows(0, 1000)]
        flash.flip(at + 5, 1)
        lost = range(firsts[place], firsts[place + 1])
        kept = range(firsts[1 if place == 1 else 0], firsts[5])  # next to the one erased next
        assert numbers == [number for number in kept if number not in lost], place


def test_a_ring_of_another_size_is_read_as_far_as_it_goes():
    for was in range(2, 7):
        for now in range(2, 7):
            old = SimFlash(was, sector_size=512)
            truth = []
            fill(EventLog(old, 1), truth, (60,) * 60)
            flash = SimFlash(now, sector_size=512)
            flash.cells[: min(was, now) * 512] = old.cells[: min(was, now) * 512]
            log = EventLog(flash, 1)
            found = log.rows(0, 1000)
            assert [row for number, row in found] == [truth[number - 1] for number, _ in found]
            assert [number for number, _ in found] == sorted({number for number, _ in found})
            assert (log.oldest, log.newest) == (found[0][0], found[-1][0]), (was, now)
            del truth[log.newest :]
            fill(log, truth, (60,) * 60)
            check(log, truth)


def test_a_bad_row_costs_that_row_alone():
    flash = SimFlash(4, sector_size=1024)
    log, truth = EventLog(flash, 1), []
    fill(log, truth, (40,) * 50)
    assert log.oldest == 1
    at = bytes(flash.cells).find(truth[6])
    for wrong in (at + 5, at - 9, at - 5, at - 1):  # data, length, number, CRC
        flash.flip(wrong, 2)
        found = EventLog(flash, 1).rows(0, 1000)
        assert found == [(number, truth[number - 1]) for number in range(1, 51) if number != 7]
        flash.flip(wrong, 2)


def test_rows_and_flashes_that_do_not_fit_are_refused():
    assert sectors_for(1000) == 21
    log = EventLog(SimFlash(2), 51)
    for wrong in (
        lambda: log.add(b""),
        lambda: log.add(bytes(201)),
        lambda: EventLog(SimFlash(2), 52),
        lambda: EventLog(SimFlash(2), 1, queue_bytes=215),
    ):
        try:
            wrong()
            raise AssertionError("accepted")
        except LogRefused:
            pass


# -- the chips ----------------------------------------------------------------------------------


def test_the_chips_are_as_strict_as_real_ones():
    flash = SimFlash(2, sector_size=512)
    flash.program(10, b"abc")
    for address, data in ((12, b"x"), (250, b"0123456")):
        try:
            flash.program(address, data)
            raise AssertionError("accepted")
        except FlashMisuse:
            pass
    flash.power.cut_after(2)
    try:
        flash.program(20, b"\x00\x00\x00\x00")
        raise AssertionError("no cut")
    except PowerCut:
        pass
    assert flash.cells[20:22] == b"\x00\x00"
    assert flash.cells[23] == 0xFF
    for access in (lambda: flash.read(0, 1), lambda: flash.erase(0), lambda: flash.program(100, b"x")):
        try:
            access()
            raise AssertionError("works without power")
        except PowerCut:
            pass


def test_one_supply_counts_for_all_its_chips():
    power = Power()
    fram, flash = SimFram(64, power), SimFlash(2, power)
    power.cut_after(3)
    fram.write(0, b"ab")
    try:
        flash.program(0, b"cd")
        raise AssertionError("no cut")
    except PowerCut:
        pass
    try:
        fram.read(0, 1)
        raise AssertionError("works without power")
    except PowerCut:
        pass
    power.restore()
    assert fram.read(0, 3) == b"ab\x00"
    assert flash.read(0, 1) == b"c"
    assert (fram.writes, flash.writes) == (1, 1)
