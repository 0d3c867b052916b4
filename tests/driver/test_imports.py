"""Who may import whom, and that a table PC without POSIX can import the driver."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sabot_cli.lazy_command import LazyCommand
from sabot_cli.main import COMMANDS
from sabot_simulators.cli_commands import FAIRNESS, SIMULATE

pytestmark = pytest.mark.slow

POSIX = ("fcntl", "termios", "tty", "pty", "grp", "pwd", "posix_ipc", "resource", "syslog", "readline")
MODULES = (
    "sabot_driver", "sabot_driver.aio", "sabot_driver.discovery", "sabot_driver.user_files",
    "sabot_driver.capturing_transport",
    "sabot_driver.usb", "sabot_driver.pruning", "sabot_cli.main", "sabot_simulators.python_device",
    "sabot_simulators.micropython_device",
    "sabot_simulators.endpoints.tcp", "sabot_simulators.endpoints.emulated_usb",
    "sabot_simulators.endpoints.urls.protocol_sim", "sabot_simulators.endpoints.simulate",
)  # fmt: skip

BLOCKED = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in {posix!r}:
            raise ImportError(name + " is not there on Windows")

import os, selectors, socket, subprocess, sqlite3, asyncio  # what Windows has of its own, by its own means
import serial.serialutil
sys.meta_path.insert(0, Blocked())
for name in {posix!r}:
    sys.modules.pop(name, None)

for name in {modules!r}:
    importlib.import_module(name)
"""


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("host_driver/sabot_driver", {"sabot_firmware", "sabot_simulators", "sabot_cli", "click", "rich"}),
        ("host_driver/sabot_cli", {"sabot_firmware", "sabot_simulators"}),
        ("host_driver/sabot_session", {"sabot_firmware", "sabot_simulators", "sabot_cli", "click", "rich"}),
    ],
)
def test_arrows_point_one_way(root: Path, folder: str, forbidden: set[str]) -> None:
    for path in (root / folder).rglob("*.py"):
        assert imports(path) & forbidden == set(), f"{path.name} imports what it must not"


def test_the_ends_know_nothing_of_firmware_and_mechanism(root: Path) -> None:
    device = {"served_python.py", "control_socket.py"}  # the device itself and those at it
    for path in (root / "simulators/sabot_simulators/endpoints").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        knows = "sabot_firmware" in text or "mechanism.simulated_machine" in text
        assert knows == (path.name in device), path.name


def test_nothing_on_the_import_path_needs_posix() -> None:
    program = BLOCKED.format(posix=POSIX, modules=MODULES)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_block_is_a_block() -> None:
    program = BLOCKED.format(posix=POSIX, modules=("sabot_simulators.endpoints.pseudo_terminal",))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "is not there on Windows" in ran.stderr


LOADED = """
import sys
from sabot_cli.main import run
assert run(["--help"]) == 0
print(",".join(sorted({name.split(".")[0] for name in sys.modules})))
"""


def test_the_list_of_commands_loads_none_of_them() -> None:
    """``sabot --help`` needs no driver, no rules and no simulator."""
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split(","))
    assert "click" in loaded
    heavy = {"sabot_driver", "sabot_protocol", "sabot_table", "pydantic", "construct", "rich", "serial"}
    assert loaded & heavy == set()


ADDED = {"simulate": SIMULATE, "fairness": FAIRNESS}


@pytest.mark.parametrize(("name", "command"), [*COMMANDS.items(), *ADDED.items()])
def test_the_list_of_commands_says_what_each_says_of_itself(name: str, command: LazyCommand) -> None:
    loaded = command.load(name)
    assert loaded.name == name
    words = " ".join((loaded.help or "").split())
    assert words.startswith(command.summary.rstrip(".")), "the summary is the beginning of the command's help"


def test_sabot_leaves_no_core_dumps() -> None:
    """A core dump would hold keys."""
    program = (
        "import resource, sys, sabot_cli.main as m\n"
        "m.run = lambda: sys.stdout.write(str(resource.getrlimit(resource.RLIMIT_CORE)[0]))\n"
        "m.main()"
    )
    ran = subprocess.run(
        ["sh", "-c", f"ulimit -c unlimited 2>/dev/null; exec {sys.executable} -c '{program}'"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "0", ran.stderr


TOOLS = sorted(
    path
    for folder in ("host_driver", "simulators")
    for path in (Path(__file__).parents[2] / folder).rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)
WITHOUT_KEYS = {
    "record_page.py": "writes a page of the docs",
    "diagram.py": "writes a page of the docs",
    "piped_board.py": "runs on MicroPython; the program that starts it has set the limit",
    "failing_board.py": "runs on MicroPython; the program that starts it has set the limit",
}


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.name)
def test_a_tool_that_is_started_by_name_leaves_no_core_dumps(path: Path) -> None:
    """``python -m`` does not go through ``sabot``. Each tool sets the limit before anything else."""
    if path.name in WITHOUT_KEYS:
        return
    begins = path.read_text(encoding="utf-8").split('if __name__ == "__main__":\n')[1]
    assert begins.startswith("    forbid_core_dumps()\n")


@pytest.mark.parametrize("module", ["sabot_evidence.verifier", "sabot_simulators.soak"])
def test_the_limit_holds_in_a_tool(module: str) -> None:
    program = (
        "import atexit, resource, runpy, sys\n"
        "atexit.register(lambda: sys.stderr.write(str(resource.getrlimit(resource.RLIMIT_CORE))))\n"
        f"sys.argv = ['x', '--help']\nrunpy.run_module('{module}', run_name='__main__')\n"
    )
    ran = subprocess.run(
        ["sh", "-c", f'ulimit -c unlimited 2>/dev/null; exec {sys.executable} -W ignore -c "{program}"'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr.endswith("(0, 0)"), ran.stderr
