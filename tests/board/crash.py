"""Exceptions thrown into the board's program from outside, at any moment: what it does when it crashes."""

import struct

from tests.board.heap import address, state_of

from sabot_simulators.rp2040.pico import Pico

PENDING = struct.pack("<h", 0)  # MP_SCHED_PENDING: the interpreter looks for what is to be done
OFTEN = 4  # one more than after which the board gives up
APART_US = 2_000_000  # until the program has begun anew


def crash(pico: Pico) -> None:
    """The program gets a RuntimeError at its next branch; nothing of it expects one."""
    exception, pending, scheduler = state_of(
        "vm.mp_emergency_exception_obj", "thread.mp_pending_exception", "vm.sched_state"
    )
    kind, arguments = address("mp_type_RuntimeError"), address("mp_const_empty_tuple_obj")
    pico.write_ram(struct.pack("<IIII", kind, 0, 0, arguments), exception)
    pico.write_ram(struct.pack("<I", 0x20000000 + exception), pending)
    pico.write_ram(PENDING, scheduler)
