"""The host's driver of a Sabot shoe: ``connect(url)`` blocks, ``aio.connect(url)`` is for asyncio."""

from sabot_driver.client import Client, Resolved, connect
from sabot_driver.credentials import Credential
from sabot_driver.events import Event, LostEvents
from sabot_driver.journal import Journal
from sabot_driver.keyring import Keyring
from sabot_driver.states import Link, Notice

__all__ = [
    "Client", "Credential", "Event", "Journal", "Keyring", "Link", "LostEvents", "Notice", "Resolved",
    "connect",
]  # fmt: skip
