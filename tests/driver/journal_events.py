"""Events for a journal, without a device."""

from sabot_protocol.notifications import EventReceived

MEMORY = b"\x01\x02\x03\x04"


def event(n: int, boot_id: int = 1, body: bytes = b"\x01") -> tuple[bytes, EventReceived]:
    """Event ``n`` of a boot, with the memory it is of."""
    return MEMORY, EventReceived(boot_id, n, 1000 + n, 1_800_000_000, 5, 1, 0x80, body)
