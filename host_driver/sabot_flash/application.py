"""The application as files: what ``make firmware`` lays into ``build/firmware/mpy``."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from sabot_flash.errors import BadImage, NoApplication
from sabot_flash.identity import Component, components_in

ENTRY = ("main.py", "main.mpy")
COMPONENTS = "sabot_components.mpy"
SLOT = "sabot-"
"""Every folder of an application on a board begins with this."""


@dataclass(frozen=True)
class Application:
    """Files by their place below the application's folder."""

    files: dict[str, bytes]

    @classmethod
    def read(cls, folder: Path) -> "Application":
        """The application in a folder; NoApplication if there is none, BadImage if it is not whole."""
        if not folder.is_dir():
            raise NoApplication(f"there is no folder {folder}")
        files = {
            PurePosixPath(path.relative_to(folder)).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in (".py", ".mpy")
        }
        if not any(name in files for name in ENTRY):
            raise NoApplication(f"there is no application in {folder}: it has no main.py")
        made = cls(files)
        for name, data in files.items():
            if name.endswith(".mpy") and (len(data) < 4 or data[:1] != b"M"):
                raise BadImage(f"{name} is no byte code")
        if len(made.byte_codes) > 1:
            raise BadImage(f"the files of {folder} were made by different versions of mpy-cross")
        return made

    @cached_property
    def digest(self) -> str:
        """A hash of every name and every byte."""
        whole = hashlib.sha256()
        for name, data in sorted(self.files.items()):
            whole.update(f"{name} {len(data)}\n".encode())
            whole.update(data)
        return whole.hexdigest()

    @property
    def slot(self) -> str:
        """The folder it has on a board: another application, another folder."""
        return SLOT + self.digest[:12]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    @property
    def byte_codes(self) -> set[int]:
        """The versions of its byte code."""
        return {data[1] for name, data in self.files.items() if name.endswith(".mpy")}

    @property
    def folders(self) -> list[str]:
        """Every folder below the application's own, parents first."""
        found = {str(parent) for name in self.files for parent in PurePosixPath(name).parents}
        return sorted(found - {"."})

    def components(self) -> tuple[Component, ...]:
        """What it says it is made of; BadImage if it does not say."""
        return components_in(self.files.get(COMPONENTS, b""))
