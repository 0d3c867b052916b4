"""Rewrite what a device said: its log, its critical memory, its checkpoints."""

import random
import struct

import pytest
from chained import CHECKPOINT, HEAD, LOST, BrokenChain, Follower, events_of, hmac
from tests.attacks.owners import SERIAL, Noted

from sabot_firmware.critical import CriticalMemory
from sabot_firmware.event_log import EventLog
from sabot_protocol.codec import enum_number
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.chips import SimFlash, SimFram

pytestmark = pytest.mark.slow

FIRST_KEY = bytes(range(32))
PROVISIONED = enum_number("ChainReason", "provisioned")
LOCATED, FAULT_RAISED, CALIBRATED, GAP_ROW = 0x85, 0x97, 0x8D, 0xFF
SHOE_CHANGED, FACES_REVEALED, PROOFS_REFUSED, STOPPED = 0x91, 0x8F, 0x8B, 0xA7


class Machine:
    """A device over chips that outlive its power."""

    def __init__(self) -> None:
        self.fram, self.flash, self.evidence_flash = SimFram(14336), SimFlash(), SimFlash()
        self.random = random.Random(5)
        self.boot()
        self.device.begin_chain(PROVISIONED, FIRST_KEY)
        self.device.keys.set(DEVICE, b"k" * 32)

    def boot(self) -> None:
        """Cut the power, and restore it."""
        self.log = EventLog(self.flash, evidence=EventLog(self.evidence_flash))
        identity = DeviceIdentity(SERIAL, "Sabot test", "0.0", 2)
        memory = CriticalMemory(self.fram)
        self.device = DeviceProtocol(identity, memory, Noted(), self.random.randbytes, 1000, log=self.log)

    def logged(self) -> list[int]:
        """The message ids of all rows of the log."""
        while self.log.due():
            self.log.flush(50)
        return [row[0] for _, row in self.log.rows(0, 5000)]

    def evidence(self) -> list[int]:
        """The message ids of all rows of the ring of evidence."""
        self.logged()
        assert self.log.evidence is not None
        return [row[0] for _, row in self.log.evidence.rows(0, 5000)]

    def work(self) -> None:
        """Evidence of a day: a fault, a calibration."""
        self.device.emit("fault_raised", 1, 1, 0, "lift the card")
        self.device.emit("calibrated", 1, 5, bytes(8), 7)


def test_chatter_does_not_flush_the_log() -> None:
    """3,000 ``locate`` commands filled the log three times; faults and calibrations of the day were gone."""
    machine = Machine()
    machine.work()
    for n in range(3000):
        machine.device.emit("located", 1 + n % 60)
        machine.log.flush(4)
    rows = machine.logged()
    assert FAULT_RAISED in rows
    assert CALIBRATED in rows
    assert rows.count(LOCATED) <= 8
    machine.work()  # the next row says how many were left out
    assert machine.logged().count(GAP_ROW) == 1
    left_out = next(row for _, row in machine.log.rows(0, 5000) if row[0] == GAP_ROW)
    assert struct.unpack_from("<I", left_out, len(left_out) - 4)[0] == 3000 - rows.count(LOCATED)


