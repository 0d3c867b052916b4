"""The grid: while cards go into secret places, bytes pass only at ticks, and each tick has a budget."""

from pair import Pair, Shoe, frames, payload
from world import Rng

from sabot_protocol import frame, grid, ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.device_port import DevicePort
from sabot_protocol.link import ACK_DELAY_MS, MIN_RTO_MS
from sabot_protocol.notifications import EventReceived, RequestAnswered
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, CLEAR_TO_HOST

IDENTIFY = bytes(frame.encode(bytes((CLEAR_TO_DEVICE, CODEC.named("identify").id))))
BEGAN = 1000  # where a pair's clock begins, and its grid
STATUS = CODEC.named("status").id


class Secret(Shoe):
    """A shoe that says itself when cards go into secret places."""

    secret = False

    def on_grid(self) -> bool:
        return self.secret


class OnGrid(Pair):
    """A pair whose time passes a millisecond at a time; notes when the device spoke, and what."""

    def __init__(self) -> None:
        super().__init__()
        self.shoe = Secret()
        self.device.executor = self.shoe
        self.spoke: list = []  # type: ignore[type-arg]

    def pass_ms(self, ms: int) -> None:
        for _ in range(ms):
            self.now = ticks.add(self.now, 1)
            out = self.host.poll(self.now)
            if out:
                self.port.receive(out, self.now)
            back = self.port.poll(self.now)
            if back:
                self.spoke.append((self.now, back))
                self.host.receive(back, self.now)
            self.heard += self.host.take_notifications()


def on_tick(at: int) -> bool:
    return (at - BEGAN) % grid.PERIOD_MS == 0


def test_off_the_grid_an_answer_comes_at_once():
    pair = OnGrid()
    pair.port.receive(IDENTIFY, pair.now)
    assert payload(pair.port.poll(pair.now))[0] == CLEAR_TO_HOST


