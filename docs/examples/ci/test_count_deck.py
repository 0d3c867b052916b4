"""Tests of the example program on emulated devices; ``sabot_device`` comes with the package ``sabot``."""

from collections.abc import Callable

import pytest
from count_deck import count_deck

from sabot_simulators.pytest_plugin import DeviceUnderTest

Devices = Callable[..., DeviceUnderTest]


def test_a_deck_of_52_is_counted(sabot_device: Devices) -> None:
    device = sabot_device(seed=1)
    with device.connect() as client:
        device.register_decks(client)
        assert count_deck(client, 1) == "deck 1: 52 cards"
    where = device.cards()
    assert len(where["shoe"]) + len(where["chamber"]) + len(where["store"]) == 52  # the truth, not a report


@pytest.mark.parametrize("seed", range(3))
def test_a_card_that_sticks_is_reported(sabot_device: Devices, seed: int) -> None:
    device = sabot_device(seed=seed, faults=["stuck@entry:10"])
    with device.connect() as client:
        device.register_decks(client)
        assert count_deck(client, 1) == "deck 1: card_stuck at entry"


def test_the_program_goes_on_after_a_pulled_cable(sabot_device: Devices) -> None:
    device = sabot_device(seed=1)
    with device.connect() as client:
        device.register_decks(client)
        device.pull_cable()
        assert count_deck(client, 1) == "deck 1: 52 cards"
