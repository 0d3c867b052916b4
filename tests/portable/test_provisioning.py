"""Whether a device has its keys: keys_damaged from each cause, the mark in flash, physical presence."""

from key_board import (
    KEY,
    KEYS_AT,
    KEYS_DAMAGED_FLAG,
    KEYS_SIZE,
    OTHER,
    PROVISIONED_FLAG,
    SECTOR,
    Board,
    new_flash,
)
from pair import Pair
from world import CUT_EVERY, SERIAL

from sabot_firmware.provisioning_mark import CELL, SECTORS, FlashProvisioningMark
from sabot_protocol import ticks
from sabot_protocol.key_store import KeyStore
from sabot_protocol.provisioning import (
    CLEARED,
    GIVEN,
    HOLD_MS,
    KEYS_DAMAGED,
    NEVER,
    OPEN_S,
    PROVISIONED,
    UNPROVISIONED,
)
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.chips import PowerCut, SimFlash


def provisioned():
    board = Board()
    assert board.provision()[0] is not None
    assert board.state() == PROVISIONED
    return board


def damage(board, how):
    """A provisioned board after something has happened to its critical memory; rebooted."""
    if how == "damaged":
        for at in range(KEYS_AT, KEYS_AT + 2 * (9 + KEYS_SIZE)):
            board.fram.flip(at, 3)
    elif how == "blank":
        board.fram.cells[:] = bytes(len(board.fram.cells))
    elif how == "absent":
        board.fram.failing = 1 << 30
    elif how == "read_only":
        board.fram.deaf = True
    return board.boot(crashed=how == "crashes")


CAUSES = ("damaged", "blank", "absent", "read_only", "crashes")


def test_each_cause_is_told_and_everything_else_is_refused():
    for how in CAUSES:
        board = damage(provisioned(), how)
        assert board.state() == KEYS_DAMAGED, how
        assert board.flags() & (KEYS_DAMAGED_FLAG | PROVISIONED_FLAG) == KEYS_DAMAGED_FLAG, how
        assert board.clear("identify")[8] == SERIAL
        for key in (KEY, OTHER):
            assert board.provision(key) == "keys_damaged", how
        assert board.hello() == "keys_damaged", how
        assert board.port.link is None


def test_damaged_keys_are_told_also_where_the_mark_is_lost():
    board = provisioned()
    board.flash = new_flash()
    assert damage(board, "damaged").state() == KEYS_DAMAGED
    assert board.provision(OTHER) == "keys_damaged"


def test_what_is_mended_by_itself_brings_the_keys_back():
    for how in ("absent", "read_only", "crashes"):
        board = damage(provisioned(), how)
        board.fram.failing, board.fram.deaf = 0, False
        board.boot()
        assert board.state() == PROVISIONED, how
        assert board.provision(OTHER) == "already_provisioned", how


def test_a_new_device_needs_no_contact_and_keeps_its_key():
    board = Board()
    assert board.state() == UNPROVISIONED
    assert board.flags() & (KEYS_DAMAGED_FLAG | PROVISIONED_FLAG) == 0
    assert FlashProvisioningMark(board.flash).read() == NEVER
    board.hold(3 * OPEN_S * 1000, False, 1000)
    board.boot()
    assert board.provision()[0] is not None
    assert FlashProvisioningMark(board.flash).read() == GIVEN
    assert board.boot().state() == PROVISIONED


def test_a_key_whose_mark_was_cut_off_is_marked_at_the_next_boot():
    board = Board()
    KeyStore(board.memory()).set(DEVICE, KEY)
    assert board.boot().state() == PROVISIONED
    assert FlashProvisioningMark(board.flash).read() == GIVEN


def test_presence_clears_the_keys_and_opens_provisioning():
    for how in ("none", "damaged", "blank", "crashes"):
        board = provisioned() if how == "none" else damage(provisioned(), how)
        before = board.end.memory_id
        was = PROVISIONED if how == "none" else KEYS_DAMAGED
        assert board.state() == was
        board.show_presence()
        if how == "crashes":
            assert board.end.restart_required
            board.boot(opened=True)
        assert ("presence_shown", (was, UNPROVISIONED)) in board.events(), how
        assert board.state() == UNPROVISIONED
        assert board.end.memory_id != before
        assert FlashProvisioningMark(board.flash).read() == CLEARED
        assert KeyStore(board.memory()).get(DEVICE) is None
        assert board.provision(OTHER)[0] is not None, how
        board.boot()
        assert board.state() == PROVISIONED
        assert board.end.keys.get(DEVICE) == OTHER


