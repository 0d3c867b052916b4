"""Hashes of PINs and badge codes: scrypt (RFC 7914), with their parameters beside them."""

import hashlib
import hmac
import secrets

LOG2_N, R, P = 14, 8, 1  # 16 MB of memory a hash
SALT_SIZE = 16
HASH_SIZE = 32


def new_salt() -> bytes:
    """A random salt."""
    return secrets.token_bytes(SALT_SIZE)


def hash_secret(secret: str, salt: bytes) -> str:
    """The hash of a PIN or a badge code: ``scrypt$LOG2_N$R$P$SALT$HASH``."""
    digest = _scrypt(secret, salt, LOG2_N, R, P)
    return f"scrypt${LOG2_N}${R}${P}${salt.hex()}${digest.hex()}"


def matches(secret: str, kept: str) -> bool:
    """Whether a secret has this hash, compared in constant time; ValueError for what is no hash."""
    name, log2_n, r, p, salt, digest = kept.split("$")
    if name != "scrypt":
        raise ValueError(f"a hash of an unknown kind: {name}")
    found = _scrypt(secret, bytes.fromhex(salt), int(log2_n), int(r), int(p))
    return hmac.compare_digest(found, bytes.fromhex(digest))


def _scrypt(secret: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    n = 1 << log2_n
    return hashlib.scrypt(secret.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=HASH_SIZE)
