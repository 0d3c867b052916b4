"""The generator: NIST's answers, what it refuses, draws without bias. On CPython and MicroPython."""

from binascii import hexlify, unhexlify

from cavp import CAVP

from sabot_firmware.critical import CriticalMemory, Fram
from sabot_firmware.rng import RngFailed, lag_test
from sabot_firmware.rng import drbg as drbg_module
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_firmware.rng.draws import Slots, UniformStream
from sabot_firmware.rng.drbg import HmacDrbg, check_known_answers
from sabot_firmware.rng.entropy_source import REPETITION_CUTOFF, START_UP, WINDOW, EntropySource
from sabot_firmware.rng.persistent_seed import RECORD
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.record_store import RecordStore


class Bits:
    """Raw noise from a small generator of its own: each bit leans to 1 and to the one before."""

    def __init__(self, state=12345):
        self.state = state
        self.bit = 0
        self.stuck = False
        self.asked = 0

    def read(self, count):
        self.asked += count
        if self.stuck:
            return bytes(count)
        out = bytearray(count)
        for index in range(8 * count):
            self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
            if (self.state >> 16) % 100 < 55:
                self.bit = 1 - self.bit
            out[index >> 3] |= self.bit << (7 - (index & 7))
        return bytes(out)


def refuses(what, *values):
    try:
        what(*values)
    except RngFailed as error:
        return str(error)
    raise AssertionError("nothing failed")


def test_nist_answers():
    for entropy, nonce, personal, reseed, first, second, answer in CAVP:
        drbg = HmacDrbg()
        drbg.instantiate(unhexlify(entropy), unhexlify(nonce), unhexlify(personal))
        if reseed:
            drbg.reseed(unhexlify(reseed))
        drbg.generate(128, unhexlify(first))
        assert hexlify(drbg.generate(128, unhexlify(second))).decode() == answer


def test_a_generator_that_gives_another_answer_is_found_at_power_up():
    class Broken(HmacDrbg):
        def generate(self, count, additional=b""):
            out = super().generate(count, additional)
            out[0] ^= 1
            return out

    class Unseeded(HmacDrbg):
        def wipe(self):
            pass

    check_known_answers()
    assert "known answer" in refuses(check_known_answers, Broken)
    assert "without a seed" in refuses(check_known_answers, Unseeded)


def test_a_generator_without_a_seed_or_with_an_old_one_gives_nothing():
    drbg = HmacDrbg()
    refuses(drbg.generate, 1)
    refuses(drbg.reseed, bytes(32))
    drbg.instantiate(bytes(32), bytes(16))
    refuses(drbg.generate, 65537)
    drbg._requests = drbg_module.RESEED_INTERVAL + 1
    refuses(drbg.generate, 1)
    drbg.reseed(bytes(32))
    drbg.generate(1)
    drbg.wipe()
    refuses(drbg.generate, 1)
    for left in (drbg._key, drbg._value, drbg._inner_pad, drbg._outer_pad):
        assert not any(left)


def test_start_up_and_both_health_tests():
    noise = EntropySource(Bits().read)
    assert "not started" in refuses(noise.entropy, 256)
    noise.start()
    assert len(noise.entropy(256)) * 8 >= 1024  # a quarter of a bit a sample
    source = Bits()
    source.stuck = True
    noise = EntropySource(source.read)
    assert "repeats" in refuses(noise.start)
    source.stuck = False
    refuses(noise.entropy, 256)  # failed once: nothing more before it is started anew
    noise.start()
    noise.entropy(256)


