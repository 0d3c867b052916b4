"""Finding devices: by their USB ids, then by identifying each one."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from serial.tools import list_ports

from sabot_driver import usb
from sabot_driver.clock import Clock
from sabot_driver.errors import AmbiguousDevice, NoDevice, SabotError
from sabot_driver.transports import transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.usb_ids import PRODUCT, VENDOR
from sabot_protocol.host.messages import Identity, IdentityFlag

ASK_S = 1.5


@dataclass(frozen=True, slots=True)
class DiscoveredDevice:
    """A URL where a device may be, and how the device identified itself."""

    url: str
    identity: Identity | None
    error: SabotError | None = None
    """Why it could not be identified."""

    @property
    def simulator(self) -> bool:
        """Whether it says that it is emulated."""
        return self.identity is not None and bool(self.identity.flags & IdentityFlag.SIMULATOR)


def candidates() -> list[str]:
    """URLs of everything on this computer that has our USB ids; a serial port rather than the bare bus."""
    ports = [
        (port.device, port.serial_number)
        for port in list_ports.comports()
        if (port.vid, port.pid) == (VENDOR, PRODUCT)
    ]
    with_port = {serial for _, serial in ports}
    buses = [f"usb://{serial}" for serial in usb.serials() if serial not in with_port]
    return sorted(device for device, _ in ports) + sorted(buses)


def identify(url: str, timeout: float = ASK_S) -> DiscoveredDevice:
    """Identify the device at a URL; nothing of the answer is proved."""
    try:
        with UnsecuredExchange(transport_for(url), url, Clock(), timeout) as exchange:
            return DiscoveredDevice(url, exchange.identify())
    except SabotError as error:
        return DiscoveredDevice(url, None, error)


def find_devices(urls: list[str] | None = None, timeout: float = ASK_S) -> list[DiscoveredDevice]:
    """Identify every candidate, or these URLs, at the same time."""
    asked = candidates() if urls is None else urls
    if not asked:
        return []
    with ThreadPoolExecutor(len(asked), "sabot-discovery") as pool:
        return list(pool.map(lambda url: identify(url, timeout), asked))


def only_device(found: list[DiscoveredDevice]) -> DiscoveredDevice:
    """The only device; NoDevice if there is none, AmbiguousDevice with all of them if there are more."""
    if not found:
        raise NoDevice("no device is connected to this computer")
    if len(found) > 1:
        raise AmbiguousDevice([each.url for each in found])
    return found[0]
