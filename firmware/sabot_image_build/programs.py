"""Runs external programs, with clear errors if one fails or is missing."""

import os
import shutil
import subprocess
from pathlib import Path


class BuildFailed(Exception):
    """A step of the build failed; the text names it and ends with the program's last output."""


class ToolMissing(BuildFailed):
    """A program that the build needs is missing; the text says how to install it."""


def need(program: str, package: str) -> str:
    """A program's path; ToolMissing if it is not installed."""
    found = shutil.which(program)
    if found is None:
        raise ToolMissing(f"{program} is missing: install it (Debian: apt-get install {package})")
    return found


def run(
    command: list[str | Path], log: Path, within: Path | None = None, more: dict[str, str] | None = None
) -> None:
    """Run a program with its output in a file; BuildFailed with the end of that file if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        done = subprocess.run(
            [str(each) for each in command],
            cwd=within,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(more or {})},
            check=False,
        )
    if done.returncode:
        lines = log.read_text(errors="replace").splitlines()
        told = [line for line in lines if "error" in line.lower()][:5] or lines[-15:]
        raise BuildFailed(f"{Path(command[0]).name} failed ({log}):\n" + "\n".join(told))
