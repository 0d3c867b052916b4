"""The house that a device belongs to: binding, rotation, reset statements, and the record in flash."""

from house_signed import (
    HOUSE,
    NEW_HOUSE,
    RESET_0,
    RESET_1,
    RESET_FOREIGN,
    RESET_OTHER,
    ROTATION,
    UNTIL_S,
)
from key_board import KEY, NONCE, OTHER, Board
from pair import BY_FLOOR, BY_SERVICE, SERVICE_PERSON, Pair
from world import CUT_EVERY_DEARLY, HOST_ID

from sabot_firmware.house_record import CELL, SECTORS, FlashHouseRecord
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.frame import Decoder, encode
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.house_lines import is_site
from sabot_protocol.provisioning import OPEN_S, PROVISIONED, UNPROVISIONED
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, CLEAR_TO_HOST
from sabot_simulators.chips import PowerCut, SimFlash

SITE = "MAIN"


def new_flash():
    return SimFlash(SECTORS, sector_size=512)


class HouseBoard(Board):
    """A board with a flash for the house; time goes on while a signature is checked."""

    def __init__(self):
        self.house_flash = new_flash()
        super().__init__()

    def house(self):
        return FlashHouseRecord(self.house_flash)

    def clear(self, name, *values):
        question = ClearExchange(CODEC, name, values, self.now)
        for _ in range(1000):
            out = question.poll(self.now)
            if out:
                self.port.receive(out, self.now)
            question.receive(self.port.poll(self.now))
            if question.failure or question.answer is not None:
                return question.failure or tuple(question.answer)
            self.now = ticks.add(self.now, 5)
        raise AssertionError("no answer")

    def reset(self, proof=b""):
        """The answer to a reset statement: an error's name, or (bound, house, count, accepted)."""
        said = self.clear("reset_statement", NONCE, proof)
        if isinstance(said, str):
            return said
        assert said[0] == NONCE
        return said[1:]

    def wait(self, ms):
        for _ in range(0, ms, 1000):
            self.now = ticks.add(self.now, 1000)
            self.end.tick(self.now)
            self.end.update_contact(False)


def bound(cleared=True):
    """A device of a house, whose keys were cleared at its contact."""
    board = HouseBoard()
    assert board.provision()[0] is not None
    board.end.house.write(HOUSE, SITE, 0)
    if cleared:
        board.show_presence()
        assert board.state() == UNPROVISIONED
    return board


def test_a_device_without_a_house_needs_no_statement():
    board = HouseBoard()
    assert board.reset() == (0, bytes(32), 0, 0)
    assert board.reset(RESET_0) == (0, bytes(32), 0, 0)
    board.provision()
    board.show_presence()
    assert isinstance(board.provision(OTHER), tuple)
    assert "reset_used" not in [name for name, _ in board.events()]


def test_presence_alone_gives_a_device_of_a_house_no_key():
    board = bound()
    assert board.reset() == (1, HOUSE, 0, 0)
    assert board.provision(OTHER) == "reset_required"
    assert board.state() == UNPROVISIONED


def test_the_houses_statement_lets_one_key_in():
    board = bound()
    assert board.reset(RESET_0) == (1, HOUSE, 0, 1)
    assert board.reset() == (1, HOUSE, 0, 1)
    assert isinstance(board.provision(OTHER), tuple)
    assert board.state() == PROVISIONED
    assert ("reset_used", (HOUSE, 0)) in board.events()
    assert board.reset() == (1, HOUSE, 1, 0)
    assert board.boot().reset() == (1, HOUSE, 1, 0)
    assert isinstance(board.provision(OTHER), tuple)  # the same key again, as after a lost answer
    assert board.reset() == (1, HOUSE, 1, 0)


def test_a_statement_counts_once():
    board = bound()
    board.reset(RESET_0)
    board.provision(OTHER)
    board.show_presence()
    assert board.reset(RESET_0) == "bad_proof"
    assert board.provision(KEY) == "reset_required"
    board.wait(2000)
    assert board.reset(RESET_1) == (1, HOUSE, 1, 1)
    assert isinstance(board.provision(KEY), tuple)


