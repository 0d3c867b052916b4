"""The emulated devices of this process, by URL: how a simulated staff finds the people at its machine."""

from urllib.parse import parse_qs, urlsplit
from weakref import WeakValueDictionary

from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice
from sabot_simulators.simulated_people import SimulatedPeople

_devices: "WeakValueDictionary[tuple[str, str | DeviceSettings], EmulatedDevice]" = WeakValueDictionary()


def announce(scheme: str, name: str, device: EmulatedDevice) -> None:
    """Make a device known under its URL's scheme and name; without a name, under its settings."""
    _devices[scheme, name or device.settings] = device


def people_at(url: str) -> SimulatedPeople | None:
    """The people at the device of ``sim://…`` or ``usb://…?backend=sim``, if this process runs it."""
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    name = parts.netloc
    if parts.scheme == "usb":
        if query.pop("backend", None) != ["sim"]:
            return None
        name = query.pop("bus", [""])[-1]
    elif parts.scheme != "sim":
        return None
    device = _devices.get((parts.scheme, name or DeviceSettings.from_query(query)))
    return None if device is None else device.people
