"""Tries mutants with the tests that run their lines, in copies of the checkout, and keeps every result.

Results are lines of JSON that are only added to. A result counts while the mutated file is the same. A mutant
that survived is tried again when the tests that run it have changed.
"""

import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.mutants.coverage_map import BUILD, CoverageMap
from tests.mutants.fork_server import HUNG, KILLED, UNFIT, functions_only
from tests.mutants.mutations import Mutation
from tests.mutants.packages import CODE_FOLDERS, ROOT

LIMIT_S = 60.0
RESULTS = BUILD / "results.jsonl"
NOT_COVERED, BROKEN = "not covered", "broken"
DEAD = (KILLED, HUNG, BROKEN)


@dataclass(frozen=True, slots=True)
class Job:
    """A mutant and the tests that should notice it, fastest first."""

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    seconds: tuple[float, ...]
    in_process: bool
    """Whether replacing the code of functions is enough, so that nothing must be imported again."""
    limit_s: float = LIMIT_S

    @property
    def file_digest(self) -> str:
        """Changes with the mutated file."""
        return _short(self.before)

    @property
    def tests_digest(self) -> str:
        """Changes with the tests that run the mutant."""
        files = sorted({_file(test) for test in self.tests})
        return _short("\n".join([*sorted(self.tests), *(_digest(file) for file in files)]))


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one mutant in one run."""

    name: str
    file: str
    tests: str
    line: int
    outcome: str
    test: str
    """The test that failed, or that hung."""
    why: str
    ran: int
    took_s: float


def job_for(mutation: Mutation, found: CoverageMap, limit_s: float = LIMIT_S) -> Job:
    """A mutant with the tests that run its lines, as many of the fastest as the limit allows."""
    before = (ROOT / mutation.path).read_text(encoding="utf-8")
    after = mutation.apply(before)
    lines = range(mutation.line, mutation.line + before.count("\n", mutation.start, mutation.end) + 1)
    tests: list[str] = []
    left = limit_s
    for test in found.tests_for(mutation.path, lines):
        left -= found.seconds[test]
        if left < 0 and tests:
            break
        tests.append(test)
    inside = functions_only(before, after) and not found.at_import(mutation.path, lines)
    seconds = tuple(found.seconds[test] for test in tests)
    return Job(mutation.name, mutation.path, before, after, tuple(tests), seconds, inside)


def results() -> list[Result]:
    """Every result so far, the oldest first."""
    if not RESULTS.exists():
        return []
    return [Result(**json.loads(line)) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def is_due(job: Job, last: Result | None) -> bool:
    """Whether a mutant must be tried: there is no result, or what it depends on has changed."""
    if last is None or last.file != job.file_digest:
        return True
    return last.outcome not in DEAD and last.tests != job.tests_digest


def run(jobs: list[Job], workers: int, say: Callable[[str], None], keep_results: bool = True) -> list[Result]:
    """Try mutants in several processes; each result is on disk before the next mutant is tried."""
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    done: list[Result] = []
    lock = threading.Lock()

    def keep(result: Result) -> None:
        with lock:
            done.append(result)
            if keep_results:
                RESULTS.parent.mkdir(parents=True, exist_ok=True)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
            which = f"{result.name} ({result.test})"
            say(f"{len(done)}/{len(jobs)} {result.outcome} in {result.took_s:.0f} s: {which}")

    files = sorted({_file(test) for job in jobs if job.in_process for test in job.tests})
    threads = [
        threading.Thread(target=_work, args=(files, waiting, keep)) for _ in range(min(workers, len(jobs)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def _work(files: list[str], waiting: "queue.SimpleQueue[Job]", keep: Callable[[Result], None]) -> None:
    with Tree() as tree:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            begun = time.monotonic()
            found = tree.run(job, files)
            took_s = time.monotonic() - begun
            line = job.before[: _first_change(job.before, job.after)].count("\n") + 1
            keep(
                Result(
                    job.name, job.file_digest, job.tests_digest, line, found["outcome"],
                    found.get("test", ""), found.get("why", ""), found.get("ran", 0), took_s,
                )
            )  # fmt: skip


class Tree:
    """A copy of the checkout in which one mutant at a time lives, and the process that runs tests there."""

    def __init__(self) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="tree-", dir=BUILD))
        self._errors = self._folder / "build/errors.txt"
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Tree":
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
        )
        for name in listed.stdout.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._folder / name)
        (self._folder / "build").mkdir()
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", *CODE_FOLDERS, "tests"], cwd=self._folder, check=False
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, job: Job, files: list[str]) -> dict[str, Any]:
        """What becomes of a mutant."""
        if not job.tests:
            return {"outcome": NOT_COVERED}
        try:
            compile(job.after, job.path, "exec")
        except SyntaxError as error:
            return {"outcome": BROKEN, "why": str(error)}
        if job.in_process:
            if self._server is None:
                self._server = self._start(files)
            found = self._ask(self._server, job) if self._server is not None else {"outcome": UNFIT}
            if found["outcome"] != UNFIT:
                return found
        return self._run_anew(replace(job, in_process=False))

    def _run_anew(self, job: Job) -> dict[str, Any]:
        """Import the mutant in a new process."""
        file = self._folder / job.path
        times = file.stat()
        file.write_text(job.after, encoding="utf-8")
        try:
            server = self._start(sorted({_file(test) for test in job.tests}))
            if server is None:
                return {"outcome": KILLED, "test": "", "why": "the tests cannot be imported"}
            found = self._ask(server, job)
            _end(server)
            return found
        finally:
            file.write_text(job.before, encoding="utf-8")
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _ask(self, server: "subprocess.Popen[str]", job: Job) -> dict[str, Any]:
        values = {
            "path": str(self._folder / job.path),
            "before": job.before,
            "after": job.after,
            "tests": job.tests,
            "seconds": dict(zip(job.tests, job.seconds, strict=True)),
            "limit_s": job.limit_s,
            "in_process": job.in_process,
        }
        pipe: IO[str] | None = server.stdin
        assert pipe is not None
        pipe.write(json.dumps(values) + "\n")
        pipe.flush()
        found = _line(server)
        if found is None:
            raise RuntimeError(
                f"the process that runs the tests of {job.name} ended: {self._errors.read_text()}"
            )
        return found

    def _start(self, files: list[str]) -> "subprocess.Popen[str] | None":
        """A process that has collected the tests; None if it could not."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(str(self._folder / each) for each in CODE_FOLDERS),
            "PYTHONDONTWRITEBYTECODE": "1",  # a mutant's byte code must not outlive it
            "OPENBLAS_NUM_THREADS": "1",
        }
        environment.pop("SABOT_NO_SKIPS", None)
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
            "-p", "tests.mutants.fork_server", f"--basetemp={self._folder}/build/tests", *files,
        ]  # fmt: skip
        with self._errors.open("w") as errors:
            server = subprocess.Popen(
                command, cwd=self._folder, env=environment, text=True, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        if _line(server) is None:
            _end(server)
            return None
        return server

    def _stop(self) -> None:
        if self._server is not None:
            _end(self._server)
            self._server = None


def _line(server: "subprocess.Popen[str]") -> "dict[str, Any] | None":
    assert server.stdout is not None
    for line in _lines(server.stdout):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return None


def _lines(pipe: "IO[str]") -> Iterator[str]:
    while line := pipe.readline():
        yield line


def _end(server: "subprocess.Popen[str]") -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    server.stdout.close()


def _first_change(before: str, after: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _digest(path: str) -> str:
    if (ROOT / path).is_dir():
        return ""
    return _short((ROOT / path).read_text(encoding="utf-8"))
