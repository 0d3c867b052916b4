"""What every test may use."""

import gc
import os
import signal
import tempfile
import zlib
from pathlib import Path

import pytest

from sabot_driver import discovery
from sabot_simulators.micropython import find_micropython

pytest_plugins = ["tests.sweeps"]

ROOT = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")
ROOM = 2 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Programs that tests start can be interrupted, also where a shell started pytest in the background.

    Such a shell has SIGINT ignored, and every child process inherits that.
    """
    _keep_files_in_memory(config)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_files_in_memory(config: pytest.Config) -> None:
    """Temporary files are in memory where that has room: there the thousands of writes to disk take no time.

    ``TMPDIR`` or ``--basetemp`` chooses another place.
    """
    if os.environ.get("TMPDIR") or config.getoption("basetemp") or not MEMORY.is_dir():
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In workers, files with slow tests come first, those of all folders mixed; the quick ones are last.

    Tests of one folder are of one kind: some wait for programs, some compute. Mixed, they keep the cores
    busy. The quick tests at the end let all workers finish at the same time.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: (item.path not in slow, zlib.crc32(item.path.name.encode()), item.path))


def pytest_collection_finish() -> None:
    """Tests begin: garbage collections are fewer, and do not look at the thousands of collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(30_000, 10, 10)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With SABOT_NO_SKIPS set, a skipped test is a failure: there every tool must be installed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("SABOT_NO_SKIPS"):
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped:
        for report in skipped:
            reporter.write_line(f"SABOT_NO_SKIPS: {report.nodeid} was skipped: {report.longrepr}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have recorded: ``record_property("figure", text)``."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(str(text))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests read the project's files by their names from the root, on MicroPython as well."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def micropython() -> str:
    """The MicroPython to run tests on; skips where there is none."""
    found = find_micropython()
    if found is None:
        pytest.skip("micropython is not installed")
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of our own, and no device of this computer."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SABOT_HOME", str(folder))
    monkeypatch.setattr(discovery, "candidates", lambda: [])
    return folder
