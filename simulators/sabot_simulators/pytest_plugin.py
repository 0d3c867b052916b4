"""A pytest plugin for programs that drive a Sabot machine: the fixture ``sabot_device`` emulates one.

    def test_a_stuck_card_stops_the_shuffle(sabot_device):
        device = sabot_device(seed=1, faults=["stuck@entry:10"])
        with device.connect() as client:
            device.register_decks(client)
            ...
        assert sum(map(len, device.cards().values())) == 104

The emulated device runs the shipped firmware over the simulated mechanism. Pytest finds the plugin by its
entry point; nothing of the simulators is imported before a test asks for a device.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sabot_driver import Client, Credential
    from sabot_simulators.endpoints.device_server import DeviceServer

FLOOR_KEY = bytes(range(32))
"""The key of the floor supervisor of every device that ``register_decks`` has prepared."""


class DeviceUnderTest:
    """An emulated device, reachable at ``url`` from any process, and the truth about its cards."""

    def __init__(self, served: "DeviceServer", url: str, folder: Path) -> None:
        self.url = url
        self._served = served
        self._folder = folder

    def connect(self, **options: Any) -> "Client":
        """The driver's ``connect`` with keys and journal in the test's folder; ``options`` are passed on."""
        from sabot_driver import Keyring, connect

        self._folder.mkdir(exist_ok=True)
        chosen = {
            "simulator": True,
            "keyring": Keyring(self._folder),
            "journal": self._folder / "journal.db",
            **options,
        }
        return connect(self.url, **chosen)

    def register_decks(self, client: "Client") -> "Credential":
        """Give the floor a key and register deck 1 (red) and deck 2 (blue); the floor's credential."""
        import time

        from sabot_driver import Credential
        from sabot_protocol.host.messages import Back, RegisterDeck, Role

        floor = Credential(Role.FLOOR, FLOOR_KEY, slot=client.set_key(Role.FLOOR, FLOOR_KEY))
        for deck_id, back in ((1, Back.RED), (2, Back.BLUE)):
            client.ask(RegisterDeck(deck_id, back, int(time.time())), by=floor)
        return floor

    def cards(self) -> dict[str, list[str]]:
        """Where every card really is at this moment, foremost first: ``{"shoe": ["KS", "2H", ...], ...}``.

        The places are tray, path, chamber, store, shoe, exit_tray, handed_out and removed.
        """
        truth = self._served.call(self._served.device.machine.truth)
        return {place: [card.name for card in cards] for place, cards in truth.items()}

    def stacks(self) -> list[tuple[int, int]]:
        """Every stack that was really dispensed, as (round, stack), over all restarts."""
        return self._served.call(lambda: list(self._served.device.stacks_dispensed))

    def strike(self, fault: str) -> None:
        """Let a fault happen, as ``stuck@entry:10``: at once, or at the next occasion for it."""
        from sabot_simulators.mechanism.faults import PlannedFault

        planned = PlannedFault.parse(fault)
        self._served.call(lambda: self._served.device.machine.strike(planned))

    def pull_cable(self) -> None:
        """Pull every cable; a driver finds the device again by itself."""
        self._served.pull_all()

    def cut_power(self) -> None:
        """Take the power away and give it back; critical memory and cards stay."""
        self._served.reboot()


@contextmanager
def emulated_devices(folder: Path) -> "Iterator[Callable[..., DeviceUnderTest]]":
    """What makes devices, as ``sabot_device`` describes; they end with the block. Keys go under ``folder``.

    If the emulation itself has failed, the block's end raises the reason.
    """
    made: list[DeviceServer] = []

    def make(faults: "tuple[str, ...] | list[str]" = (), **settings: object) -> DeviceUnderTest:
        from sabot_simulators.device_settings import DeviceSettings
        from sabot_simulators.emulated_device import emulate
        from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
        from sabot_simulators.endpoints.tcp import TcpListener

        query = {name: [str(value)] for name, value in {"seed": 1, **settings}.items()}
        if faults:
            query["fault"] = list(faults)
        served = DeviceServer(emulate(DeviceSettings.from_query(query), wire_ms()))
        made.append(served)
        listener = TcpListener()
        served.listen(listener)
        return DeviceUnderTest(served, listener.url, folder / f"device{len(made)}")

    try:
        yield make
    finally:
        for served in made:
            served.close()
            served.device.close()
    failures = [served.failure for served in made if served.failure is not None]
    if failures:
        raise failures[0]


@pytest.fixture
def sabot_device(tmp_path: Path) -> Iterator[Callable[..., DeviceUnderTest]]:
    """Makes emulated devices: ``sabot_device(seed=1, faults=["stuck@entry:10"], speed=20)``.

    Settings are those of a ``sim://`` URL, with ``faults`` for its repeated ``fault``; the seed is 1 unless
    it is given. A setting or fault that does not exist is BadSetting. When the test ends, its devices do; if
    the emulation itself has failed, the test fails with the reason.
    """
    with emulated_devices(tmp_path) as make:
        yield make
