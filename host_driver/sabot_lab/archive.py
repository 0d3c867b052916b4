"""The archive: a zip with a manifest of hashes, the same bytes for the same files, and one signature.

``MANIFEST.json`` has the SHA-256 of every other file. ``SIGNATURE.json`` is added by signing: a statement
with the SHA-256 of the manifest, and an Ed25519 signature over `SIGNED_AS` and the statement.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sabot_evidence.signing_key import SigningKey, signature_fits
from sabot_lab.errors import PackageBad

MANIFEST, SIGNATURE = "MANIFEST.json", "SIGNATURE.json"
SIGNED_AS = b"sabot lab package 1\n"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can have: no package tells when it was packed
MOST_BYTES = 1 << 30  # of all files of a package that is read at all


@dataclass(frozen=True, slots=True)
class Verified:
    """A package that fits: how many files, and who signed it for which build."""

    files: int
    key: str
    commit: str
    at_s: int


def pack(files: Mapping[str, bytes]) -> bytes:
    """The archive of some files with their manifest; equal files give equal bytes."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = json.dumps({"files": hashes, "v": 1}, sort_keys=True, indent=1).encode() + b"\n"
    return _zip({**files, MANIFEST: manifest})


def sign(package: bytes, key: SigningKey, commit: str, at_s: int) -> bytes:
    """The package with a signature; `PackageBad` if it is signed already or does not hold."""
    files = _read(package)
    if SIGNATURE in files:
        raise PackageBad("the package is signed already", "Build it anew, and sign that.")
    _check_files(files)
    told = {
        "at_s": at_s,
        "commit": commit,
        "key": key.public,
        "manifest": hashlib.sha256(files[MANIFEST]).hexdigest(),
        "v": 1,
    }
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    signature = {"signature": key.sign(SIGNED_AS + text.encode()).hex(), "statement": text}
    return _zip({**files, SIGNATURE: json.dumps(signature, sort_keys=True).encode() + b"\n"})


def commit_of(package: bytes) -> str:
    """The commit that a package is of, as its components say."""
    try:
        return str(json.loads(_read(package)["components.json"])["commit"])
    except (ValueError, KeyError, TypeError) as error:
        raise PackageBad("the package does not say which commit it is of") from error


def unsigned(package: bytes) -> bytes:
    """The package as it was before it was signed."""
    files = _read(package)
    files.pop(SIGNATURE, None)
    return _zip(files)


def verify(package: bytes, trusted: str | None = None) -> Verified:
    """Check every file, the manifest and the signature; `PackageBad` says what does not fit."""
    files = _read(package)
    if SIGNATURE not in files:
        raise PackageBad("the package is not signed")
    signed = files.pop(SIGNATURE)
    count = _check_files(files)
    try:
        kept = json.loads(signed)
        text, signature = kept["statement"], bytes.fromhex(kept["signature"])
        told = json.loads(text)
        key, commit, at_s = str(told["key"]), str(told["commit"]), int(told["at_s"])
        fits = told["manifest"] == hashlib.sha256(files[MANIFEST]).hexdigest()
    except (ValueError, KeyError, TypeError) as error:
        raise PackageBad(f"{SIGNATURE} cannot be read: {error!r}") from error
    if not fits:
        raise PackageBad("the signature is of another manifest")
    if not signature_fits(key, signature, SIGNED_AS + text.encode()):
        raise PackageBad("the signature does not fit")
    if trusted is not None and key != trusted.lower():
        raise PackageBad(f"the package is signed by {key[:16]}, which is not the key you trust")
    return Verified(count, key, commit, at_s)


def read_file(path: Path) -> bytes:
    """A package's bytes; `PackageBad` if there is no such file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PackageBad(f"{path}: {error.strerror}") from error


def _check_files(files: Mapping[str, bytes]) -> int:
    """How many files there are; each must be as the manifest says, and no other may be there."""
    try:
        hashes = dict(json.loads(files[MANIFEST])["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise PackageBad(f"{MANIFEST} is missing or cannot be read") from error
    there = set(files) - {MANIFEST}
    for name in sorted(there | set(hashes)):
        if name not in files:
            raise PackageBad(f"{name} is missing")
        if name not in hashes:
            raise PackageBad(f"{name} was added: the manifest does not have it")
        if hashlib.sha256(files[name]).hexdigest() != hashes[name]:
            raise PackageBad(f"{name} is changed: the manifest has another hash")
    return len(there)


def _zip(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:  # zlib's versions pack differently
        for name in sorted(files):
            about = zipfile.ZipInfo(name, EPOCH)
            about.create_system, about.external_attr = 3, 0o644 << 16
            archive.writestr(about, files[name])
    return made.getvalue()


def _read(package: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise PackageBad("two files of the package have one name")
            if sum(each.file_size for each in archive.infolist()) > MOST_BYTES:
                raise PackageBad("the package is larger than any that we make")
            return {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise PackageBad(f"not a package: {error}") from error
