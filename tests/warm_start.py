"""Programs that start in milliseconds: each is forked from a process that has loaded every module of ours.

A program started so is a process of its own: it has its own memory, files, signals and exit code, it can be
killed, and it may have a terminal. Only its modules were loaded before. `tests/driver/test_cli.py`
and `tests/driver/test_imports.py` start the installed command itself.

Linux only: a program becomes a child of the process that asked for it, because that process adopts orphans
(``PR_SET_CHILD_SUBREAPER``). So `subprocess.Popen` can wait for it.
"""

import ctypes
import fcntl
import gc
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from sabot_cli.lazy_command import LazyCommand
from sabot_cli.main import ADDED, COMMANDS, run

LOADED_TOO = ("sabot_serve.running", "sabot_simulators.endpoints.device_server")
"""Modules that commands load at their first use."""

ROOT = Path(__file__).parent.parent
PR_SET_CHILD_SUBREAPER = 36
LARGEST_REQUEST = 1 << 18


class WarmPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` of ``sabot`` with the given arguments; it starts without loading modules again.

    With `program` it is another one instead: a module by name, or a script by path. Only `cwd`, `env`,
    `stdin`, `stdout`, `stderr` and the options of text are followed. With `terminal=True` standard input is a
    terminal, and the program becomes the leader of its session.
    """

    def __init__(
        self, arguments: list[str], *, program: str = "", terminal: bool = False, **options: Any
    ) -> None:
        self._program, self._terminal = program, terminal
        super().__init__(arguments, **options)

    def _execute_child(self, args: list[str], *more: Any) -> None:
        """Have the program forked instead of executed."""
        cwd, env, streams = more[4], more[5], more[9:15]
        given = (streams[0], streams[3], streams[5])
        request = {
            "program": self._program,
            "arguments": list(args),
            "cwd": os.fspath(cwd or os.getcwd()),
            "env": {**(os.environ if env is None else env)},
            "terminal": self._terminal,
        }
        try:
            files = [number if fd == -1 else fd for number, fd in enumerate(given)]
            socket.send_fds(_server(), [json.dumps(request).encode()], files)
            self.pid = json.loads(_server().recv(64))
            self._child_created = True
        finally:
            self._close_pipe_fds(*streams)  # type: ignore[attr-defined]


def warm_run(
    arguments: list[str], timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of ``sabot``; the output is captured as text."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    with WarmPopen(arguments, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@cache
def _server() -> socket.socket:
    """The socket of this process's server, which ends together with this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST_REQUEST)
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.warm_start import serve; serve()"
    command = [sys.executable, "-c", program, str(theirs.fileno())]
    theirs.set_inheritable(True)
    os.posix_spawn(sys.executable, command, os.environ)
    theirs.close()
    return ours


def serve() -> None:
    """Load every command, then fork a program for each request, until the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    _load()
    gc.collect()
    gc.freeze()
    while True:
        text, files, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 3)
        if not text:
            return
        requests.send(json.dumps(_fork(requests, json.loads(text), files)).encode())
        for fd in files:
            os.close(fd)


def _load() -> None:
    added = [entry.load() for entry in entry_points(group=ADDED)]
    lazy = [each for each in (*COMMANDS.values(), *added) if isinstance(each, LazyCommand)]
    for name in (*(each.module for each in lazy), *LOADED_TOO):
        import_module(name)


def _fork(requests: socket.socket, request: dict[str, Any], files: list[int]) -> int:
    """Fork a program; its process id, once its parent is whoever asked for it."""
    told, tell = os.pipe()
    between = os.fork()
    if between == 0:
        program = os.fork()
        if program == 0:
            os.close(told)
            os.close(tell)
            requests.close()
            _become(request, files)
        os.write(tell, str(program).encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(between, 0)
    with open(told, "rb") as answer:
        return int(answer.read())


def _run(program: str, arguments: list[str]) -> int:
    """Run ``sabot``, or the module or script; its exit code."""
    if not program:
        return run(arguments)
    sys.argv = [program, *arguments]
    try:
        if program.endswith(".py"):
            sys.path[0] = str(Path(program).parent)
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__")
    except SystemExit as end:
        if not isinstance(end.code, str):
            return end.code or 0
        sys.stderr.write(end.code + "\n")
        return 1
    return 0


def _become(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Be a program that was just started."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request["terminal"]:
            os.setsid()
            fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
        for number, fd in enumerate(files):
            os.dup2(fd, number)
        for fd in files:
            if fd > 2:
                os.close(fd)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        at_once = os.isatty(1) or "PYTHONUNBUFFERED" in os.environ
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r")), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), "utf-8", line_buffering=at_once)
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w")), "utf-8", line_buffering=True)
        code = _run(request["program"], request["arguments"])
    except Exception:  # noqa: BLE001 - as Python itself does: the traceback is said, and the program has failed
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
