"""One request with an extreme value that stops the device, or uses up its numbers, for ever."""

from pair import Pair
from tests.attacks.by_hand import FLOORS_KEY, KEY, NOON, ROLE, SLOT, TICK_MS, Table
from tests.machine.tables import Table as MachineTable

from sabot_firmware.hardware import BLUE, RED
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.provisioning import HOLD_MS
from sabot_protocol.session import slot_key

LAST = 0xFFFFFFFF
FLOOR = (SLOT, FLOORS_KEY)
HOURS_S = 8 * 3600
REASON = enum_number("RemoveReason", "floor_order")


def _left_s(table: Table) -> list[int]:
    said, values = table.outcome("decks")
    assert said == "ok"
    return list(values[2])


def test_a_clock_at_the_end_of_time_stops_nothing(floor: Table) -> None:
    """After set_clock(0xffffffff), with the device key, each `decks` ended the program, also after a restart.

    A deck's age did not fit the answer's field, nobody caught the error, and the age was kept.
    """
    assert floor.outcome("register_deck", 1, RED, NOON, by=FLOOR)[0] == "ok"
    assert floor.outcome("set_clock", LAST, 0) == ("wrong_role", (1,))
    assert floor.outcome("set_clock", LAST, 0, by=FLOOR)[0] == "ok"
    assert _left_s(floor)[0] < 0
    assert floor.outcome("set_clock", NOON + 60, 0)[0] == "ok"
    assert _left_s(floor)[0] < 0  # no clock makes a deck younger: it is changed
    assert floor.outcome("remove_deck", 1, REASON, by=FLOOR)[0] == "ok"
    assert floor.outcome("register_deck", 2, RED, NOON + 60, by=FLOOR)[0] == "ok"
    assert abs(_left_s(floor)[0] - HOURS_S) < 60


def test_the_first_time_of_a_boot_is_taken_and_a_wrong_one_can_be_corrected(floor: Table) -> None:
    """A device that was off for weeks must get its time: there the wrong time is taken, and stops nothing."""
    assert floor.outcome("register_deck", 1, RED, NOON, by=FLOOR)[0] == "ok"
    floor.restart()
    assert floor.outcome("set_clock", LAST, 0)[0] == "ok"
    assert _left_s(floor)[0] < 0
    floor.restart()
    assert floor.outcome("set_clock", NOON + 60, 0)[0] == "ok"
    assert floor.outcome("register_deck", 2, BLUE, NOON + 60, by=FLOOR)[0] == "ok"
    assert abs(_left_s(floor)[1] - HOURS_S) < 60


def test_many_small_steps_are_a_leap_of_the_clock_too(floor: Table) -> None:
    """A step of 24 h needed no person, and after it the next one did not either: a year took 365 of them."""
    day_s = 24 * 3600
    assert floor.outcome("set_clock", NOON + day_s, 0)[0] == "ok"
    assert floor.outcome("set_clock", NOON + 2 * day_s, 0) == ("wrong_role", (1,))
    assert floor.outcome("set_clock", NOON, 0)[0] == "ok"  # back again
    assert floor.outcome("set_clock", NOON + day_s + 3600, 0) == ("wrong_role", (1,))
    assert floor.outcome("set_clock", NOON - 5 * day_s, 0)[0] == "ok"  # an earlier time counts from now on
    assert floor.outcome("set_clock", NOON - 3 * day_s, 0) == ("wrong_role", (1,))
    assert floor.outcome("set_clock", NOON + 10 * day_s, 0, by=FLOOR)[0] == "ok"
    assert floor.outcome("set_clock", NOON + 11 * day_s, 0)[0] == "ok"
    assert floor.outcome("set_clock", NOON + 12 * day_s, 0) == ("wrong_role", (1,))
    device = Pair().device
    device.tick(ticks.add(device.now(), 2 * 1000 * day_s))  # two days after power-up
    device.set_clock(NOON, 0)
    assert device.is_leap(NOON + 2 * day_s)
    device.tick(ticks.add(device.now(), 2 * 1000 * day_s))
    assert not device.is_leap(NOON + 2 * day_s)


def test_a_roller_that_has_gone_far_stops_nothing(table: Table) -> None:
    """After about 358 shuffles without a power cut, `sensors`, which any role may ask, ended the program.

    The feed roller had gone 2**31 um, which the answer's field cannot say.
    """
    for gone_um in (2**29, 2**31, 2**33 + 5):
        table.device.machine._rollers[1].travelled_um = gone_um
        said, (_, _, rollers) = table.outcome("sensors")
        assert said == "ok"
        assert (rollers[1] - gone_um) % 2**30 == 0


def test_one_number_does_not_use_up_the_numbers_of_decks(floor: Table) -> None:
    """register_deck(0xffffffff) left no number for any later deck, and physical presence did not help."""
    for far in (LAST, 0x80000000):
        assert floor.outcome("register_deck", far, RED, NOON, by=FLOOR) == ("bad_field", (0,))
    assert floor.outcome("register_deck", 5, RED, NOON, by=FLOOR)[0] == "ok"
    assert floor.outcome("register_deck", 5 + 4097, BLUE, NOON, by=FLOOR) == ("bad_field", (0,))
    assert floor.outcome("register_deck", 5 + 4096, BLUE, NOON, by=FLOOR)[0] == "ok"


def test_one_number_does_not_use_up_the_numbers_of_rounds() -> None:
    """The device key was enough: after a round numbered 0xffffffff the device opened no round any more."""
    machine = MachineTable(1, hands=2)
    machine.open_table()
    deck = machine.device.controller.shoe.deck
    for far in (LAST, 0x80000000):
        assert machine.refused("open_round", far, deck) == "bad_field"
    machine.device.command("open_round", 7, deck)
    machine.device.command("void_round", 7, enum_number("VoidReason", "stopped"))
    assert machine.refused("simulate_round", 8, deck) in ("other_method", "wrong_state")
    kept = machine.device.controller.persistent
    assert kept.round_id == 7
    kept.forget_numbers()
    assert kept.round_id == 0


def test_presence_lets_the_numbers_begin_anew(floor: Table) -> None:
    """Numbers of rounds and decks outlived the reset by presence, although the memory id was a new one."""
    assert floor.outcome("register_deck", 0x7FFFFFFF, RED, NOON, by=FLOOR)[0] == "ok"
    assert floor.outcome("remove_deck", 0x7FFFFFFF, REASON, by=FLOOR)[0] == "ok"
    before = floor.clear("identify")[5]
    for closed, ms in ((False, 100), (True, HOLD_MS + 500), (False, 100)):
        floor.device.machine.hold_contact(closed)
        for _ in range(ms // TICK_MS):
            floor.turn()
    assert floor.clear("identify")[5] != before
    floor.provision(KEY)
    assert floor.outcome("set_clock", NOON, 0)[0] == "ok"
    serial = floor.clear("identify")[8]
    assert floor.outcome("set_key", SLOT, ROLE, 1, slot_key(FLOORS_KEY, serial, SLOT))[0] == "ok"
    assert floor.outcome("register_deck", 1, RED, NOON, by=FLOOR)[0] == "ok"
