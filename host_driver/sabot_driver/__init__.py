"""The host's driver of a Sabot shoe: ``connect(url)`` blocks, ``aio.connect(url)`` is for asyncio."""

from sabot_driver.certified import Certified
from sabot_driver.client import Client, Resolved, connect
from sabot_driver.credentials import Credential
from sabot_driver.journal import Journal
from sabot_driver.keyring import Keyring
from sabot_driver.link_state import LinkState, Notice
from sabot_driver.received_events import LostEvents, ReceivedEvent

__all__ = [
    "Certified",
    "Client",
    "Credential",
    "Journal",
    "Keyring",
    "LinkState",
    "LostEvents",
    "Notice",
    "ReceivedEvent",
    "Resolved",
    "connect",
]  # fmt: skip
