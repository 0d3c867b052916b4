"""A pytest plugin: notes which lines each test runs, in this process and in the programs it starts."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

CONTEXT = "SABOT_MUTANTS_TEST"
"""Environment variable with the running test; programs that a test starts take their context from it."""
FOLDER = "SABOT_MUTANTS_FOLDER"
"""Environment variable with the folder for coverage's files."""


class Recorder:
    """Measures with one context a test, and notes how long each test took and whether it passed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        os.environ[CONTEXT] = ""
        os.environ["COVERAGE_PROCESS_START"] = config = str(folder / "coveragerc")
        self._coverage = coverage.Coverage(config_file=config)
        self._coverage.start()  # now, before anything of ours is imported

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure one test."""
        self._coverage.switch_context(item.nodeid)
        os.environ[CONTEXT] = item.nodeid
        begun = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - begun
        self._coverage.switch_context("")
        os.environ[CONTEXT] = ""
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail or are skipped: they tell nothing of a mutant."""
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was measured."""
        self._coverage.stop()
        self._coverage.save()
        passed = {test: took for test, took in self.seconds.items() if test not in self.failed}
        (self._folder / "tests.json").write_text(json.dumps(passed), encoding="utf-8")


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Join the run: ``-p tests.mutants.coverage_plugin``."""
    pluginmanager.register(Recorder(Path(os.environ[FOLDER])), "sabot-mutants-recorder")
