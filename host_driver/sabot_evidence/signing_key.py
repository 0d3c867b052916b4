"""Ed25519 keys that people keep away from the table PC: the floor's, the house's, the maker's.

A key file is PEM (PKCS #8), as other tools read it, under a passphrase if one was given. Only its owner can
read the file. Public keys are 64 hexadecimal digits.
"""

import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from sabot_evidence.errors import SigningKeyUnusable


class SigningKey:
    """A key that signs. Its ``repr`` does not tell it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes: 64 bytes."""
        return self._key.sign(data)


def draw_signing_key(path: Path, passphrase: bytes = b"") -> SigningKey:
    """A new key in a new file; `SigningKeyUnusable` if the file is there or cannot be written."""
    key = Ed25519PrivateKey.generate()
    lock: KeySerializationEncryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise SigningKeyUnusable(f"{path}: there is a file of this name", "Name a new file.") from error
    except OSError as error:
        raise SigningKeyUnusable(f"{path}: {error.strerror}") from error
    return SigningKey(key)


def read_signing_key(path: Path, passphrase: bytes = b"") -> SigningKey:
    """The key of a file. `SigningKeyUnusable` says what is wrong with the file or the passphrase."""
    try:
        text = path.read_bytes()
        shared = os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except OSError as error:
        raise SigningKeyUnusable(f"{path}: {error.strerror}") from error
    if shared:
        raise SigningKeyUnusable(f"{path}: users other than its owner can read this key", "chmod 600 it.")
    try:
        key = load_pem_private_key(text, passphrase or None)
    except TypeError as error:
        words = "has a passphrase, and none was given" if not passphrase else "has no passphrase"
        raise SigningKeyUnusable(f"{path}: this key {words}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningKeyUnusable(f"{path}: no key, or another passphrase") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningKeyUnusable(f"{path}: not an Ed25519 key")
    return SigningKey(key)


def is_locked(path: Path) -> bool:
    """Whether a key file needs a passphrase; False for a file that cannot be read."""
    try:
        return b"ENCRYPTED" in path.read_bytes()
    except OSError:
        return False


def signature_fits(public: str, signature: bytes, data: bytes) -> bool:
    """Whether the signature is this public key's, over these bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
