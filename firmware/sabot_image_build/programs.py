"""Other programs, and what is said when one fails or is not there."""

import os
import shutil
import subprocess
from pathlib import Path


class BuildFailed(Exception):
    """A step of the build did not work; says which, and what its program printed last."""


class ToolMissing(BuildFailed):
    """A program that the build needs is not on this computer; says how to get it."""


def need(program: str, package: str) -> str:
    """A program's path; ToolMissing if there is none."""
    found = shutil.which(program)
    if found is None:
        raise ToolMissing(f"{program} is missing: install it (Debian: apt-get install {package})")
    return found


def run(
    command: list[str | Path], log: Path, within: Path | None = None, more: dict[str, str] | None = None
) -> None:
    """Run a program, all it prints going to a file; BuildFailed with the end of that if it fails."""
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
