"""Physical acts at an emulated machine, given over a Unix socket that only its owner may use.

A physical act is an input of the machine and never a message of the wire, so it has a channel of its own:
``sabot simulate --control PATH``. The protocol is lines of words. Each line is answered by one line: ``ok``,
or ``no`` and why. A line begins with what is acted upon, then what is done:

    presence on|off             the contact in the locked logic compartment
    door shuffler|shoe open|close
    button left|right down|up
    cards ROUND                 what people saw of a round: ``ok KS,9H,2D 4S,4H,TD`` (burnt cards: round 0)
    dealer away|back            the emulated dealer does nothing at the machine until back
    take                        what lies in the exit tray is taken
    help                        what there is, in one line

Other acts are added by another word in ``ACTS``. Clients and lines are bounded: at most MOST_CLIENTS, lines
of at most MOST_LINE bytes, and a client that does not read its answers is dropped.
"""

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sabot_firmware import hardware
from sabot_simulators.emulated_device import EmulatedDevice
from sabot_simulators.endpoints.device_server import DeviceServer

MOST_CLIENTS = 4
MOST_LINE = 200
JOIN_S = 10.0
DOORS = {"shuffler": hardware.SHUFFLER_DOOR, "shoe": hardware.SHOE_DOOR}
BUTTONS = {"left": hardware.LEFT_BUTTON, "right": hardware.RIGHT_BUTTON}


class UnknownAct(Exception):
    """A line that names no act; the text says what was expected."""


def _one_of(word: str, choices: "dict[str, object] | tuple[str, ...]") -> str:
    if word not in choices:
        raise UnknownAct(f"'{word}' is none of {', '.join(choices)}")
    return word


def _presence(device: EmulatedDevice, words: list[str]) -> str:
    (level,) = words
    device.machine.hold_contact(_one_of(level, ("on", "off")) == "on")
    return ""


def _door(device: EmulatedDevice, words: list[str]) -> str:
    which, what = words
    door = DOORS[_one_of(which, tuple(DOORS))]
    if _one_of(what, ("open", "close")) == "open":
        device.machine.open_door(door)
    else:
        device.machine.close_door(door)
    return ""


def _button(device: EmulatedDevice, words: list[str]) -> str:
    which, what = words
    button = BUTTONS[_one_of(which, tuple(BUTTONS))]
    device.machine.sensors.set(button, 1 if _one_of(what, ("down", "up")) == "down" else 0)
    return ""


def _cards(device: EmulatedDevice, words: list[str]) -> str:
    (number,) = words
    if device.people is None:
        raise UnknownAct("nobody is at this machine")
    seen = device.people.hands.get(int(number), [])
    return " ".join(",".join(each) for each in seen)


def _dealer(device: EmulatedDevice, words: list[str]) -> str:
    (what,) = words
    if device.people is None:
        raise UnknownAct("nobody is at this machine")
    device.people.leave(_one_of(what, ("away", "back")) == "away")
    return ""


def _take(device: EmulatedDevice, words: list[str]) -> str:
    () = words
    if not device.machine.take_exit():
        raise UnknownAct("nothing was taken out of the exit tray")
    return ""


ACTS: "dict[str, tuple[str, Callable[[EmulatedDevice, list[str]], str]]]" = {
    "presence": ("presence on|off", _presence),
    "door": ("door shuffler|shoe open|close", _door),
    "button": ("button left|right down|up", _button),
    "cards": ("cards ROUND", _cards),
    "dealer": ("dealer away|back", _dealer),
    "take": ("take", _take),
}


def act(device: EmulatedDevice, line: str) -> str:
    """Carry out one line; the answer's line."""
    words = line.split()
    if words == ["help"]:
        return "ok " + "; ".join(usage for usage, _ in ACTS.values())
    if not words or words[0] not in ACTS:
        return "no such act; 'help' lists them"
    usage, do = ACTS[words[0]]
    try:
        told = do(device, words[1:])
    except ValueError:
        return f"no: expected '{usage}'"
    except UnknownAct as error:
        return f"no: {error}"
    return f"ok {told}".rstrip()


def _remove_stale(path: Path) -> None:
    """Remove a socket at which nobody listens; anything else stays."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        try:
            tried.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)


class ControlSocket:
    """A Unix socket, readable and writable by its owner only, and the thread that serves it."""

    def __init__(self, path: Path, served: DeviceServer) -> None:
        """OSError if something is at the path already, or the socket cannot be made.

        A socket that a killed simulator left, at which nobody listens, is replaced.
        """
        self._path = path
        _remove_stale(path)
        self._served = served
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # never open to others, not even for a moment
        try:
            self._listening.bind(str(path))
        except OSError:
            self._listening.close()
            raise
        finally:
            os.umask(before)
        self._listening.listen(MOST_CLIENTS)
        self._listening.setblocking(False)
        self._clients: dict[socket.socket, bytes] = {}
        self._wake_read, self._wake_write = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._stopping = False
        self._thread = threading.Thread(target=self._live, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; the socket disappears."""
        self._stopping = True
        self._wake_write.send(b"x")
        self._thread.join(JOIN_S)
        self._wake_read.close()  # not by the thread: it may end before it is woken
        self._wake_write.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _live(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj is not self._wake_read:
                    assert isinstance(key.fileobj, socket.socket)
                    self._hear(key.fileobj)
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        self._listening.close()

    def _accept(self) -> None:
        try:
            client, _ = self._listening.accept()
        except OSError:
            return
        if len(self._clients) >= MOST_CLIENTS:
            client.close()
            return
        client.setblocking(False)
        self._clients[client] = b""
        self._selector.register(client, selectors.EVENT_READ)

    def _drop(self, client: socket.socket) -> None:
        del self._clients[client]
        self._selector.unregister(client)
        client.close()

    def _hear(self, client: socket.socket) -> None:
        try:
            data = client.recv(MOST_LINE)
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        *lines, rest = (self._clients[client] + data).split(b"\n")
        self._clients[client] = rest
        if len(rest) > MOST_LINE:
            self._drop(client)
            return
        for line in lines:
            text = line.decode(errors="replace")
            answer = self._served.call(partial(act, self._served.device, text))
            try:
                client.sendall(answer.encode() + b"\n")
            except OSError:  # it does not read, or is gone
                self._drop(client)
                return
