"""Stubs of MicroPython's own modules for mypy, from the package micropython-rp2-stubs.

That package installs them beside everything else, where mypy does not look, and where some would hide
Python's own modules. The few that the board's modules import are copied into a folder of their own.
"""

import shutil
import sysconfig
from pathlib import Path

from sabot_image_build.modules import ROOT

NEEDED = ("machine.pyi", "micropython.pyi", "uctypes.pyi", "rp2", "_mpy_shed")
FOLDER = ROOT / "build" / "stubs"


def main() -> None:
    """Copy the stubs."""
    installed = Path(sysconfig.get_paths()["purelib"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in NEEDED:
        source, target = installed / name, FOLDER / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, target)


if __name__ == "__main__":
    main()
