"""The source of a build: a clean git checkout, its files, its history."""

import hashlib
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from sabot_lab.errors import SourceUnusable


class SourceTree:
    """A git checkout without changes; `SourceUnusable` for any other folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        changed = self._git("status", "--porcelain").splitlines()
        if changed:
            first = changed[0][3:]
            raise SourceUnusable(f"{folder}: {len(changed)} files differ from the commit, such as {first}")
        self.commit = self._git("rev-parse", "HEAD").strip()
        self.tree = self._git("rev-parse", "HEAD^{tree}").strip()
        self.files = sorted(filter(None, self._git("ls-files", "-z").split("\0")))

    def _git(self, *arguments: str) -> str:
        try:
            ran = subprocess.run(
                ["git", "-C", str(self.folder), *arguments], capture_output=True, text=True, check=True
            )
        except FileNotFoundError as error:
            raise SourceUnusable("git is not installed", "Install git.") from error
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", "") or str(error)
            raise SourceUnusable(f"{self.folder}: {why.strip()}") from error
        return ran.stdout

    def read(self, name: str) -> bytes:
        """The bytes of a file; `SourceUnusable` if there is none."""
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            words = f"{self.folder / name}: {error.strerror}"
            raise SourceUnusable(words, "Give the whole project.") from error

    def text(self, name: str) -> str:
        """The text of a file."""
        return self.read(name).decode("utf-8")

    def under(self, folder: str) -> list[str]:
        """The names of all files in a folder and below it."""
        return [name for name in self.files if name.startswith(folder + "/")]

    def hashes(self) -> str:
        """SHA-256 of every file, as ``sha256sum -c`` reads them."""
        return "".join(f"{hashlib.sha256(self.read(name)).hexdigest()}  {name}\n" for name in self.files)

    def packages(self) -> dict[str, str]:
        """One hash for each Python package: SHA-256 over the names and hashes of its files."""
        listed: list[str] = self.project()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        made = {}
        for folder in sorted(listed):
            whole = hashlib.sha256()
            for name in self.under(folder):
                whole.update(f"{hashlib.sha256(self.read(name)).hexdigest()}  {name}\n".encode())
            made[Path(folder).name] = whole.hexdigest()
        return made

    def project(self) -> dict[str, Any]:
        """What pyproject.toml says."""
        return tomllib.loads(self.text("pyproject.toml"))

    def last_release(self) -> str | None:
        """The newest tag ``v…`` before this commit; None if no release was made."""
        asked = ("--merged", "HEAD", "--no-contains", "HEAD", "--list", "v*", "--sort=-v:refname")
        tags = self._git("tag", *asked).split()
        return tags[0] if tags else None

    def changes(self, since: str | None) -> tuple[list[str], list[str]]:
        """One line for each commit since a release, newest first, and the files that differ."""
        told = self._git("log", "--format=%H %s", "HEAD" if since is None else f"{since}..HEAD").splitlines()
        commits = [each[:12] + each[40:] for each in told]  # git's own short form depends on the clone
        if since is None:
            return commits, self.files
        differ = self._git("diff", "--name-only", "-z", since, "HEAD").split("\0")
        return commits, sorted(filter(None, differ))
