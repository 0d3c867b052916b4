"""A pytest plugin that collects the tests once and then tries each mutant in a forked process.

Standard input has one job a line, as JSON; standard output gets one result a line. A job names the file, its
text before and after, and the tests in their order. The child process replaces the code of the file's
functions, so nothing is imported again. The file itself is mutated too, for programs that tests start and for
MicroPython.
"""

import ast
import gc
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

SLOWER = 4.0  # a test that takes so many times its recorded duration, and HANG_S more, hangs
HANG_S = 15.0
KILLED, SURVIVED, HUNG, OUT_OF_TIME = "killed", "survived", "hung", "out of time"
NOTHING_FAILED = {"outcome": SURVIVED, "test": "", "why": "", "ran": 0}
UNFIT = "unfit"  # the functions of the two texts do not match: a new process must import the mutant


def functions_only(before: str, after: str) -> bool:
    """Whether two texts of a module differ only within functions."""
    return _without_bodies(before) == _without_bodies(after)


def _without_bodies(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return ast.dump(tree)


def replace_code(path: str, before: str, after: str) -> bool:
    """Give the functions of an imported file the code of its mutated text; False if the two do not match."""
    old, new = _codes(compile(before, path, "exec")), _codes(compile(after, path, "exec"))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    becomes = dict(zip(old, new, strict=True))
    found = False
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == path:
            code = becomes.get(each.__code__)
            if code is None or len(code.co_freevars) != len(each.__code__.co_freevars):
                return False
            each.__code__ = code
            found = True
    return found


def _codes(module: CodeType) -> list[CodeType]:
    """Every code object of a module, in the order of its text."""
    found = [module]
    for code in found:
        found += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


class ForkServer:
    """Runs jobs from standard input, each in a child process."""

    def __init__(self) -> None:
        self._jobs = os.fdopen(os.dup(0), encoding="utf-8")
        self._results = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        self._items: dict[str, pytest.Item] = {}
        self._passing: set[str] = set()  # tests that passed here without a mutant

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of the normal run of all collected tests."""
        self._items = {item.nodeid: item for item in session.items}
        self._say({"collected": len(self._items)})
        for line in self._jobs:
            self._say(self._try(json.loads(line), session))
        return True

    def _say(self, result: dict[str, Any]) -> None:
        self._results.write(json.dumps(result) + "\n")
        self._results.flush()

    def _try(self, job: dict[str, Any], session: pytest.Session) -> dict[str, Any]:
        """Run a job's tests while its file is mutated."""
        if not job["in_process"]:
            return self._run(job, session)
        file = Path(job["path"])
        times = file.stat()
        file.write_text(job["after"], encoding="utf-8")
        try:
            return self._run(job, session)
        finally:
            file.write_text(job["before"], encoding="utf-8")
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, job: dict[str, Any], session: pytest.Session) -> dict[str, Any]:
        """A failure counts if it repeats and the test passes without the mutant. Else other tests run on."""
        ends = time.monotonic() + job["limit_s"]
        tests = [test for wanted in job["tests"] for test in self._named(wanted)]
        ran, left_out = 0, ""
        result: dict[str, Any] = dict(NOTHING_FAILED)
        while tests:
            result = self._fork(job, tests, ends, session)
            ran += result["ran"]
            test = result["test"]
            if result["outcome"] not in (KILLED, HUNG):
                break
            hung = (
                result["outcome"] == HUNG
            )  # or the computer has become slow, which the test without the mutant tells
            again = hung or self._fork(job, [test], _in(job), session)["outcome"] != SURVIVED
            if again and self._passes(job, test, session, known=not hung):
                break
            tests = tests[tests.index(test) + 1 :]
            left_out += f"; {test} {result['outcome']}, not only with the mutant: {result['why']}"
            result = dict(NOTHING_FAILED)
        return result | {"ran": ran, "why": result["why"] + left_out}

    def _named(self, wanted: str) -> list[str]:
        """A collected test by its name, all cases of it, or all tests of a module or folder."""
        if wanted in self._items:
            return [wanted]
        return [test for test in self._items if test.startswith((wanted + "::", wanted + "/", wanted + "["))]

    def _passes(self, job: dict[str, Any], test: str, session: pytest.Session, known: bool) -> bool:
        """Whether a test passes without a mutant; a process that has imported the mutant cannot tell."""
        if job["in_process"] and not (known and test in self._passing):
            Path(job["path"]).write_text(job["before"], encoding="utf-8")
            found = self._fork(job | {"after": job["before"]}, [test], _in(job), session)
            Path(job["path"]).write_text(job["after"], encoding="utf-8")
            if found["outcome"] != SURVIVED:
                return False
            self._passing.add(test)
        return True

    def _fork(
        self, job: dict[str, Any], tests: list[str], ends: float, session: pytest.Session
    ) -> dict[str, Any]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.setsid()
            status = 1
            try:
                status = self._child(job, tests, writing, session)
            finally:
                os._exit(status)
        os.close(writing)
        outcome, test, ran, why = self._watch(reading, ends, job["seconds"])
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # the programs that its tests started, too
        os.waitpid(child, 0)
        return {"outcome": outcome, "test": test, "ran": ran, "why": why}

    def _watch(self, reading: int, ends: float, seconds: dict[str, float]) -> tuple[str, str, int, str]:
        """Follow the child: it tells each test that it begins, and how the run ended."""
        test, begun, ran, rest = "", time.monotonic(), 0, b""
        longest = max(seconds.values())
        while True:
            allowed = begun + SLOWER * seconds.get(test, longest) + HANG_S
            ready, _, _ = select.select([reading], [], [], max(min(ends, allowed) - time.monotonic(), 0.0))
            if not ready:
                if test and time.monotonic() >= allowed:
                    return HUNG, test, ran, ""
                return OUT_OF_TIME, test, ran, ""
            got = os.read(reading, 65536)
            if not got:
                return (KILLED, test, ran, "the process ended") if test else (UNFIT, "", 0, "")
            rest += got
            *lines, rest = rest.split(b"\n")
            for line in lines:
                word, _, text = line.decode().partition(" ")
                if word == "begin":
                    test, begun, ran = text, time.monotonic(), ran + 1
                elif word == UNFIT:
                    return UNFIT, "", 0, ""
                else:
                    return (KILLED if word == "failed" else SURVIVED), test, ran, text

    def _child(self, job: dict[str, Any], tests: list[str], writing: int, session: pytest.Session) -> int:
        def tell(text: str) -> None:
            os.write(writing, text.replace("\n", " ").encode()[:2000] + b"\n")

        if job["in_process"] and not replace_code(job["path"], job["before"], job["after"]):
            tell(UNFIT)
            return 0
        watcher = Watcher()
        session.config.pluginmanager.register(watcher)
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            tell(f"begin {item.nodeid}")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watcher.failure is not None:
                tell(f"failed {watcher.failure}")
                return 0
        tell("passed")
        return 0


def _in(job: dict[str, Any]) -> float:
    """The moment at which a single test must have ended."""
    end: float = time.monotonic() + job["limit_s"]
    return end


class Watcher:
    """Notes the first failure of a child."""

    failure: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Any phase of a test counts."""
        if report.failed and self.failure is None:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failure = f"{report.when}: {getattr(crash, 'message', '')}"[:300]


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Join the run: ``-p tests.mutants.fork_server``."""
    sys.stdout.flush()
    pluginmanager.register(ForkServer(), "sabot-mutants-fork-server")
