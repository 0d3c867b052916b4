"""The test host: the host's end of the wire in virtual time, at an emulated device of this process."""

from typing import Any

from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.errors import Refusal
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.notifications import EventReceived, Notification, RequestAnswered, RequestFailed
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.emulated_device import CommandValue, SteppedDevice

HOST_ID = b"TABLE-PC"
PEOPLE = (enum_number("Role", "floor"), enum_number("Role", "service"))
PERSON = 7  # the id of the person who holds the keys of floor and service


class CommandFailed(Exception):
    """The wire gave up on a command; the text is its name for why."""


class SimulatedHost(SteppedDevice):
    """A device with a host that owns it: commands go over the wire, each in somebody's role.

    A kind sets ``host`` in its constructor and carries bytes between it and the device.
    """

    host: HostProtocol

    def _make_keys(self) -> None:
        self._keys = {role: self.machine.random.randbytes(32) for role in (DEVICE, *PEOPLE)}
        self._numbers = CommandNumbers(HOST_ID)
        self.happened: list[Notification] = []

    def _new_host(self, serial: bytes | None) -> HostProtocol:
        return HostProtocol(self._keys[DEVICE], self._numbers, self.machine.random.randbytes, serial)

    def _person_key(self, role: int, serial: bytes) -> bytes:
        """The key that the device stores for a person, whose slot has the number of the role."""
        return slot_key(self._keys[role], serial, role)

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Send a command over the wire and wait for the answer; Refusal if the device refuses."""
        answer = self.ask(name, *values, role=role)
        self.on_command(name, values)
        return answer

    def ask(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Send any request of the schema; the answer's values. Refusal; CommandFailed without an answer."""
        message = CODEC.named(name)
        slot = enum_number("Role", role)
        by = None if role == "table" else (slot, self._keys[slot])
        number = self.host.request(message.id, message.pack(values), self._now_ms(), by=by)
        found: list[RequestAnswered | RequestFailed] = []

        def answered() -> bool:
            for each in self.happened:
                if isinstance(each, RequestAnswered | RequestFailed) and each.request_id == number:
                    found.append(each)
            return bool(found)

        self.run_until(answered)
        answer = found[0]
        self.happened.remove(answer)
        if isinstance(answer, RequestFailed):
            raise CommandFailed(answer.reason)
        if answer.status:
            error = CODEC.error(answer.status)
            assert error is not None
            raise Refusal(error.name, error.unpack(answer.body))
        reply = CODEC.find(answer.message)
        assert reply is not None
        return reply.unpack(answer.body)

    def events(self) -> list[tuple[str, tuple[int, ...]]]:
        """The events that reached the host, by name."""
        found = []
        for each in self.happened:
            if isinstance(each, EventReceived):
                message = CODEC.find(each.message)
                assert message is not None
                found.append((message.name, message.unpack(each.body)))
        return found
