"""The disk of a table PC, as somebody reads it who has stolen it."""

import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from sabot_driver import connect
from sabot_driver.capturing_transport import CapturingTransport
from sabot_driver.journal import Journal
from sabot_driver.keyring import Keyring
from sabot_driver.transports import transport_for
from sabot_protocol.frame import Decoder
from sabot_protocol.host.capture import read_capture
from sabot_protocol.host.messages import Role, SetKey
from sabot_protocol.mac import hmac_sha256
from sabot_protocol.session import transcript

ANNAS_KEY = bytes(range(100, 132))
ANNAS_SLOT = 5


class Disk:
    """All that a table PC keeps of a session in which Anna was given her slot."""

    def __init__(self, folder: Path) -> None:
        self.keyring = Keyring(folder / "keys")
        self.journal = folder / "journal.db"
        stream = io.BytesIO()
        way = CapturingTransport(transport_for(f"sim://keys{os.getpid()}?seed=3"), stream, lambda: 0)
        with connect(way.url, keyring=self.keyring, transport=way, journal=Journal(self.journal)) as client:
            client.set_key(Role.FLOOR, ANNAS_KEY, 17, ANNAS_SLOT)
            self.serial = client.identity.serial
            self.given = [each.body for each in client.journal.commands() if each.message == SetKey.ID]
        self.capture = stream.getvalue()
        self.everything = self.capture + b"".join(
            path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".key"
        )

    def device_key(self) -> bytes:
        """The key in the keyring."""
        path = self.keyring.path(self.serial, simulator=True)
        return bytes.fromhex(path.read_text())

    def computed(self) -> Iterator[bytes]:
        """What an attacker who has the device key can compute from the bodies of set_key on this disk."""
        frames = [payload for each in read_capture(io.BytesIO(self.capture))
                  for payload, _ in Decoder().feed(each.frame) if payload]  # fmt: skip
        hellos = [each[2:] for each in frames if each[:2] == b"\x01\x05"]
        challenges = [each[2 + 16 :] for each in frames if each[:2] == b"\x02\x06"]
        bodies = [each[18:-8] for each in frames if each[0] == 3 and each[12] == SetKey.ID] + self.given
        numbers = [struct.unpack_from("<I", each, 14)[0] for each in frames if each[0] == 3]
        assert hellos
        assert bodies
        for hello in hellos:
            for challenge in challenges:
                pad_key = hmac_sha256(self.device_key(), b"pad" + transcript(hello, challenge))
                for number in set(numbers):
                    pad = hmac_sha256(pad_key, struct.pack("<BI", SetKey.ID, number))
                    for body in bodies:
                        yield bytes(a ^ b for a, b in zip(body[-32:], pad, strict=True))
