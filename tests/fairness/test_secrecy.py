"""Nobody learns of undealt cards: not from what is told, not from when, not from what is kept."""

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import pytest
from tests.machine.tables import RED, Table
from tests.sweeps import Amount

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.event_log import EventLog
from sabot_firmware.hardware import SECRET_SENSORS
from sabot_protocol.errors import Refusal
from sabot_protocol.record_store import RecordStore
from sabot_simulators.dealer import Dealer
from sabot_simulators.fairness import secrecy
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.physical_cards import new_deck
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

pytestmark = pytest.mark.slow

Draw = Callable[[int], int]

# Ways to draw that move the elevator as little as can be, and as usual
DRAWS: dict[str, Callable[[], Draw]] = {
    "always on top": lambda: lambda bound: 0,
    "always at the bottom": lambda: lambda bound: bound - 1,
    "at random": lambda: Random(1).randrange,
    "at random, otherwise": lambda: Random(2).randrange,
}


def told(draw: Draw, *faults: str) -> list[tuple[object, ...]]:
    """Everything a host hears of one shuffle, with its time, asking ten times a second."""
    table = Table(1, *faults)
    device = PythonDevice(table.machine, draw)
    Dealer.__init__(table, device)
    device.run_until_idle()
    deck_id = table.new_deck(RED)
    table.decks[deck_id] = new_deck(RED, Random(1))
    heard: list[tuple[object, ...]] = []
    agenda = table.machine.agenda
    device.on_report = lambda name, values: heard.append((agenda.now_us // 1000, name, values))
    table.feed(deck_id)
    while table.shoe_state != shoe.READY:
        device.run_for(100_000)
        for query in ("sensors", "wear", "last_round", "decks"):
            heard.append((query, device.command(query)))
        heard.append(
            (device.command("whereabouts", deck_id), device.controller.status(), table.machine.display)
        )
    return heard


@cache
def usual() -> list[tuple[object, ...]]:
    return told(DRAWS["at random"]())


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_told_of_a_shuffle_and_when_does_not_depend_on_its_slots(name: str) -> None:
    heard = told(DRAWS[name]())
    assert len(heard) == len(usual())
    for mine, other in zip(heard, usual(), strict=True):
        assert mine == other


def test_a_shuffle_that_took_longer_than_any_should_is_told_in_steps() -> None:
    heard = told(lambda bound: 0 if bound % 2 else bound - 1)
    counted = [each[0] for each in heard if each[1] == "deck_counted"]
    normal = [each[0] for each in usual() if each[1] == "deck_counted"]
    assert (int(str(counted[0])) - int(str(normal[0]))) * 1000 % shuffler.STEP_US == 0


def test_retries_are_told_when_the_shuffle_is_over() -> None:
    names = [each[1] for each in told(Random(1).randrange, "snag@entry:20", "misfeed@tray:30")]
    assert names.count("retried") == 3
    begun = names.index("shuffler_changed")
    assert names.index("retried") > begun
    events = [name for name in names if isinstance(name, str)]
    assert events[events.index("retried") + 3 :][:2] == ["shuffler_changed", "deck_counted"]


def test_sensors_say_nothing_of_the_shuffler_while_it_shuffles() -> None:
    table = Table(3)
    table.device.run_until_idle()
    table.feed(table.new_deck(RED))
    while table.shoe_state == shoe.EMPTY:
        levels, height_um, rollers_um = table.device.command("sensors")
        assert not levels & SECRET_SENSORS
        assert height_um == rollers_um[hardware.FEED] == rollers_um[hardware.INSERT] == 0
        table.device.run_for(50_000)
    table.device.run_until_idle()
    assert table.device.command("sensors")[0] & SECRET_SENSORS


def test_a_trained_predictor_does_no_better_than_chance_unless_the_order_is_leaked(
    amount: Amount,
) -> None:
    heard = secrecy.together(list(secrecy.observe(amount(250, full=500), seed=1, processes=1)))
    found = secrecy.predict(heard)
    assert not found.leaks, found
    assert secrecy.predict(heard, "order").leaks


class Overheard(HostedDevice):
    """Keeps every byte that the device says."""

    said = b""

    def _step(self) -> int | None:
        port = self.port
        poll = port.poll

        def noted(now: int, room: bool = True) -> bytes:
            out = poll(now, room)
            self.said += bytes(out)
            return out

        port.poll = noted  # type: ignore[method-assign]
        try:
            return super()._step()
        finally:
            port.poll = poll  # type: ignore[method-assign]


class Rows(EventLog):
    """Keeps what would be written to flash."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def add(self, row: bytes, evidence: bool = False) -> None:
        self.written.append(bytes(row))

    def due(self) -> bool:
        return False


class Listened:
    """A table of which everything that leaves the core is kept: the wire, the log, critical memory."""

    def __init__(self, seed: int) -> None:
        self.memory = RecordStore()
        self.log = Rows()
        self.device = Overheard(SimulatedMachine(Random(seed)), None, self.memory, self.log)
        self.dealer = Dealer(self.device)
        assert self.dealer.open_table()

    def told(self, secret: Sequence[int]) -> list[str]:
        """Where eight numbers of a secret have been, as bytes or as words of two or four."""
        some = [secret[at : at + 8] for at in range(0, len(secret) - 7, 4)]
        pieces = [array(size, numbers).tobytes() for numbers in some for size in "BHI"]
        places = {
            "wire": b"".join(map(unframed, self.device.said.split(b"\x00"))),
            "log": b"".join(self.log.written),
            "memory": b"".join(map(bytes, self.memory._records.values())),
        }
        return [name for name, data in places.items() if any(piece in data for piece in pieces)]


def unframed(block: bytes) -> bytes:
    """What a COBS block holds."""
    out, at = bytearray(), 0
    while at < len(block):
        out += block[at + 1 : at + block[at]]
        at += block[at]
        if at < len(block):
            out.append(0)
    return bytes(out)


def test_no_seed_or_slot_is_on_the_wire_in_the_log_or_in_critical_memory_before_its_reveal() -> None:
    table = Listened(5)
    assert table.dealer.play_round()
    shuffle_commands = table.device.controller.shuffle_commands
    assert [len(shuffle_commands._completed), len(shuffle_commands._revealable)] == [2, 1]
    for each in shuffle_commands._completed + shuffle_commands._revealable:
        assert table.told(each.seed) == table.told(each.placed[12:52]) == []
    opened = shuffle_commands._revealable[0]
    assert table.device.ask("reveal_shuffle", 1)[4] == opened.seed
    assert table.told(opened.seed) == ["wire"]  # so it would have been noticed
    slots = table.device.ask("shuffle_slots", 1, 0)[2]
    assert list(slots) == list(opened.placed[:32])
    assert table.told(slots[12:]) == ["wire"]


def test_no_face_is_told_before_the_round_is_revealed_and_none_of_the_stub_ever() -> None:
    table = Listened(6)
    dealer, device = table.dealer, table.device
    in_shoe = bytes(card.number for card in device.machine.shoe)
    assert dealer.deal_round()
    dealt, stub = in_shoe[:21], in_shoe[21:]
    assert bytes(device.controller.shoe.faces[:52]) == in_shoe  # the reader has seen them all
    assert table.told(dealt) == table.told(stub) == []
    assert dealer_refused(device, "faces", dealer.round_id, 1) == "not_allowed"
    device.ask("reveal_round", dealer.round_id)
    seen = [device.ask("faces", dealer.round_id, stack)[2] for stack in range(1, 8)]
    assert bytes(face for faces in seen for face in faces) == dealt
    assert dealer_refused(device, "faces", dealer.round_id, 8) == "stale"
    assert table.told(stub) == []
    dealer._take()
    device.run_until_idle()
    assert set(device.controller.shoe.faces) == {255}  # wiped with the deck


def dealer_refused(device: Overheard, name: str, *values: int) -> str:
    with pytest.raises(Refusal) as refused:
        device.ask(name, *values)
    return refused.value.error
