"""The board's program with listeners inside: what it really emitted and executed, whatever reached a host.

``watch`` replaces four classes of ``boards.rp2040.loop`` and ``program`` by subclasses that only listen.
Everything else is the shipped program.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from sabot_firmware.controller import Controller
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceProtocol
from sabot_protocol.errors import MemoryFailed, Refusal
from sabot_protocol.event_store import EventStore
from sabot_protocol.wire_constants import EVENT_HEADER_SIZE

Event = tuple[int, bytes]
"""An event's message and its values, as packed."""


@dataclass
class Life:
    """The program from one start to the next."""

    protocol: DeviceProtocol
    emitted: list[Event] = field(default_factory=list)
    """Every event of this life; the first has number 1."""
    emit_broken_off: bool = False
    """The power failed while an event was being numbered: it may count as made."""

    @property
    def names(self) -> tuple[bytes, int]:
        """Memory id and boot id; nothing if the power failed before they were read."""
        return getattr(self.protocol, "memory_id", b""), getattr(self.protocol, "boot_id", 0)

    @property
    def events(self) -> EventStore | None:
        """The events that it keeps; None if the power failed before there were any."""
        return getattr(self.protocol, "events", None)


@dataclass(frozen=True)
class Execution:
    """A command that reached the device's controller or the wire's own handler."""

    host_id: bytes
    number: int
    name: str
    done: bool
    """False if it was refused."""


@dataclass
class DeviceTruth:
    """What the device really did, over all its lives."""

    lives: list[Life] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Exceptions that ended the program's life."""
    controller: Controller | None = None
    """The controller of the present life."""
    on_report: Callable[[str, tuple[Any, ...]], None] = lambda name, values: None
    """Called when the controller reports something."""
    on_executed: Callable[[str, tuple[Any, ...]], None] = lambda name, values: None
    """Called when a command was accepted."""

    @property
    def life(self) -> Life | None:
        """The present one."""
        return self.lives[-1] if self.lives else None


def listening_add(store: EventStore, life: Life) -> Callable[..., int]:
    """The store's ``add``, which notes in this life what was kept."""
    add = store.add

    def listening(message: int, quality: int, body: bytes, sure: bool = False) -> int:
        life.emit_broken_off = True
        try:
            n = add(message, quality, body, sure)
        except MemoryFailed:
            life.emit_broken_off = False  # it was not numbered; the store says that it is unsaved
            raise
        life.emit_broken_off = False
        life.emitted.append((message, body[EVENT_HEADER_SIZE:]))
        return n

    return listening


def watch(program: ModuleType, truth: DeviceTruth) -> None:
    """Have everything that this program does noted in ``truth``."""
    loop = program.Device.__init__.__globals__  # of ``boards.rp2040.loop``, imported anew with the program
    live_controller, program_class = loop["LiveController"], program.Program

    class ListeningProtocol(DeviceProtocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            truth.controller = None
            truth.lives.append(Life(self))
            super().__init__(*arguments, **named)

        @property
        def events(self) -> EventStore:
            """Every event passes through it, those that follow from another one included."""
            return self._listening_store

        @events.setter
        def events(self, store: EventStore) -> None:
            self._listening_store = store
            store.add = listening_add(store, truth.lives[-1])  # type: ignore[method-assign]

    class ListeningPort(DevicePort):
        def __init__(self, device: DeviceProtocol) -> None:
            super().__init__(device)
            requests = self.requests
            carry_out = requests._carry_out

            def listening(message: Any, values: Any, request_id: int) -> Any:
                if message.kind != "command":
                    return carry_out(message, values, request_id)
                try:
                    answer = carry_out(message, values, request_id)
                except Refusal:
                    truth.executions.append(Execution(self.host_id, request_id, message.name, False))
                    raise
                truth.executions.append(Execution(self.host_id, request_id, message.name, True))
                truth.on_executed(message.name, tuple(values))
                return answer

            requests._carry_out = listening  # type: ignore[method-assign]

    class ListeningController(live_controller):  # type: ignore[misc,valid-type]
        def __init__(self, board: Any, memory: Any, rng: Any, report: Any, *others: Any) -> None:
            def heard(name: str, *values: Any) -> None:
                report(name, *values)
                truth.on_report(name, values)

            super().__init__(board, memory, rng, heard, *others)
            truth.controller = self

    class ListeningProgram(program_class):  # type: ignore[misc,valid-type]
        def _keep(self, error: Exception) -> None:
            truth.crashes.append(repr(error))
            super()._keep(error)

    loop |= {
        "DeviceProtocol": ListeningProtocol,
        "DevicePort": ListeningPort,
        "LiveController": ListeningController,
    }
    program.__dict__["Program"] = ListeningProgram