def test_a_run_of_one_less_than_the_cutoff_passes():
    noise_bits = "".join([f"{byte:08b}" for byte in Bits().read(START_UP // 8)])
    for after in range(9):  # samples behind the run: it may end anywhere in a byte
        for run, passes in ((REPETITION_CUTOFF - 1, True), (REPETITION_CUTOFF, False)):
            for sample, other in (("1", "0"), ("0", "1")):
                before = START_UP - run - after - 1
                bits = noise_bits[:before] + other + sample * run + other * after
                data = bytes([int(bits[at : at + 8], 2) for at in range(0, START_UP, 8)])
                noise = EntropySource(lambda count, data=data: data[:count])
                if passes:
                    noise.start()
                else:
                    assert "repeats" in refuses(noise.start)


def test_a_source_that_leans_is_found_although_it_never_stands_still():
    leaning = bytes([0xFE if at % 2 else 0xFF for at in range(START_UP // 8)])  # 15 of 16 samples are 1
    assert WINDOW * 15 // 16 > 915
    assert "leans" in refuses(EntropySource(lambda count: leaning[:count]).start)


def test_a_source_that_gives_too_little_is_found():
    assert "less" in refuses(EntropySource(lambda count: bytes([0xA5] * (count - 1))).start)


def periodic(period, inverted=False):
    """Samples that repeat after so many, or come back inverted, the rest of a period being noise."""
    bits = [each >> 3 & 1 for each in Bits(period).read(lag_test.LAGS)][:period]
    while len(bits) < 2 * START_UP:
        bits.append(bits[-period] ^ 1 if inverted else bits[-period])
    out = bytearray(len(bits) // 8)
    for at, bit in enumerate(bits):
        out[at >> 3] |= bit << (7 - (at & 7))
    return bytes(out)


def test_a_pattern_at_each_lag_is_found_although_it_neither_stands_still_nor_leans():
    for lag in range(2, lag_test.LAGS + 1):
        for inverted in (False, True):
            data = periodic(lag, inverted)
            why = refuses(EntropySource(lambda count, data=data: data[:count]).start)
            assert "repeats" in why or "leans" in why or "pattern" in why
            found = lag_test.LagTest()
            found.start()
            shown = found.look(data)
            assert shown
            assert lag % shown == 0 or inverted
    assert "pattern at lag 1" in refuses(EntropySource(lambda count: b"\x55" * count).start)


def test_a_lag_longer_than_those_tested_is_not_seen():
    state, bits = 1, []
    for _ in range(START_UP):  # x^7 + x + 1: a period of 127 with as many ones as zeros
        bits.append(state & 1)
        state = state >> 1 | ((state ^ state >> 1) & 1) << 6
    data = bytes([int("".join([str(bit) for bit in bits[at : at + 8]]), 2) for at in range(0, START_UP, 8)])
    EntropySource(lambda count: data[:count]).start()  # docs/shuffling.md states this limit


def test_the_lag_test_counts_exactly_and_over_any_cut_of_the_data():
    window = lag_test.WINDOW // 8
    for alike, found in ((lag_test.CUTOFF - 1, 0), (lag_test.CUTOFF, 3)):
        bits = [int(each) for each in "".join([f"{byte:08b}" for byte in Bits(9).read(lag_test.BEFORE)])]
        differ = lag_test.WINDOW - alike
        for at in range(lag_test.WINDOW):
            spread = at * differ // lag_test.WINDOW != (at + 1) * differ // lag_test.WINDOW
            bits.append(bits[-3] ^ (1 if spread else 0))
        data = bytes(
            [int("".join([str(bit) for bit in bits[at : at + 8]]), 2) for at in range(0, len(bits), 8)]
        )
        assert len(data) == lag_test.BEFORE + window
        for piece in (1, 7, 64, 200):
            test = lag_test.LagTest()
            test.start()
            shown = [test.look(data[at : at + piece]) for at in range(0, len(data), piece)]
            assert [each for each in shown if each] == ([found] if found else [])
            assert shown[-1] == found


def test_a_pattern_that_begins_later_is_found_however_the_data_is_cut():
    for piece in (64, 119, 128):
        test = lag_test.LagTest()
        test.start()
        assert test.look(Bits(9).read(lag_test.BEFORE + lag_test.WINDOW // 8 + 7)) == 0
        assert any(test.look(b"\x55" * piece) for _ in range(1 + 3 * lag_test.WINDOW // 8 // piece))


def test_both_ways_to_count_agree():
    data = bytearray(Bits(4).read(100))
    for lag in range(1, lag_test.LAGS + 1):
        differing = 0
        bits = "".join([f"{byte:08b}" for byte in data])
        for at in range(8 * lag_test.BEFORE, len(bits)):
            differing += bits[at] != bits[at - lag]
        assert lag_test.count_differing(data, len(data), lag) == differing
        assert lag_test.count(data, len(data), lag) == differing


def test_nothing_but_the_last_samples_is_kept():
    test = lag_test.LagTest()
    test.start()
    test.look(Bits(3).read(128))
    assert any(test._samples[: lag_test.BEFORE])
    assert not any(test._samples[lag_test.BEFORE :])


class Chip(Fram):
    """A small FRAM in RAM."""

    size = 512

    def __init__(self):
        self.bytes = bytearray(self.size)
        self.fails = False

    def read(self, address, length):
        return bytes(self.bytes[address : address + length])

    def write(self, address, data):
        if self.fails:
            raise OSError("dead")
        self.bytes[address : address + len(data)] = data


def on(chip):
    return CriticalMemory(chip, others=(RECORD,), records=(("boot", 8),))


def seeds_of(memory, serial=b"SERIAL01", besides=bytes, boots=1):
    """The first seed of each of some boots over the same noise."""
    seeds = []
    for _ in range(boots):
        rng = DeviceRng(Bits().read, memory, serial, besides)
        rng.start()
        seeds.append(bytes(rng.fresh_seed()))
    return seeds


def test_the_same_noise_gives_other_seeds_at_the_next_boot_and_on_another_device():
    assert seeds_of(RecordStore()) == seeds_of(RecordStore())
    first, second, third = seeds_of(RecordStore(), boots=3)
    assert len({first, second, third}) == 3
    assert seeds_of(RecordStore(), b"SERIAL02") != [first]
    assert seeds_of(RecordStore(), besides=lambda: b"warm") != [first]
    booted = RecordStore()
    booted.save("boot", b"MEM1\x07\x00\x00\x00")
    assert seeds_of(booted) != [first]


def test_the_board_is_asked_for_more_at_every_reseed():
    said = [b"a", b"b", b"b"]
    chances = [
        DeviceRng(Bits().read, RecordStore(), b"", besides) for besides in (lambda: b"a", lambda: said.pop(0))
    ]
    for rng in chances:
        rng.start()
    assert chances[0].fresh_seed() != chances[1].fresh_seed()


def test_a_carried_seed_is_in_neither_slot_once_it_is_used():
    chip = Chip()
    rng = DeviceRng(Bits().read, on(chip))
    rng.start()
    carried = on(chip).load(RECORD[0])
    assert len(carried) == RECORD[1]
    assert bytes(chip.bytes).find(carried) >= 0
    rng = DeviceRng(Bits().read, on(chip))
    rng.start()
    now = on(chip).load(RECORD[0])
    assert now != carried
    assert bytes(chip.bytes).find(carried) < 0
    slots = bytes(chip.bytes)
    assert slots.find(now, slots.find(now) + 1) < 0  # the other slot is overwritten


def test_a_seed_that_cannot_be_carried_forward_fails_the_generator():
    chip = Chip()
    rng = DeviceRng(Bits().read, on(chip))
    chip.fails = True
    assert "carried" in refuses(rng.start)
    refuses(rng.fresh_seed)
    assert len(rng.nonce(16)) == 16  # the wire lives on
    chip.fails = False
    rng.start()
    rng.fresh_seed()


def test_a_damaged_seed_is_replaced():
    chip = Chip()
    seeds_of(on(chip))
    at = bytes(chip.bytes).find(on(chip).load(RECORD[0]))
    for slot in (at, at + RECORD[1] + 9):
        chip.bytes[slot] ^= 1
    rng = DeviceRng(Bits().read, on(chip))
    rng.start()
    assert len(on(chip).load(RECORD[0])) == RECORD[1]


def test_bytes_of_the_host_change_the_next_seed_and_every_later_boot():
    taken = []
    for entropy in (b"h" * 32, b"i" * 32):
        chip = Chip()
        rng = DeviceRng(Bits().read, on(chip))
        rng.start()
        before = on(chip).load(RECORD[0])
        rng.take(entropy)
        assert bytes(chip.bytes).find(before) < 0
        taken.append((bytes(rng.fresh_seed()), bytes(rng.random(16)), seeds_of(on(chip))[0]))
    for first, second in zip(taken[0], taken[1]):
        assert first != second
    chip.fails = True
    try:
        rng.take(b"j" * 32)
        raise AssertionError("nothing failed")
    except MemoryFailed:
        pass


def test_bytes_of_the_host_are_kept_before_the_generator_is_started():
    memory = RecordStore()
    DeviceRng(Bits().read, memory).take(b"h" * 32)
    assert seeds_of(memory) != seeds_of(RecordStore())


def test_no_seed_without_noise_and_every_seed_has_its_own():
    source = Bits()
    rng = DeviceRng(source.read)
    refuses(rng.fresh_seed)
    refuses(rng.random, 4)
    rng.start()
    asked = source.asked
    first, second = rng.fresh_seed(), rng.fresh_seed()
    assert source.asked - asked == 2 * 128  # 1,024 samples for each
    assert first != second
    assert len(first) == 32
    asked = source.asked
    rng.random(16)
    assert source.asked == asked
    rng._public._requests = drbg_module.RESEED_INTERVAL + 1
    rng.random(16)
    assert source.asked - asked == 128
    source.stuck = True
    refuses(rng.fresh_seed)
    source.stuck = False
    refuses(rng.fresh_seed)
    rng.start()
    rng.fresh_seed()


def test_nonces_change_no_seed_and_come_even_when_the_noise_is_dead():
    first, second = DeviceRng(Bits().read), DeviceRng(Bits().read)
    first.start()
    second.start()
    nonces = [first.nonce(16) for _ in range(50)]
    assert len(set(nonces)) == 50
    assert first.fresh_seed() == second.fresh_seed()
    source = Bits()
    source.stuck = True
    dead = DeviceRng(source.read)
    nonces = [dead.nonce(16) for _ in range(5)]  # it starts by itself, and fails
    assert len(set(nonces)) == 5
    assert [len(each) for each in nonces] == [16] * 5
    assert len(dead.nonce(80)) == 80
    refuses(dead.fresh_seed)
    refuses(dead.random, 4)


def test_a_first_nonce_starts_the_generator():
    source = Bits()
    rng = DeviceRng(source.read)
    nonce = rng.nonce(16)
    started = DeviceRng(Bits().read)
    started.start()
    assert nonce == started.random(16)
    rng.fresh_seed()


def test_draws_throw_away_what_would_make_some_likelier():
    class Given(HmacDrbg):
        def generate(self, count, additional=b""):
            return bytearray(given)

    given = b"\xff\xf0\xff\xef\x00\x05\x00\x00"
    stream = UniformStream(Given())
    assert stream.below(52) == 51  # 65519; 65520 = 52 * 1260 was thrown away
    assert stream.below(52) == 5
    assert stream.below(1) == 0
    given = b"\xff\xff" * 100
    refuses(UniformStream(Given()).below, 52)


def test_every_value_of_two_bytes_is_drawn_once_and_gives_each_slot_equally_often():
    class Counting(HmacDrbg):
        def generate(self, count, additional=b""):
            out = bytearray(count)
            for at in range(0, count, 2):
                out[at], out[at + 1] = self.next >> 8 & 255, self.next & 255
                self.next += 1
            return out

    for bound in (7, 52, 416):
        drbg = Counting()
        drbg.next = 0
        stream = UniformStream(drbg)
        times = [0] * bound
        for _ in range(65536 - 65536 % bound):
            times[stream.below(bound)] += 1
        assert set(times) == {65536 // bound}


def test_slots_follow_from_seed_nonce_and_shuffle_and_repeat_for_the_same_card():
    slots = [Slots(52) for _ in range(4)]
    slots[0].fill(b"s" * 32, b"n" * 32, b"about")
    slots[1].fill(b"t" * 32, b"n" * 32, b"about")
    slots[2].fill(b"s" * 32, b"m" * 32, b"about")
    slots[3].fill(b"s" * 32, b"n" * 32, b"other")
    drawn = [[each.draw(card) for card in range(1, 53)] for each in slots]
    assert all(0 <= slot <= card for card, slot in enumerate(drawn[0]))
    assert len({tuple(each) for each in drawn}) == 4
    assert [slots[0].draw(card) for card in range(1, 53)] == drawn[0]
    slots[0].wipe()
    assert {slots[0].draw(card) for card in range(1, 53)} == {0}
