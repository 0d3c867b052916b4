"""What must be true at the end of a run: of events, commands, calls and memory."""

import gc
from collections import Counter
from statistics import median
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from sabot_driver.connection import UNRECORDED
from sabot_driver.journal import Journal, JournalEntry
from sabot_protocol.codec import enum_number
from sabot_simulators.whole_system.cable import Quality
from sabot_simulators.whole_system.table_pc import TablePc
from sabot_simulators.whole_system.watched_program import Life
from sabot_simulators.whole_system.world import WholeSystem

SECOND_US = 1_000_000
QUIET_S = 180  # within which everything is caught up, whatever was lost
LATE_US = 3 * SECOND_US  # a call may end so much after its time-out
FEW = 3  # sizes at each end of a run that are compared
GROWTH, SLACK = 1.25, 300
MEMORY_LOST = enum_number("GapReason", "memory_lost")


def settle(world: WholeSystem) -> None:
    """End all troubles, and let every computer hear everything."""
    world.note("the quiet end")
    world.troubles.over = True
    world.usb.quality = world.uart.quality = Quality()
    disk = world.pc.disk
    disk.full = disk.failing = False
    disk.slow_us = disk.fails_after = None
    disk.locked_until_us = 0
    world.board.fram.cut_after = None
    world.power_on()
    world.plug_usb()
    world.uart.plug()
    pcs = [pc for pc in world.pcs if pc is world.pc or world.scenario.observer]
    for pc in pcs:
        pc.held_off = False
        pc.start()
    for _ in range(QUIET_S):
        world._pass(SECOND_US)
        if world.machine.powered and all(caught_up(world, pc) for pc in pcs):
            return
    for pc in pcs:
        if not caught_up(world, pc):
            who = "the table PC" if pc is world.pc else "the observer"
            why = None if pc.connection is None else pc.connection.problem
            world.problem(f"{who} has not caught up within {QUIET_S} s: {why}")


def caught_up(world: WholeSystem, pc: TablePc) -> bool:
    """Whether a computer has a session and everything that the device reported in this life."""
    life = world.truth.life
    if life is None or pc.journal is None or not pc.up or pc.loop is None or not pc.loop.idle():
        return False
    return pc.journal.position() == (*life.names, len(life.emitted))


def check_all(world: WholeSystem) -> None:
    """Everything that can be told at the end."""
    for pc in world.pcs:
        if pc.journal is not None:
            check_events(world, pc.journal)
    check_calls(world)
    check_commands(world)
    check_sizes(world)
    if world.forced_collections:
        world.problem(f"{world.forced_collections} collections of garbage came by themselves")
    for crash in world.truth.crashes:
        world.problem(f"the board's program failed: {crash}")
    for wrong in world.oracle.wrong:
        if wrong.unseen is None:
            world.problem(f"wrong claim: {wrong.what}: {'+'.join(sorted(wrong.faults)) or 'no fault'}")
    for problem in world.files.problems:
        world.problem(problem)


# -- events -------------------------------------------------------------------------------------


def check_events(world: WholeSystem, journal: Journal) -> None:
    """The journal has each event once, in order, as it was emitted; what is missing is in an exact gap."""
    lives = world.truth.lives
    by_names = {life.names: index for index, life in enumerate(lives)}
    at = (0, 0)  # the last event that is accounted for: index of its life, number
    seen: Counter[tuple[int, int]] = Counter()
    for row in journal.entries():
        index = by_names.get((row.memory_id, row.boot_id))
        if index is None:
            world.problem(f"the journal has row {row.id} of a boot that never was: {row.boot_id}")
            return
        if row.is_gap:
            _check_gap(world, row, at, (index, row.n - 1))
            at = (index, row.n - 1)
            continue
        missing = _between(lives, at, (index, row.n)) - 1
        if missing > 0:
            world.problem(f"{missing} events before {(row.boot_id, row.n)} are missing without a gap")
        elif missing < 0 and at != (index, row.n - 1):
            world.problem(f"event {(row.boot_id, row.n)} came after {at}")
        at = (index, row.n)
        seen[at] += 1
        emitted = lives[index].emitted
        if row.n > len(emitted) or emitted[row.n - 1] != (row.message, row.body):
            world.problem(f"event {(row.boot_id, row.n)} in the journal is not what was emitted")
    for where, times in seen.items():
        if times > 1:
            world.problem(f"event {where} is in the journal {times} times")


