"""Small applications for a board, and what it says when it has started one."""

from tests.flash.board import UnixBoard

from sabot_flash.application import Application
from sabot_image_build import modules
from sabot_image_build.build import build_file_system
from sabot_image_build.modules import components_module

MAIN = b"import first\nimport more.second\nprint('application', first.NAME, more.second.NAME)\n"


def application(name: str, size: int = 20_000) -> Application:
    """A small application whose files all say which one they are of."""
    text = f"NAME = {name!r}\n".encode()
    told: dict[str, bytes] = {}
    exec(components_module([modules.ImageComponent("controller", name, bytes(32))]), told)
    files = {
        "first.py": text + b"#" * size,
        "main.py": MAIN,
        "more/__init__.py": b"",
        "more/second.py": text + b"#" * 700,
        "sabot_components.txt": told["TEXT"],
    }
    return Application.check(build_file_system(files))


OLD, NEW = application("old"), application("new", 16_000)


def boots(board: UnixBoard) -> bytes:
    """What the board says after a start, before its prompt."""
    return board.wait_for(b">>> ").split(b"MicroPython")[0].strip()
