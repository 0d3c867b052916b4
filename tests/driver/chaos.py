"""A program that plays on whatever happens, and what must be true afterwards."""

import errno
import gc
import itertools
import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import usb.core

from sabot_driver import Client, Credential, LostEvents, ReceivedEvent
from sabot_driver.errors import NotAllowed, Refused, SabotError, Stale, WrongState
from sabot_protocol.host.message_base import AnswerT, Request
from sabot_protocol.host.messages import (
    Back,
    CloseBets,
    DispenseStack,
    EndRound,
    OpenRound,
    RegisterDeck,
    Role,
    ShoeChanged,
    ShoeState,
    Shuffle,
    ShufflerState,
)
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.endpoints.emulated_usb import EmulatedUsbBackend, EmulatedUsbDevice, UsbHandle
from sabot_simulators.endpoints.impairment import Impairment
from sabot_simulators.python_device import WiredPythonDevice

FLOOR_KEY = bytes(range(1, 33))
FLOOR_SLOT = 3
FLOOR = Credential(Role.FLOOR, FLOOR_KEY, slot=FLOOR_SLOT)
PATIENCE_S = 120.0
TRIES = 50
HANDS = 2


def set_up(client: Client) -> None:
    """Both decks are registered."""
    with suppress(Refused):  # it is set already
        client.set_key(Role.FLOOR, FLOOR_KEY, slot=FLOOR_SLOT, timeout=PATIENCE_S)
    for deck_id, back in ((1, Back.RED), (2, Back.BLUE)):
        for _ in range(TRIES):
            try:
                client.ask(RegisterDeck(deck_id, back, int(time.time())), PATIENCE_S, FLOOR)
                break
            except (WrongState, NotAllowed):
                break  # it is registered already
            except SabotError:
                client.wait_up(PATIENCE_S)
        else:
            raise AssertionError("the decks could not be registered")


class Player:
    """Plays rounds from what status and journal say, so that it can be stopped and started anywhere."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.read = 0
        self.in_shoe = 0
        self.refused: list[Refused] = []

    def follow(self) -> None:
        """Read what has been told since the last time: which deck is in the shoe."""
        for event in self.client.events(self.read, timeout=0):
            self.read = event.id
            if isinstance(event, ReceivedEvent) and isinstance(event.message, ShoeChanged):
                self.in_shoe = event.message.deck_id

    def ask(self, message: Request[AnswerT]) -> None:
        """Ask; a refusal because things have moved on is no harm."""
        try:
            self.client.ask(message, PATIENCE_S)
        except (Stale, WrongState, NotAllowed) as refused:
            self.refused.append(refused)

    def step(self, last_round: int) -> bool:
        """Do the next thing, if there is one to do; whether the last round is over and dealt again."""
        status = self.client.status(PATIENCE_S)
        self.follow()
        resting = status.shoe == ShoeState.ROUND_OPEN
        if status.round_id:
            if resting and status.stack == 0:
                self.ask(CloseBets(status.round_id, HANDS))
            if resting and status.stack < HANDS:
                self.ask(DispenseStack(status.round_id, status.stack + 1))
            elif resting:
                self.ask(EndRound(status.round_id))
        elif status.shuffler == ShufflerState.IDLE and status.shoe in (ShoeState.READY, ShoeState.EMPTY):
            self.ask(Shuffle(2 if self.in_shoe == 1 else 1))
        elif status.shuffler == ShufflerState.STORED and status.shoe == ShoeState.READY:
            opened = [each for each in self.client.journal.commands() if each.message == OpenRound.ID]
            done = [OpenRound.unpack(each.body).round_id for each in opened if each.outcome == "done"]
            next_round = max(done, default=0) + 1
            if next_round > last_round:
                return True
            self.ask(OpenRound(next_round, self.in_shoe))
        return False


def wait_until(there: Callable[[], bool]) -> None:
    """Wait until something is so; the limit is for what fails."""
    ends = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < ends, "it has never come"
        time.sleep(0.002)


def check(client: Client, device: WiredPythonDevice, rounds: int) -> None:
    """Every stack was dispensed once, and every event is in the journal once and in order."""
    expected = [(each, stack) for each in range(1, rounds + 1) for stack in range(1, HANDS + 1)]
    assert device.stacks_dispensed == expected
    ends = time.monotonic() + PATIENCE_S
    while client.journal.position() != (device.end.memory_id, device.end.boot_id, device.end.events.last):
        assert time.monotonic() < ends, "events are missing from the journal"
        time.sleep(0.01)
    told = list(client.events(0, timeout=0))
    while len(told) < device.end.events.last and time.monotonic() < ends:  # on disk, and about to be told
        time.sleep(0.01)
        told = list(client.events(0, timeout=0))
    assert [each for each in told if isinstance(each, LostEvents)] == []
    numbers = [each.n for each in told if isinstance(each, ReceivedEvent)]
    assert numbers == list(range(1, device.end.events.last + 1))
    assert all(after.id > before.id for before, after in itertools.pairwise(told))


class BadBus(EmulatedUsbBackend):
    """A USB bus as bad as told: pieces lost or damaged, stalls, and a plug that falls out for a moment."""

    AWAY_S = 0.02

    def __init__(self, settings: DeviceSettings, mischief: Impairment, clock_rate: float) -> None:
        super().__init__(settings, clock_rate)
        self._mischief = mischief
        self._back_at = 0.0

    def enumerate_devices(self) -> list[tuple[EmulatedUsbDevice, int]]:
        """The bus; what fell out has been put in again after a while."""
        if not self.shoe.plugged and time.monotonic() >= self._back_at:
            self.plug()
        return super().enumerate_devices()

    def bulk_write(self, dev_handle: UsbHandle, ep: int, intf: int, data: "array[int]", timeout: int) -> int:
        """Bytes to the device, as far as they get there."""
        if self._mischief.cuts_now():
            self._back_at = time.monotonic() + self.AWAY_S
            self.unplug()
        arrives = self._carried(data.tobytes())
        super().bulk_write(dev_handle, ep, intf, array("B", arrives), timeout)
        return len(data)

    def bulk_read(self, dev_handle: UsbHandle, ep: int, intf: int, buff: "array[int]", timeout: int) -> int:
        """Bytes from the device, as far as they get here."""
        size = super().bulk_read(dev_handle, ep, intf, buff, timeout)
        arrives = self._carried(buff[:size].tobytes())
        if not arrives:
            raise usb.core.USBTimeoutError("Operation timed out", -7, errno.ETIMEDOUT)
        buff[: len(arrives)] = array("B", arrives)
        return len(arrives)

    def _carried(self, data: bytes) -> bytes:
        arrives, late_s = self._mischief.carry(data)
        time.sleep(late_s)  # a stall holds up the transfer, and with it what follows
        return arrives


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """No thread and no open file more than before."""
    gc.collect()  # what earlier tests left to the collector is not ours
    threads, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    yield
    assert set(threading.enumerate()) - threads == set()
    assert len(os.listdir("/proc/self/fd")) <= files