def _between(lives: list[Life], after: tuple[int, int], upto: tuple[int, int]) -> int:
    """How many events were made after one, up to and including another."""
    if after[0] == upto[0]:
        return upto[1] - after[1]
    made = len(lives[after[0]].emitted) - after[1]
    return made + sum(len(life.emitted) for life in lives[after[0] + 1 : upto[0]]) + upto[1]


def _check_gap(world: WholeSystem, row: JournalEntry, at: tuple[int, int], upto: tuple[int, int]) -> None:
    lives = world.truth.lives
    lost = _between(lives, at, upto)
    if row.message == MEMORY_LOST or row.gap_size is None:
        return
    uncertain = sum(life.emit_broken_off for life in lives[at[0] : upto[0]])
    stores = [life.events for life in lives[at[0] : upto[0] + 1]]
    unsaved = any(store.unsaved for store in stores if store is not None)
    if not lost <= row.gap_size <= lost + uncertain and not unsaved:
        world.problem(f"a gap of {row.gap_size} before {(row.boot_id, row.n)}, and {lost} events are lost")


# -- commands -----------------------------------------------------------------------------------


def check_calls(world: WholeSystem) -> None:
    """Every call has ended within its time-out."""
    for pc in world.pcs:
        for call in pc.calls:
            if call.killed:
                continue
            latest_us = call.at_us + call.timeout_ms * 1000 + LATE_US
            if call.ended_us is None and world.machine.agenda.now_us > latest_us:
                world.problem(f"call {call.number} ({call.message.NAME}) never ended")
            elif call.ended_us is not None and call.ended_us > latest_us:
                late = (call.ended_us - latest_us + LATE_US) / SECOND_US
                world.problem(f"call {call.number} ({call.message.NAME}) ended {late:.1f} s too late")


def check_commands(world: WholeSystem) -> None:
    """Each command was executed at most once, and as often as its caller and the journal were told."""
    done: Counter[tuple[bytes, int]] = Counter()
    for each in world.truth.executions:
        if each.done:
            done[each.host_id, each.number] += 1
    for (_, number), times in done.items():
        if times > 1:
            world.problem(f"command {number} was executed {times} times")
    pc = world.pc
    for call in pc.calls:
        if call.killed or not call.future.done() or call.message.KIND != "command":
            continue
        if call.future.exception() is None and not done[call.host_id, call.number]:
            world.problem(f"command {call.number} ({call.message.NAME}) was answered and never executed")
    if pc.journal is None:
        return
    host_id = pc.journal.host_id
    records = pc.journal.commands()
    known = {record.number for record in records}
    for call in pc.calls:
        recorded = call.message.KIND == "command" and call.message.NAME not in UNRECORDED
        if call.killed and recorded and call.number not in known and done[call.host_id, call.number]:
            world.problem(f"command {call.number} was executed and is not in the journal")
    for record in records:
        times = done[host_id, record.number]
        if record.outcome == "done" and not times:
            world.problem(f"command {record.number} is done in the journal and was never executed")
        if record.outcome == "not_executed" and times:
            world.problem(f"command {record.number} is not_executed in the journal and was executed")


# -- memory -------------------------------------------------------------------------------------


def note_sizes(world: WholeSystem) -> None:
    """Count the objects of the device and of the driver, at a moment between two rounds."""
    life, controller, connection = world.truth.life, world.truth.controller, world.pc.connection
    if life is not None and controller is not None and connection is not None:
        world.sizes.append((objects_of(life.protocol, controller), objects_of(connection)))


def check_sizes(world: WholeSystem) -> None:
    """Neither the device nor the driver holds more and more objects."""
    if len(world.sizes) < 3 * FEW:
        return
    for who, sizes in zip(("device", "driver"), zip(*world.sizes, strict=True), strict=True):
        early, late = median(sizes[:FEW]), median(sizes[-FEW:])
        if late > early * GROWTH + SLACK:
            world.problem(f"the {who} holds {late} objects, earlier {early}")


def objects_of(*roots: object) -> int:
    """How many objects these hold, programs, hardware and classes apart."""
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        waiting.extend(other for other in gc.get_referents(each) if _counts(other))
    return len(seen)


def _counts(each: object) -> bool:
    kind = type(each)
    if isinstance(each, type | ModuleType | FunctionType | MethodType | CodeType | int | str):
        return False
    module = kind.__module__
    return not module.startswith(("sabot_simulators", "sabot_firmware.boards", "sqlite3", "random"))
