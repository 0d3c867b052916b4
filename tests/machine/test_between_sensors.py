"""A card that stops anywhere on its way, and a person who overlooks it: no count and no round is wrong.

``docs/faults.md`` argues each place between two sensors; here each place is tried. A card stops with its
leading edge at every tenth millimetre of both ways. Whoever clears the fault takes out what a sensor sees and
overlooks the rest, so that the next deck meets the card.
"""

from random import Random
from zlib import crc32

import pytest

from sabot_firmware import machine_constants, shoe
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import WaitTimeout
from sabot_simulators.mechanism.faults import STUCK_AT_UM
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

EVERY_UM = 10_000
# Each way: its faults' place, its end, and the cards that stop: of the second deck fed, of the first dealt
WAYS = {
    "tray to chamber": ("entry", machine_constants.INSERTED_UM, (53, 78, 104)),
    "shoe to exit tray": ("deal", machine_constants.EXIT_UM + machine_constants.CARD_LENGTH_UM, (1, 22, 52)),
}
CASES = [
    (way, stops_um, card)
    for way, (_, end_um, cards) in WAYS.items()
    for stops_um in range(EVERY_UM, end_um, EVERY_UM)
    for card in cards
]
ROUNDS = 5
# What a device claims wrongly because a person cleared a jam and overlooked a card; never a number of cards
OVERLOOKED = {
    ("tray to chamber", True): {"the shuffler half is empty"},
    ("tray to chamber", False): {"the shuffler half is empty"},
    ("shoe to exit tray", True): set[str](),  # the roller turns, and the card comes to the exit
    ("shoe to exit tray", False): {"the shoe half is empty"},
}


class Overlooking(SimulatedMachine):
    """A machine whose people do not see a card where no sensor sees one."""

    loosened = True  # what stuck is free afterwards: hands were there

    def empty_by_hand(self, door: int, overlooked_by: str | None = "dealer") -> list[PhysicalCard]:
        """Take out what lies in a half, but for the cards on its track that cover no sensor."""
        if self.loosened:
            self.loosen(door)
        return super().empty_by_hand(door, overlooked_by)


@pytest.mark.sweep(every=12)
@pytest.mark.parametrize("loosened", [True, False], ids=["loosened", "still stuck"])
@pytest.mark.parametrize(("way", "stops_um", "card"), CASES)
def test_a_card_that_no_sensor_sees_makes_no_round_wrong(
    way: str, stops_um: int, card: int, loosened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = WAYS[way][0]
    monkeypatch.setitem(STUCK_AT_UM, place, stops_um)
    random = Random(crc32(f"{way} {stops_um} {card}".encode()))
    machine = Overlooking(random)
    machine.loosened = loosened
    device = PythonDevice(machine, random.randrange)
    oracle = Oracle(device)
    dealer = Dealer(device)
    machine.strike(f"stuck@{place}:{card}")
    going_on = dealer.open_table()
    for _ in range(ROUNDS):
        try:
            if going_on:
                going_on = dealer.play_round()
            else:
                dealer.recover()
                going_on = True
        except Refusal:
            going_on = False
        except (RecoveryFailed, WaitTimeout):
            break
    reports = [name for name, _ in device.reports]
    states = [values[0] for name, values in device.reports if name == "shoe_changed"]
    assert [each.kind for each in machine.faults.happened] == ["stuck"]
    assert "fault_raised" in reports or shoe.BLOCKED in states
    assert {each.what for each in oracle.wrong} <= OVERLOOKED[way, loosened]


def test_a_card_between_entry_and_insertion_covers_one_of_them() -> None:
    assert machine_constants.INSERTION_UM - machine_constants.ENTRY_UM < machine_constants.CARD_LENGTH_UM
