"""TOML files of the table: their text, and every fault of their shape by its place."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sabot_table.errors import FileError, Problem

ADVICE = {"missing": "add it", "extra_forbidden": "remove it or correct its spelling"}
WHAT = {"missing": "is missing", "extra_forbidden": "is not a key of this file"}


class Part(BaseModel):
    """A table of such a file: every key is known, every value has its type, nothing changes later."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


Shape = TypeVar("Shape", bound=Part)


def read_text(path: Path, error: type[FileError]) -> str:
    """The text of a file; ``error`` if it is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as bad:
        problem = Problem(f"byte {bad.start}", "is not UTF-8", "save the file as UTF-8 text")
        raise error(str(path), (problem,)) from bad


def read_toml(text: str, source: str, error: type[FileError]) -> Mapping[str, object]:
    """The data of a TOML text; ``error`` names the place of a fault."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise error(source, (Problem("TOML", str(bad), "correct the file's syntax there"),)) from bad


def shaped(shape: type[Shape], data: Mapping[str, object], source: str, error: type[FileError]) -> Shape:
    """The data as a model; ``error`` holds everything that has the wrong shape."""
    try:
        return shape.model_validate_json(json.dumps(data, default=str))
    except ValidationError as bad:
        raise error(source, tuple(_problem(dict(each)) for each in bad.errors())) from bad


def _problem(fault: Mapping[str, object]) -> Problem:
    where = fault["loc"]
    assert isinstance(where, tuple)
    kind, message = str(fault["type"]), str(fault["msg"])
    what = WHAT.get(kind) or f"is {fault['input']!r}: {message[0].lower()}{message[1:]}"
    return Problem(".".join(map(str, where)) or "file", what, ADVICE.get(kind, "correct the value"))
