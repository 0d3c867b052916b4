"""Key files of people who sign: drawn, and opened with their passphrase."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sabot_driver.errors import SabotError
from sabot_evidence.errors import SigningKeyUnusable
from sabot_evidence.signing_key import SigningKey, draw_signing_key, is_locked, read_signing_key

F = TypeVar("F", bound=Callable[..., Any])
KEY_FILE = click.Path(dir_okay=False, path_type=Path)


class KeyFileProblem(SabotError):
    """A key file that cannot be used."""


def passphrase_option(command: F) -> F:
    """``--passphrase-stdin`` for a command."""
    return click.option(
        "--passphrase-stdin", is_flag=True, help="read the key's passphrase from standard input, one line"
    )(command)


def draw(path: Path, passphrase_stdin: bool, ask: bool = True) -> SigningKey:
    """A new key file under a passphrase; without a terminal and without --passphrase-stdin under none."""
    passphrase = ""
    if passphrase_stdin:
        passphrase = _line()
    elif ask and sys.stdin.isatty():
        passphrase = click.prompt(
            f"passphrase of {path}", hide_input=True, confirmation_prompt=True, default="", err=True
        )
    try:
        return draw_signing_key(path, passphrase.encode())
    except SigningKeyUnusable as error:
        raise KeyFileProblem(str(error), error.advice) from error


def opened(path: Path, passphrase_stdin: bool) -> SigningKey:
    """The key of a file; the passphrase is asked for only if the file has one."""
    passphrase = ""
    if is_locked(path):
        passphrase = _line() if passphrase_stdin else _asked(path)
    try:
        return read_signing_key(path, passphrase.encode())
    except SigningKeyUnusable as error:
        raise KeyFileProblem(str(error), error.advice) from error


def _asked(path: Path) -> str:
    if not sys.stdin.isatty():
        return ""
    return str(click.prompt(f"passphrase of {path}", hide_input=True, err=True))


def _line() -> str:
    return sys.stdin.readline().rstrip("\r\n")
