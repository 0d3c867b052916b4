"""Builds MicroPython's unix port with the C module ``alloc_faults``, from the sources of the board's image.

``python -m sabot_simulators.allocation_faults.unix_build`` prints the path of the program.
"""

import hashlib
import sys
from pathlib import Path

from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_image_build import sources
from sabot_image_build.build import BUILD
from sabot_image_build.programs import BuildFailed, need, run

C_MODULE = Path(__file__).parent / "c_module"
SETTINGS = ("STRIP=", "MICROPY_PY_BTREE=0", "MICROPY_PY_FFI=0", "MICROPY_PY_SSL=0", "MICROPY_PY_BLUETOOTH=0")


def build_micropython(cache: Path = BUILD) -> Path:
    """The program; unchanged inputs are not built again. BuildFailed if a step fails."""
    into = cache / "micropython-alloc-faults"
    program, record = into / "micropython", into / "inputs"
    inputs = _inputs()
    if not program.exists() or not record.exists() or record.read_text() != inputs:
        need("gcc", "gcc")
        need("make", "make")
        tree = sources.micropython_tree(cache)
        # The port looks for modules in the folders below USER_C_MODULES.
        modules = f"USER_C_MODULES={C_MODULE.parent}"
        options = ["-j2", "FROZEN_MANIFEST=", modules, f"BUILD={into}", *SETTINGS]
        run(["make", "-C", tree / "ports" / "unix", *options], cache / "micropython-alloc-faults.log")
        record.write_text(inputs)
    return program


def _inputs() -> str:
    parts = [sources.recipe(), *SETTINGS, *(each.read_text() for each in sorted(C_MODULE.iterdir()))]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def main() -> int:
    """Build it; 1 if a step failed."""
    console = Console()
    try:
        console.print(str(build_micropython()), highlight=False)
    except BuildFailed as failed:
        console.print(str(failed), markup=False, highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