def test_statements_for_something_else_are_refused_and_told():
    for proof in (RESET_1, RESET_OTHER, RESET_FOREIGN, ROTATION, bytes(64), RESET_0[:63]):
        board = bound()
        assert board.reset(proof) == "bad_proof"
        assert board.provision(OTHER) == "reset_required"
        assert [name for name, _ in board.events()].count("proofs_refused") == 1
        assert board.reset(RESET_0) == "too_soon"
        board.wait(2000)
        assert board.reset(RESET_0) == (1, HOUSE, 0, 1)


def test_an_accepted_statement_does_not_outlive_its_time_nor_a_restart():
    board = bound()
    assert board.reset(RESET_0)[3] == 1
    board.wait(OPEN_S * 1000 + 1000)
    assert board.reset() == (1, HOUSE, 0, 0)
    assert board.reset(RESET_0) == "provisioning_closed"
    board.show_presence()
    assert board.provision(OTHER) == "reset_required"
    assert board.reset(RESET_0)[3] == 1
    board.show_presence()
    assert board.provision(OTHER) == "reset_required"
    assert board.reset(RESET_0)[3] == 1
    board.boot()
    assert board.provision(OTHER) == "provisioning_closed"
    board.show_presence()
    assert board.provision(OTHER) == "reset_required"


def test_statements_are_taken_only_while_the_device_waits_for_a_key():
    board = bound(cleared=False)
    assert board.reset(RESET_0) == "already_provisioned"
    board.end.provisioning.damaged = True
    assert board.reset(RESET_0) == "keys_damaged"
    assert board.reset() == (1, HOUSE, 0, 0)


def test_a_window_that_closes_while_the_signature_is_checked_stays_closed():
    board = bound()
    question = CODEC.named("reset_statement")
    frame = encode(bytes((CLEAR_TO_DEVICE, question.id)) + question.pack((NONCE, RESET_0)))
    board.port.receive(frame, board.now)
    board.port.poll(board.now)
    assert board.end.checking()
    board.wait(OPEN_S * 1000 + 1000)
    while board.end.checking():
        board.end.work()
    assert not board.end.provisioning.reset_accepted
    refused = Decoder().feed(board.port.poll(board.now))[0][0]
    assert CODEC.error(CODEC.find(refused[1]).unpack(refused[2:])[1]).name == "provisioning_closed"


def test_a_replaced_memory_does_not_make_it_anybodys():
    """A new FRAM chip, and even a new mark: the house is in flash."""
    board = bound(cleared=False)
    board.fram.cells[:] = bytes(len(board.fram.cells))
    board.boot()
    assert board.provision(OTHER) == "keys_damaged"
    board.show_presence()
    assert board.provision(OTHER) == "reset_required"
    board.flash = type(board.flash)(2, sector_size=512)
    board.boot()
    assert board.provision(OTHER) == "reset_required"


def test_a_damaged_record_lets_nobody_in_after_presence():
    board = bound()
    for at in range(0, 512, CELL):
        board.house_flash.flip(at + 20, 0)
    board.boot()
    board.show_presence()
    assert board.reset() == (1, bytes(32), 0, 0)
    assert board.reset(RESET_0) == "reset_required"
    assert board.provision(OTHER) == "reset_required"


def test_a_cut_anywhere_in_a_reset_never_lets_a_statement_count_twice():
    seen = set()
    for steps in range(0, 4000, CUT_EVERY_DEARLY):
        board = bound()
        board.reset(RESET_0)
        power = board.fram.power
        board.flash.power = board.house_flash.power = power
        power.cut_after(steps)
        try:
            board.provision(OTHER)
        except PowerCut:
            pass
        cut = power.cuts
        power.restore()
        board.boot()
        given = board.state() == PROVISIONED
        count = board.end.house.count
        assert count >= 1 if given else count == 0, (steps, given, count)
        assert FlashHouseRecord(board.house_flash).key == HOUSE
        seen.add(given)
        if not cut:
            break
    assert seen == {True, False}
    assert not cut


