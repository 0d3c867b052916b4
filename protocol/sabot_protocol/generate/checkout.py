"""A generated file, and the checkout it is in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Artefact:
    """One generated file."""

    path: str
    """Where it goes, from the root of the repository."""
    render: Callable[[], str]
    """Its text, made anew from the schema."""

    def is_stale(self, root: Path) -> bool:
        """Whether the file is missing or is not what the schema gives now."""
        file = root / self.path
        return not file.is_file() or file.read_bytes() != self.render().encode()

    def write(self, root: Path) -> None:
        """Put the file where it goes, whole or not at all."""
        content = self.render().encode()
        file = root / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_bytes(content)
        fresh.replace(file)


class NoCheckout(Exception):
    """This package is not in a checkout of the repository, so there is nowhere to write to."""


def repository_root() -> Path:
    """The folder of this checkout that holds pyproject.toml."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "protocol" / "sabot_protocol").is_dir():
            return folder
    raise NoCheckout(
        f"{Path(__file__).parent} is not in a checkout of Sabot: generate in a clone of the repository"
    )