def test_provisioning_that_was_used_does_not_end_a_second_time():
    """A key was taken in time: nothing is told when the time would have been over."""
    board = provisioned()
    board.show_presence()
    assert board.provision(OTHER)[0] is not None
    board.hold((OPEN_S + 10) * 1000, False, 1000)
    assert board.state() == PROVISIONED
    assert "provisioning_ended" not in [name for name, _ in board.events()]


def test_memory_that_takes_nothing_stays_damaged_whoever_is_there():
    for how in ("absent", "read_only"):
        board = damage(provisioned(), how)
        board.show_presence()
        assert board.events()[-1] == ("presence_shown", (KEYS_DAMAGED, KEYS_DAMAGED))
        assert board.provision(OTHER) == "keys_damaged"


def test_the_contact_must_be_held_for_five_seconds_without_a_break():
    board = provisioned()
    board.hold(100, False)
    for _ in range(3):
        board.hold(HOLD_MS - 50)
        board.hold(50, False)
    assert board.state() == PROVISIONED
    board.hold(HOLD_MS)
    assert board.state() == PROVISIONED  # the first look starts the time
    board.hold(50)
    assert board.state() == UNPROVISIONED


def test_a_contact_that_is_stuck_clears_nothing_and_a_long_hold_counts_once():
    board = provisioned()
    board.hold(10 * HOLD_MS)
    assert board.state() == PROVISIONED
    board.hold(50, False)
    board.hold(HOLD_MS + 100)
    assert board.provision(OTHER)[0] is not None
    board.hold(10 * HOLD_MS)
    assert board.state() == PROVISIONED
    board.boot()
    board.hold(10 * HOLD_MS)
    assert board.state() == PROVISIONED


def test_provisioning_closes_after_ten_minutes_and_stays_closed_over_a_restart():
    board = provisioned()
    board.show_presence()
    board.hold(OPEN_S * 1000 - 2000, False, 500)
    assert board.provision(bytes(32)) == "bad_proof"  # still open
    board.hold(3000, False, 500)
    assert board.events()[-1] == ("provisioning_ended", ())
    assert board.provision(OTHER) == "provisioning_closed"
    assert board.boot().provision(OTHER) == "provisioning_closed"
    assert board.state() == UNPROVISIONED
    board.fram.cells[:] = bytes(len(board.fram.cells))  # another chip does not open it either
    assert board.boot().provision(OTHER) == "provisioning_closed"
    board.show_presence()
    assert board.provision(OTHER)[0] is not None


def test_a_restart_within_the_ten_minutes_closes_provisioning():
    board = provisioned()
    board.show_presence()
    assert board.boot().provision(OTHER) == "provisioning_closed"


def test_the_chip_holds_no_key_that_was_removed_changed_or_cleared():
    def there(key):
        return key in bytes(board.fram.cells)

    board = provisioned()
    board.end.keys.set(3, b"f" * 32, 3, 1)
    board.end.keys.set(4, b"s" * 32, 4, 2)
    board.end.keys.remove(3)
    assert there(KEY)
    assert there(b"s" * 32)
    assert not there(b"f" * 32)
    board.end.keys.set(DEVICE, OTHER)
    assert there(OTHER)
    assert not there(KEY)
    assert board.boot().end.keys.slots() == [DEVICE, 4]
    board.show_presence()
    assert not there(OTHER)
    assert not there(b"s" * 32)
    assert board.boot().end.keys.slots() == []


def test_presence_on_a_new_device_is_no_harm():
    board = Board()
    board.show_presence()
    assert board.events()[-1] == ("presence_shown", (UNPROVISIONED, UNPROVISIONED))
    assert board.provision()[0] is not None


def test_presence_ends_the_sessions_and_what_the_device_knew_of_commands():
    pair = Pair().connect()
    assert pair.ask("locate", 3)[0] == "ok"
    host_id = pair.port.host_id
    assert pair.device.ledger.newest(host_id)
    pair.device.update_contact(False)
    for _ in range(120):
        pair.now = ticks.add(pair.now, 50)
        pair.device.tick(pair.now)
        pair.device.update_contact(True)
    assert pair.port.link is None
    assert pair.device.sessions == []
    assert pair.device.owner is None
    assert pair.device.keys.get(DEVICE) is None
    assert not pair.device.ledger.newest(host_id)