def test_the_record_goes_round_its_sectors_and_a_cut_leaves_the_old_or_the_new_one():
    for full in (0, 512 // CELL - 1, 512 // CELL):
        steps = 0
        while True:
            flash = new_flash()
            for count in range(full):
                FlashHouseRecord(flash).write(HOUSE, SITE, count)
            record = FlashHouseRecord(flash)
            assert record.is_bound() == bool(full)
            flash.power.cut_after(steps)
            cut = False
            try:
                record.write(NEW_HOUSE, "other site", 77)
            except PowerCut:
                cut = True
            flash.power.restore()
            found = FlashHouseRecord(flash)
            old = (HOUSE, SITE, full - 1) if full else (b"", "", 0)
            assert (found.key, found.site, found.count) in (old, (NEW_HOUSE, "other site", 77)), (full, steps)
            assert cut or found.count == 77
            steps += 23
            if not cut:
                break


class Misread(SimFlash):
    """A flash of which one reading is wrong."""

    wrong_in = 0

    def read(self, address, length):
        self.wrong_in -= 1
        return bytes(length) if not self.wrong_in else super().read(address, length)


def test_a_record_that_is_misread_before_a_write_is_not_written_over():
    """A cell with the number of the one that was misread would count less than that one, or as much."""
    for wrong_in in range(1, 14):
        flash = Misread(SECTORS, sector_size=512)
        for count in range(3):
            FlashHouseRecord(flash).write(HOUSE, SITE, count)
        record = FlashHouseRecord(flash)
        flash.wrong_in = wrong_in
        try:
            record.write(HOUSE, SITE, 3)
        except OSError:
            assert FlashHouseRecord(flash).count in (2, 3), wrong_in
            record = FlashHouseRecord(flash)
            record.write(HOUSE, SITE, 4)
            assert FlashHouseRecord(flash).count == 4, wrong_in
        else:
            assert FlashHouseRecord(flash).count == 3, wrong_in


# -- in a session --------------------------------------------------------------------------------------


def told(pair, name):
    found = []
    for n in range(pair.device.events.first, pair.device.events.last + 1):
        message, _, body = pair.device.events.get(n)
        if CODEC.find(message).name == name:
            found.append(CODEC.find(message).unpack(body[14:]))
    return found


def test_service_binds_a_device_and_nobody_else():
    pair = Pair().people().connect()
    first = (HOUSE, SITE, 0, 0, b"")
    assert pair.ask("house_key", *first)[0] == "wrong_role"
    assert pair.ask("house_key", *first, by=BY_FLOOR)[0] == "wrong_role"
    assert pair.ask("house_key", bytes(32), SITE, 0, 0, b"", by=BY_SERVICE) == ("bad_field", (0,))
    assert pair.ask("house_key", HOUSE, 'MA"IN', 0, 0, b"", by=BY_SERVICE) == ("bad_field", (1,))
    assert not pair.device.house.is_bound()
    assert pair.ask("house_key", *first, by=BY_SERVICE) == ("ok", ())
    assert (pair.device.house.key, pair.device.house.site) == (HOUSE, SITE)
    assert pair.ask("house_key", *first, by=BY_SERVICE) == ("ok", ())
    assert told(pair, "house_changed") == [(HOUSE, SITE, HOST_ID, SERVICE_PERSON)]
    assert pair.ask("house_key", HOUSE, "CLUB", 0, 0, b"", by=BY_SERVICE) == ("ok", ())
    assert pair.device.house.site == "CLUB"


def test_while_a_device_is_provisioned_its_owner_binds_it_once():
    pair = Pair().people().connect()
    pair.device.open_slots()
    assert pair.ask("house_key", HOUSE, SITE, 0, 0, b"") == ("ok", ())
    assert pair.ask("house_key", HOUSE, "CLUB", 0, 0, b"")[0] == "wrong_role"
    assert pair.ask("house_key", NEW_HOUSE, SITE, 1, UNTIL_S, ROTATION)[0] == "wrong_role"


def test_only_the_old_key_names_another_one():
    pair = Pair().people().connect()
    pair.device.house.write(HOUSE, SITE, 5)
    wrong = ((2, UNTIL_S, ROTATION), (1, 0, ROTATION), (1, UNTIL_S, RESET_0), (0, 0, b""))
    for number, until_s, proof in wrong:
        said = pair.ask("house_key", NEW_HOUSE, SITE, number, until_s, proof, by=BY_SERVICE)
        assert said == ("bad_proof", ())
        assert pair.device.house.key == HOUSE
    assert pair.ask("house_key", NEW_HOUSE, SITE, 1, UNTIL_S, ROTATION, by=BY_SERVICE) == ("ok", ())
    assert (pair.device.house.key, pair.device.house.count) == (NEW_HOUSE, 5)
    assert told(pair, "house_changed") == [(NEW_HOUSE, SITE, HOST_ID, SERVICE_PERSON)]


def test_other_requests_are_answered_while_a_signature_is_checked():
    pair = Pair().people().connect()
    pair.device.house.write(HOUSE, SITE, 0)
    message = CODEC.named("house_key")
    body = message.pack((NEW_HOUSE, SITE, 1, UNTIL_S, ROTATION))
    slow = pair.host.request(message.id, body, pair.now, by=BY_SERVICE)
    status = None
    for _ in range(60):
        out = pair.host.poll(pair.now)
        if out:
            pair.port.receive(out, pair.now)
        pair.host.receive(pair.port.poll(pair.now), pair.now)
        if pair.device.checking() and status is None:
            status = pair.host.request(CODEC.named("status").id, b"", pair.now)
    assert pair.device.checking()
    pair.heard += pair.host.take_notifications()
    assert pair.answer(status)[0] == "ok"
    pair.settle()
    assert pair.answer(slow) == ("ok", ())


def test_an_authority_does_not_outlive_its_session_while_a_signature_is_checked():
    pair = Pair().people().connect()
    pair.device.house.write(HOUSE, SITE, 0)
    message = CODEC.named("house_key")
    body = message.pack((NEW_HOUSE, SITE, 1, UNTIL_S, ROTATION))
    pair.host.request(message.id, body, pair.now, by=BY_SERVICE)
    for _ in range(10):
        pair.port.receive(pair.host.poll(pair.now), pair.now)
        pair.host.receive(pair.port.poll(pair.now), pair.now)
    assert pair.device.checking()
    pair.port.close()
    while pair.device.checking():
        pair.device.work()
    assert pair.device.house.key == HOUSE


def test_flash_is_not_written_while_something_moves():
    pair = Pair().people().connect()
    pair.shoe.idle = lambda: False
    number = pair.host.request(
        CODEC.named("house_key").id, CODEC.named("house_key").pack((HOUSE, SITE, 0, 0, b"")), pair.now,
        by=BY_SERVICE,
    )  # fmt: skip
    pair.settle()
    assert not pair.device.house.is_bound()
    pair.shoe.idle = lambda: True
    pair.wait(500)
    assert pair.answer(number) == ("ok", ())
    assert pair.device.house.key == HOUSE


def test_a_record_that_was_lost_is_set_anew_under_a_count_that_nobody_signed_for():
    pair = Pair().people().connect()
    pair.device.house.damaged = True
    assert pair.ask("house_key", HOUSE, SITE, 0, 0, b"", by=BY_SERVICE) == ("ok", ())
    assert pair.device.house.count > 1000


def test_names_of_sites():
    assert is_site("MAIN")
    assert is_site("Club 7, hall A")
    for bad in ("", " MAIN", "MAIN ", 'M"', "M\\", "Z\u00fcrich", "a\n"):
        assert not is_site(bad)




def test_a_question_sent_again_and_refused_otherwise_does_not_hide_the_first_answer():
    """A statement is checked for seconds; the host sends it again, and that is refused as too soon."""
    question = ClearExchange(CODEC, "reset_statement", (NONCE, bytes(64)), 0)
    refused = CODEC.named("refused")
    for error in ("bad_proof", "too_soon"):
        payload = refused.pack((NONCE, CODEC.error_named(error).id))
        question.receive(bytes(encode(bytes((CLEAR_TO_HOST, refused.id)) + payload)))
    assert question.failure == "bad_proof"
