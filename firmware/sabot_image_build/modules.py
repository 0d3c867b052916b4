"""The modules on the board, as ``manifest.py`` lists them, and the component that each belongs to."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sabot_image_build import sources

ROOT = Path(__file__).parent.parent.parent
MANIFEST = ROOT / "firmware" / "manifest.py"
BOARD = Path(__file__).parent / "SABOT_PICO"
GENERATED = ROOT / "build" / "image"  # where manifest.py looks for what the build writes
COMPONENTS_MODULE = "sabot_components.py"

# What a component is made of: modules by their place; whatever is in none of these is the controller's.
CARD_RECOGNITION = ("sabot_firmware/boards/rp2040/analogue.py",)
RNG_MODULES = ("__init__", "device_rng", "draws", "drbg", "entropy_source", "lag_test", "persistent_seed")
RNG = (
    "sabot_firmware/boards/rp2040/noise.py",
    *(f"sabot_firmware/rng/{name}.py" for name in RNG_MODULES),
)


@dataclass(frozen=True)
class Module:
    """One frozen file, and its name for ``import``."""

    path: Path
    name: str


@dataclass(frozen=True)
class ImageComponent:
    """A named part of the image, with a hash of all its sources."""

    name: str
    version: str
    sha256: bytes


def board_modules() -> list[Module]:
    """Every module of ours that the manifest freezes, in its order, without generated ones."""
    found: list[Module] = []

    def freeze(folder: str, files: str | Iterable[str]) -> None:
        if folder.startswith("$"):
            return  # MicroPython's own
        for name in (files,) if isinstance(files, str) else files:
            if name != COMPONENTS_MODULE:
                found.append(Module((MANIFEST.parent / folder / name).resolve(), name))

    exec(compile(MANIFEST.read_text(), str(MANIFEST), "exec"), {"freeze": freeze})
    return found


def components(version: str, micropython: str) -> list[ImageComponent]:
    """The three components of an image, with version and SHA-256 of their sources."""
    named: dict[str, list[Module]] = {"controller": [], "card_recognition": [], "rng": []}
    for module in board_modules():
        if module.name in CARD_RECOGNITION:
            named["card_recognition"].append(module)
        elif module.name in RNG:
            named["rng"].append(module)
        else:
            named["controller"].append(module)
    made = []
    for name, modules in named.items():
        extra = []
        if name == "controller":
            extra = [micropython.encode(), sources.recipe().encode()]
            extra += [path.read_bytes() for path in sorted(BOARD.iterdir())]
        made.append(ImageComponent(name, version, _digest(modules, extra)))
    return made


def components_module(made: list[ImageComponent]) -> str:
    """The module from which the board knows its components.

    It also holds them as text, by which ``sabot flash`` identifies an image before it writes it.
    """
    lines = ['"""What this image is made of; written by its build."""', "", "COMPONENTS = ("]
    for each in made:
        lines.append(f'    ("{each.name}", "{each.version}", {each.sha256!r}),')
    text = "".join(f"{each.name} {each.version} {each.sha256.hex()}\n" for each in made)
    whole = f"sabot-image 1\n{text}end\n".encode()
    return "\n".join([*lines, ")", "", f"TEXT = {whole!r}", ""])


def _digest(modules: list[Module], extra: list[bytes]) -> bytes:
    whole = hashlib.sha256()
    for module in sorted(modules, key=lambda each: each.name):
        text = module.path.read_bytes()
        whole.update(f"{module.name} {len(text)}\n".encode())
        whole.update(text)
    for data in extra:
        whole.update(b"%d\n" % len(data))
        whole.update(data)
    return whole.digest()
