"""An emulated device that a house's commands bind."""

import time
from pathlib import Path

from tests.conformance.targets import Tcp, eventually
from tests.driver.command import Ran, Sabot

from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import IdentityFlag

LOOK_S = 0.2


class HouseDevice:
    """A device behind TCP, provisioned and bound to the house of ``office`` by the commands."""

    def __init__(self, folder: Path, sabot: Sabot) -> None:
        self.target = Tcp(folder, "seed=1&serial=SB000123")
        self.url = self.target.listener.url
        self._sabot = sabot
        made = self.run("house", "init", "office", "--name", "Harbour")
        self.public = str(made.lines[-1]["public"])
        self.run(
            "provision", "--device", self.url, "--simulator", "--service-key", "service.key",
            "--house", "office/house.json", "--site", "MAIN",
        )  # fmt: skip
        with self.target.exchange() as exchange:
            self.serial = format_serial(exchange.identify().serial)

    def run(self, *arguments: object, code: int = 0) -> Ran:
        """A command that ends with this code."""
        ran = self._sabot(*arguments, "--json")
        assert ran.code == code, ran.out + ran.err
        return ran


def presence(device: HouseDevice) -> None:
    """Somebody holds the contact in the logic compartment until the keys are cleared."""

    def cleared() -> bool:
        time.sleep(LOOK_S)
        with device.target.exchange() as exchange:
            return not exchange.identify().flags & IdentityFlag.PROVISIONED

    device.target.hold_contact(True)
    assert eventually(cleared)
    device.target.hold_contact(False)