@pytest.mark.parametrize("boots", [1, 40])
def test_a_days_work_does_not_flush_the_evidence(boots: int) -> None:
    """States, stacks and times of rounds fill the ring of all events in an hour; so do power cycles."""
    machine = Machine()
    machine.work()
    for _ in range(boots):
        for n in range(3000 // boots):
            machine.device.emit("shoe_changed", 1, 7, n)
            machine.log.flush(4)
        machine.logged()
        machine.boot()
    rows = machine.logged()
    assert FAULT_RAISED not in rows
    assert CALIBRATED not in rows
    kept = machine.evidence()
    assert kept.count(FAULT_RAISED) == kept.count(CALIBRATED) == 1
    assert SHOE_CHANGED not in kept


def test_who_has_a_device_key_does_not_flush_the_evidence() -> None:
    """Reveals of a round again and again, and wrong proofs for a month: it takes no person."""
    machine = Machine()
    machine.work()
    for n in range(3000):
        machine.device.emit("faces_revealed", 1 + n % 2, 1, bytes(8), 0)
        machine.device.emit("stopped", bytes(8), 0)
        machine.device.note_wrong_proof(3)
        machine.device.tick((machine.device.now() + 900_000) & 0x3FFFFFFF)
        machine.log.flush(8)
    kept = machine.evidence()
    assert kept.count(FAULT_RAISED) == kept.count(CALIBRATED) == 1
    assert 2 <= kept.count(FACES_REVEALED) < 900
    assert 1 <= kept.count(PROOFS_REFUSED) < 900
    assert 1 <= kept.count(STOPPED) < 900


def test_the_first_reveal_of_each_round_is_evidence() -> None:
    """Three hundred rounds revealed: a limit on reveals must not hide the reveal of one more round."""
    machine = Machine()
    for round_id in range(1, 301):
        for stack in (1, 2, 3):
            machine.device.emit("faces_revealed", round_id, stack, bytes(8), 0)
            machine.log.flush(8)
    machine.logged()
    assert machine.log.evidence is not None
    rows = [row for _, row in machine.log.evidence.rows(0, 5000) if row[0] == FACES_REVEALED]
    told = [struct.unpack_from("<I", row, 16)[0] for row in rows]
    assert sorted(set(told)) == list(range(1, 301))


def test_power_cycles_are_named_one_by_one() -> None:
    """Cut the power after each event that should not be seen: each cut was a gap that no event told."""
    machine = Machine()
    follower = Follower(SERIAL, FIRST_KEY)
    seen = events_of(machine.device)
    machine.device.acknowledge(1, machine.device.events.last)
    machine.device.emit("located", 1)  # saves what is acknowledged
    follower.boot([*seen, events_of(machine.device)[-1]])
    for _ in range(20):
        machine.work()  # nobody is told
        machine.boot()
        device = machine.device
        follower.boot(events_of(device))
        device.acknowledge(device.boot_id, device.events.last)
    assert len(follower.gaps) == 20
    assert all(gap[5] >= 2 for gap in follower.gaps)


def test_a_stolen_chip_makes_no_old_tag() -> None:
    """A chip is read out: no 32 bytes of it make the tag of a checkpoint that was shown before."""
    machine = Machine()
    for n in range(20):
        machine.device.emit("located", 1 + n)
    dump = bytes(machine.fram.cells)
    used = dump.rstrip(b"\0")
    checkpoints = [each for each in events_of(machine.device) if each[0] == CHECKPOINT]
    assert checkpoints
    windows = {used[at : at + 32] for at in range(len(used) - 31)}
    for event in checkpoints:
        index = struct.unpack_from("<I", event, HEAD + 8)[0]
        told = struct.pack("<I", index + 1) + event[HEAD + 12 : HEAD + 44] + event[:-16]
        assert not any(hmac(key, told)[:16] == event[-16:] for key in windows)


def test_a_host_forges_no_checkpoint() -> None:
    """The host changes an event and makes hash and checkpoint fit; without the key the tag does not."""
    machine = Machine()
    for n in range(20):
        machine.device.emit("located", 1 + n)
    events = events_of(machine.device)
    at = len(events) - 1 - [each[0] for each in reversed(events)].index(CHECKPOINT)
    forged = events[: at - 1]
    follower = Follower(SERIAL)
    follower.boot(forged)
    changed = bytearray(events[at - 1])
    changed[-1] ^= 1
    follower.boot_goes_on([bytes(changed)])
    checkpoint = bytearray(events[at])
    assert follower.hash is not None
    checkpoint[HEAD + 12 : HEAD + 44] = follower.hash
    forged += [bytes(changed), bytes(checkpoint)]
    Follower(SERIAL).boot(forged)  # hashes alone do not find it
    with pytest.raises(BrokenChain, match="tag"):
        Follower(SERIAL, FIRST_KEY).boot(forged)


def test_an_old_checkpoint_shown_again_does_not_fit() -> None:
    """The host leaves events out and shows an older checkpoint in the place of the newest."""
    machine = Machine()
    for n in range(40):
        machine.device.emit("located", 1 + n)
    events = events_of(machine.device)
    places = [at for at, each in enumerate(events) if each[0] == CHECKPOINT]
    shown = [*events[: places[-1]], events[places[-2]]]
    with pytest.raises(BrokenChain, match="checkpoint"):
        Follower(SERIAL, FIRST_KEY).boot(shown)


def test_a_host_rolled_back_to_a_backup_is_behind_the_device() -> None:
    """A journal of yesterday is whole in itself; the device's own newest checkpoint is ahead of it."""
    machine = Machine()
    machine.device.checkpoint()
    backup = events_of(machine.device)
    for n in range(20):
        machine.device.emit("located", 1 + n)
    follower = Follower(SERIAL, FIRST_KEY)
    follower.boot(backup)  # nothing is wrong with it
    anchor = machine.device.newest_checkpoint()
    assert struct.unpack_from("<I", anchor, HEAD + 8)[0] > follower.index
    assert LOST not in [each[0] for each in backup]