def test_bytes_are_taken_at_one_tick_and_answered_at_the_second_one_after_it():
    for wait in (0, 1, 7, 49, 50, 51, 99):
        pair = OnGrid()
        pair.shoe.secret = True
        pair.pass_ms(3 + wait)
        asked = pair.now
        pair.port.receive(IDENTIFY, pair.now)
        assert pair.device.owner is None
        pair.pass_ms((1 + grid.ANSWERED_AFTER) * grid.PERIOD_MS)
        assert len(pair.spoke) == 1
        at, said = pair.spoke[0]
        assert len(frames(said)) == 1
        taken = BEGAN + ((asked - BEGAN) // grid.PERIOD_MS + 1) * grid.PERIOD_MS
        assert at == taken + grid.ANSWERED_AFTER * grid.PERIOD_MS


def test_each_tick_is_answered_after_the_same_time_however_many_are_under_way():
    """The owner asks at every tick: each answer leaves two ticks later, one behind the other."""
    pair = OnGrid()
    pair.connect()
    pair.shoe.secret = True
    pair.pass_ms(4 * grid.PERIOD_MS)
    pair.spoke = []
    taken = []
    for _ in range(20):
        pair.pass_ms(3)
        pair.host.request(STATUS, b"", pair.now)
        pair.pass_ms(grid.PERIOD_MS - 3)
        taken.append(pair.device.grid.floor(pair.now))
    pair.pass_ms(grid.ANSWERED_AFTER * grid.PERIOD_MS)
    answered = [at for at, said in pair.spoke if len(said) > 40]
    assert answered == [at + grid.ANSWERED_AFTER * grid.PERIOD_MS for at in taken]


def test_a_stranger_who_asks_now_and_then_is_answered_at_once():
    pair = OnGrid()
    pair.shoe.secret = True
    for _ in range(5):
        pair.pass_ms(7)
        pair.port.receive(IDENTIFY, pair.now)
        taken = pair.device.grid.after(pair.now)
        pair.pass_ms(grid.PLACE_EVERY * grid.PERIOD_MS)
        assert pair.spoke[-1][0] == taken + grid.ANSWERED_AFTER * grid.PERIOD_MS
        pair.pass_ms(grid.PERIOD_MS)
    assert len(pair.spoke) == 5


def test_what_is_told_at_once_does_not_overtake_an_answer_that_waits_for_its_tick():
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(7)
    pair.shoe.secret = True
    first = pair.host.request(STATUS, b"", pair.now)
    pair.pass_ms(grid.PERIOD_MS + 5)
    pair.shoe.secret = False
    second = pair.host.request(STATUS, b"", pair.now)
    pair.pass_ms(2)
    assert [each.request_id for each in pair.happened(RequestAnswered)] == [first, second]
    assert pair.host.diagnostics.retransmitted == 0


def test_a_deadline_on_the_grid_is_always_a_tick():
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(13)
    pair.shoe.secret = True
    for _ in range(3000):
        pair.pass_ms(1)
        due = pair.port.deadline()
        assert due is not None
        assert on_tick(due)
    assert len(pair.spoke) >= 2  # keep-alives, at least
    assert all(on_tick(at) for at, _ in pair.spoke)


def test_a_session_lives_on_over_a_shuffle_and_repeats_nothing():
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(21)
    pair.shoe.secret = True
    rng = Rng(3)
    numbers = []
    for _ in range(40):
        numbers.append(pair.host.request(STATUS, b"", pair.now))
        pair.pass_ms(rng.below(400))
        pair.device.emit("buttons", 1)
    pair.pass_ms(300)
    assert [each.request_id for each in pair.happened(RequestAnswered)] == numbers
    assert len(pair.happened(EventReceived)) >= 40
    assert all(on_tick(at) for at, _ in pair.spoke)
    counters = pair.port.diagnostics
    assert (counters.retransmitted, counters.duplicates, counters.timeouts) == (0, 0, 0)
    assert pair.host.diagnostics.retransmitted == 0


def test_the_shortest_time_out_is_longer_than_the_grid_holds_anything_back():
    assert MIN_RTO_MS >= (1 + grid.ANSWERED_AFTER) * grid.PERIOD_MS + ACK_DELAY_MS + 50
    assert grid.PERIOD_MS <= 50


def test_a_flood_gets_an_answer_every_third_tick_and_does_not_fill_the_port():
    pair = OnGrid()
    pair.shoe.secret = True
    pair.pass_ms(1)
    for _ in range(1000):
        pair.port.receive(IDENTIFY * 5, pair.now)
        assert pair.port._decoder.unread() <= grid.TAKEN_BYTES
        pair.pass_ms(1)
    gaps = {later - at for (at, _), (later, _) in zip(pair.spoke, pair.spoke[1:])}
    assert gaps == {grid.PLACE_EVERY * grid.PERIOD_MS}
    assert len(pair.spoke) > 5
    assert {len(frames(said)) for _, said in pair.spoke} == {1}
    assert len(pair.port.handshake.replies) <= 1


def test_room_says_how_many_bytes_are_taken():
    pair = OnGrid()
    assert pair.port.room() > 10000
    pair.shoe.secret = True
    assert pair.port.room() == grid.TAKEN_BYTES
    pair.port.receive(bytes(100), pair.now)
    assert pair.port.room() == grid.TAKEN_BYTES - 100
    pair.port.receive(bytes(1000), pair.now)
    assert pair.port.room() == 0
    assert pair.port.diagnostics.busy == 1


def test_the_owner_has_a_place_beside_a_flood_on_its_own_cable():
    pair = OnGrid()
    pair.connect()
    pair.shoe.secret = True
    pair.pass_ms(60)
    began = pair.now
    numbers = []
    for _ in range(10):
        pair.port.receive(IDENTIFY, pair.now)
        numbers.append(pair.host.request(STATUS, b"", pair.now))
        pair.pass_ms(1)
        pair.port.receive(IDENTIFY, pair.now)
        pair.pass_ms(grid.PERIOD_MS - 1)
    pair.pass_ms((2 + grid.ANSWERED_AFTER) * grid.PERIOD_MS)
    assert [each.request_id for each in pair.happened(RequestAnswered)] == numbers
    assert pair.now - began < 15 * grid.PERIOD_MS
    assert pair.host.diagnostics.retransmitted == 0


def test_a_flood_on_one_cable_leaves_the_other_ones_answer_times_alone():
    times = []
    for flooded in (False, True):
        pair = OnGrid()
        pair.connect()
        other = DevicePort(pair.device)
        pair.shoe.secret = True
        pair.pass_ms(60)
        for at in range(500):
            if flooded:
                other.receive(IDENTIFY * 3, pair.now)
            if at % 70 == 0:
                pair.host.request(STATUS, b"", pair.now)
            pair.pass_ms(1)
            other.poll(pair.now)
        times.append([at for at, _ in pair.spoke])
    assert len(times[0]) > 4
    assert times[0] == times[1]


def test_tiny_frames_are_looked_at_a_few_at_a_time():
    pair = OnGrid()
    pair.shoe.secret = True
    pair.port.receive(b"\x02\x07\x00" * 60, pair.now)
    pair.pass_ms(grid.PERIOD_MS)
    assert pair.port.diagnostics.bad_length <= grid.LOOKED_AT
    pair.pass_ms(60 * grid.PERIOD_MS)
    assert pair.port.diagnostics.bad_length == 60


def test_what_waits_goes_at_once_when_the_shuffle_is_over():
    pair = OnGrid()
    pair.shoe.secret = True
    pair.pass_ms(10)
    for _ in range(3):
        pair.port.receive(IDENTIFY, pair.now)
    pair.pass_ms(45)
    pair.shoe.secret = False
    said = pair.port.poll(pair.now)
    assert len(frames(said)) == 3
    assert pair.port.deadline() is None


def test_many_answers_and_events_leave_two_a_tick_at_most():
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(10)
    pair.shoe.secret = True
    for _ in range(8):
        pair.host.request(STATUS, b"", pair.now)
        pair.device.emit("buttons", 2)
    pair.pass_ms(1500)
    assert len(pair.happened(RequestAnswered)) == 8
    most = max([len(frames(said)) for _, said in pair.spoke])
    assert most <= grid.OWNER_ANSWERS + 1  # and an acknowledgement


def test_lost_frames_are_repeated_a_few_a_tick():
    """A host that says it lost sixteen frames does not get them all at one tick."""
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(100)
    link = pair.port.link
    assert link is not None
    for _ in range(12):
        pair.device.emit("buttons", 1)
    lost = frames(pair.port.poll(pair.now))
    assert len(lost) == 12
    pair.host.receive(lost[-1], pair.now)
    pair.shoe.secret = True
    pair.spoke = []
    pair.pass_ms(1500)
    last = pair.device.events.last
    assert [each.n for each in pair.happened(EventReceived)][-12:] == list(range(last - 11, last + 1))
    assert max([len(frames(said)) for _, said in pair.spoke]) <= grid.OWNER_ANSWERS + 1


def test_an_event_carries_the_time_of_a_tick():
    pair = OnGrid()
    pair.connect()
    pair.pass_ms(10)
    pair.shoe.secret = True
    stamped = []
    for _ in range(20):
        pair.pass_ms(17)
        n = pair.device.emit("buttons", 1)
        stamped.append(int.from_bytes(pair.device.events.get(n)[2][4:8], "little"))
    assert all(on_tick(at) for at in stamped[3:])
    assert len(set(stamped)) > 5


def test_the_grid_goes_on_over_the_wrap_of_its_clock():
    clock = grid.Grid(ticks.MASK - 120)
    assert clock.floor(ticks.MASK - 100) == ticks.MASK - 120
    clock.advance(ticks.MASK - 60)
    assert clock.after(ticks.add(ticks.MASK, 5)) == ticks.add(ticks.MASK - 120, 150)
    assert clock.floor(ticks.add(ticks.MASK, 81)) == ticks.add(ticks.MASK - 120, 200)
