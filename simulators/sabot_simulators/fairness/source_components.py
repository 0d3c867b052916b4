"""What simulated shuffles are made of: version and SHA-256 of the firmware's and the mechanism's sources."""

import hashlib
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

PARTS = {
    "firmware": "sabot_firmware",
    "protocol": "sabot_protocol",
    "mechanism": "sabot_simulators.mechanism",
}


def source_components() -> dict[str, dict[str, str]]:
    """Version and SHA-256 of each part; the hash is of all its Python files with their names."""
    return {
        name: {"version": version("sabot"), "sha256": _digest(files(package))}
        for name, package in PARTS.items()
    }


def _digest(folder: Traversable) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(_sources(folder, "")):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def _sources(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _sources(each, f"{path}{each.name}/")
        elif each.name.endswith(".py"):
            found.append((path + each.name, each.read_bytes()))
    return found
