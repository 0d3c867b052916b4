"""Checks of a device that runs Sabot: whether it may be stopped, and what it reports after flashing."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from sabot_driver.client import Client
from sabot_driver.credentials import Credential
from sabot_driver.discovery import DiscoveredDevice, find_devices, identify
from sabot_driver.errors import (
    KeyMissing,
    NotProvisioned,
    NotSupported,
    WrongState,
)
from sabot_flash.errors import BoardBusy, NoPrompt, NotBack, NotWritten, WrongBoard
from sabot_flash.image_components import ImageComponent
from sabot_protocol.host import messages
from sabot_protocol.host.messages import Identity, ShoeState, ShufflerState, StatusFlag, StatusReport

MODEL = "RP2040"
LOOK_S = 0.3
IDLE_STATES = (
    (ShufflerState.IDLE, ShufflerState.SERVICE, ShufflerState.OUT_OF_ORDER),
    (ShoeState.EMPTY, ShoeState.SERVICE, ShoeState.OUT_OF_ORDER),
)

NO_KEY = (KeyMissing, NotProvisioned)
"""Errors that only say that this computer has no key for a device."""
Opens = Callable[[], AbstractContextManager[Client]]


def check_model(identity: Identity) -> None:
    """WrongBoard if a device that answers is not the kind of board that is flashed."""
    if MODEL not in identity.model:
        raise WrongBoard(f"this is a {identity.model}, not an {MODEL}")


def check_idle(status: StatusReport) -> None:
    """BoardBusy if a round is open, something moves, or cards are inside."""
    if status.flags & StatusFlag.ROUND_OPEN:
        raise BoardBusy(f"round {status.round_id} is open: it would be void")
    for half, state, kind, resting in (
        ("shuffler", status.shuffler, ShufflerState, IDLE_STATES[0]),
        ("shoe", status.shoe, ShoeState, IDLE_STATES[1]),
    ):
        if state not in resting:
            name = {each.value: each.name.lower() for each in kind}.get(state, str(state))
            raise BoardBusy(f"the {half} half is {name.replace('_', ' ')}, not idle and empty")


def stop_application(opens: Opens, key: Credential | None, timeout: float) -> None:
    """Have an idle, empty device start its loader; this needs the service role."""
    with opens() as client:
        status = client.status(timeout)
        check_idle(status)
        if key is None:
            raise KeyMissing(
                "stopping a device's application takes service",
                "Give service's key file: --service-key FILE. Or hold BOOTSEL while plugging the board in.",
            )
        try:
            client.ask(messages.StartLoader(), timeout, key)
        except WrongState as refused:
            raise BoardBusy(str(refused)) from refused
        except NotSupported as refused:
            raise NoPrompt(
                f"{client.url}: this device does not start its loader by command",
                "Hold BOOTSEL while plugging the board in.",
            ) from refused


def wait_for_device(port: str | None, seconds: float) -> DiscoveredDevice:
    """The device that answers after a restart, on a port or as the only one; NotBack if none does."""
    ends = time.monotonic() + seconds
    while True:
        found = [identify(port)] if port is not None else find_devices()
        answering = [each for each in found if each.identity is not None]
        if len(answering) == 1:
            return answering[0]
        if time.monotonic() > ends:
            where = port or "any port"
            raise NotBack(f"{where}: the board was flashed but does not answer in {seconds:g} s")
        time.sleep(LOOK_S)


def compare_version(identity: Identity, wanted: tuple[ImageComponent, ...]) -> None:
    """NotWritten if another version answers than was flashed."""
    if identity.version != wanted[0].version:
        raise NotWritten(f"version {identity.version} answers; {wanted[0].version} was flashed")


def compare_components(client: Client, wanted: tuple[ImageComponent, ...], timeout: float) -> None:
    """NotWritten if the device says it is made of other components than were flashed."""
    numbers = {each.name.lower(): each.value for each in messages.Component}
    for each in wanted:
        told = client.ask(messages.ComponentQuery(numbers[each.name]), timeout)
        if (told.version, bytes(told.sha256)) != (each.version, each.sha256):
            is_now = f"{told.version}, {told.sha256.hex()[:16]}"
            raise NotWritten(f"the device says that its {each.name} is {is_now}")
