"""The table PC's Ed25519 key, which signs the checkpoints of its journals and records.

It is the file ``pc.key`` beside the journals: 64 hexadecimal digits that only its owner can read. It is drawn
when the first journal is begun. Who has this key can sign another history; anchors outside this computer find
that (docs/evidence.md).
"""

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sabot_evidence.errors import PcKeyDamaged

NAME = "pc.key"
SIZE = 32


class PcKey:
    """A key that signs. Its ``repr`` does not tell it."""

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes: 64 bytes."""
        return self._key.sign(data)


def load_pc_key(folder: Path, random: Callable[[int], bytes] = os.urandom) -> PcKey:
    """The key of a folder of journals; the first call draws it. `PcKeyDamaged` for a file that is no key.

    Two programs that begin at the same moment get the same key: the file appears in one step.
    """
    path = folder / NAME
    try:
        if not path.exists():
            _draw(path, random(SIZE))
        text = path.read_text(encoding="ascii")
        shared = os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except (OSError, UnicodeDecodeError) as error:
        raise PcKeyDamaged(f"{path}: {error}") from error
    if shared:
        raise PcKeyDamaged(f"{path}: users other than its owner can read this key")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SIZE:
        raise PcKeyDamaged(f"{path}: not a key of {SIZE} bytes in hexadecimal")
    return PcKey(secret)


def _draw(path: Path, secret: bytes) -> None:
    """Write a new key file; one that another program made meanwhile stays."""
    new = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    try:
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii"
        ) as file:
            file.write(secret.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:  # also on a full disk: half a key must not stay behind
        new.unlink(missing_ok=True)
    if os.name == "posix":
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