def test_a_power_cut_anywhere_in_presence_never_leaves_an_open_device():
    """The keys are there, or the device says that they are damaged, or it is cleared and closed."""
    outcomes = {}
    for steps in range(0, 4000, CUT_EVERY):
        board = provisioned()
        board.hold(100, False)
        board.hold(HOLD_MS)
        board.fram.power.cut_after(steps)
        board.flash.power = board.fram.power
        try:
            board.hold(200)
        except PowerCut:
            pass
        cut = board.fram.power.cuts
        board.fram.power.restore()
        board.boot()
        answer = board.provision(OTHER)
        assert answer in ("already_provisioned", "keys_damaged", "provisioning_closed"), (steps, answer)
        outcomes[answer] = outcomes.get(answer, 0) + 1
        if not cut:
            break
    assert len(outcomes) == 3, outcomes
    assert not cut


def test_a_power_cut_anywhere_in_provisioning_leaves_a_new_device_or_one_with_its_key():
    states = set()
    for steps in range(0, 4000, CUT_EVERY):
        board = Board()
        board.fram.power.cut_after(steps)
        board.flash.power = board.fram.power
        try:
            board.provision()
        except PowerCut:
            pass
        cut = board.fram.power.cuts
        board.fram.power.restore()
        board.boot()
        states.add(board.state())
        if not cut:
            break
    assert states == {UNPROVISIONED, PROVISIONED}
    assert not cut


def test_the_mark_goes_round_its_two_sectors_and_is_never_lost():
    flash = new_flash()
    for number in range(3 * flash.sector_size // CELL):
        mark = FlashProvisioningMark(flash)
        assert mark.read() == (NEVER if not number else GIVEN if number % 2 else CLEARED)
        mark.write(CLEARED if number % 2 else GIVEN)
    assert sum(flash.erases) >= 2


def test_a_cut_while_the_mark_is_written_leaves_the_old_or_the_new_one():
    for full in (0, SECTOR // CELL - 1, SECTOR // CELL):
        steps = 0
        while True:
            flash = new_flash()
            for _ in range(full):
                FlashProvisioningMark(flash).write(GIVEN)
            mark = FlashProvisioningMark(flash)
            flash.power.cut_after(steps)
            cut = False
            try:
                mark.write(GIVEN)
            except PowerCut:
                cut = True
            flash.power.restore()
            found = FlashProvisioningMark(flash).read()
            assert found == GIVEN or (not full and found == NEVER and steps == 0), (full, steps, found)
            FlashProvisioningMark(flash).write(CLEARED)
            assert FlashProvisioningMark(flash).read() == CLEARED
            steps += 1
            if not cut:
                break


def test_an_erase_that_failed_does_not_cost_the_mark_at_the_next_try():
    """The second try erased the full sector, the only one that held the mark."""
    flash = new_flash()
    mark = FlashProvisioningMark(flash)
    for _ in range(SECTOR // CELL):
        mark.write(GIVEN)
    for _ in range(3):
        flash.failing = 1
        try:
            mark.write(CLEARED)
            raise AssertionError("an erase that failed was not told")
        except OSError:
            pass
        assert flash.erases == [0, 0]
        assert FlashProvisioningMark(flash).read() == GIVEN
    mark.write(CLEARED)
    assert flash.erases == [0, 1]
    assert FlashProvisioningMark(flash).read() == CLEARED


class Misread(SimFlash):
    """A flash whose next reading is wrong, once."""

    misread = False

    def read(self, address, length):
        data = super().read(address, length)
        if self.misread:
            self.misread = False
            return bytes(length)
        return data


def test_a_mark_that_was_misread_once_does_not_outlive_the_next_one():
    """Both cells had the same sequence number, and the first one counted."""
    flash = Misread(SECTORS, sector_size=SECTOR)
    mark = FlashProvisioningMark(flash)
    mark.write(GIVEN)
    flash.misread = True
    try:
        mark.write(CLEARED)
        raise AssertionError("a mark that is not there was not told")
    except OSError:
        pass
    mark.write(GIVEN)
    assert FlashProvisioningMark(flash).read() == GIVEN


def test_a_mark_that_cannot_be_read_is_no_new_device():
    flash = new_flash()
    flash.failing = 1 << 30
    assert FlashProvisioningMark(flash).read() == GIVEN
    flash = new_flash()
    FlashProvisioningMark(flash).write(GIVEN)
    flash.flip(4, 0)
    assert FlashProvisioningMark(flash).read() == GIVEN


def test_a_damaged_record_of_the_core_draws_a_new_memory_id():
    board = provisioned()
    before, key = board.end.memory_id, board.end.keys.get(DEVICE)
    board.end.renew_memory_id()
    assert board.end.memory_id != before
    after = board.end.memory_id
    board.boot()
    assert board.end.memory_id == after
    assert board.end.keys.get(DEVICE) == key
