"""What a machine's self-test reported."""

from dataclasses import dataclass, field

from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import FaultRaised, Half, SelfTested


@dataclass
class SelfTestResult:
    """What both halves reported."""

    passed: dict[Half, bool] = field(default_factory=dict)
    faults: list[FaultRaised] = field(default_factory=list)

    def hear(self, message: Message | None) -> bool:
        """Take an event, if it is about the self-test; whether both halves have reported."""
        if isinstance(message, SelfTested):
            self.passed[message.half] = bool(message.passed)
        elif isinstance(message, FaultRaised):
            self.faults.append(message)
        return self.complete

    @property
    def complete(self) -> bool:
        """Whether both halves have reported."""
        return len(self.passed) == len(Half)

    @property
    def ok(self) -> bool:
        """Whether both halves passed and no fault was raised."""
        return not self.faults and all(self.passed.get(half, False) for half in Half)
