"""Code lines of each package, now and in older commits: ``python -m tests.code_lines [COMMIT ...]``.

A code line holds at least one token that is neither a comment nor part of a docstring. Generated files
are not counted. ``--repeated`` lists blocks of ten or more such lines that occur twice.
"""

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("protocol", "firmware", "host_driver", "simulators")
GENERATED = ("host/messages.py", "schema_hash.py", "sabot_protocol/sensors.py")
BLOCK = 10  # code lines
SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
Sources = dict[str, str]


def checkout() -> Sources:
    """The Python files of the packages as they are on disk."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    kept = (path for path in found if not {"node_modules", "build"} & set(path.parts))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(kept)}


def committed(commit: str) -> Sources:
    """The same of a commit."""
    names = _git("ls-tree", "-r", "--name-only", commit, *FOLDERS).splitlines()
    return {name: _git("show", f"{commit}:{name}") for name in names if name.endswith(".py")}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def code_lines(source: str) -> list[tuple[int, str]]:
    """The lines that hold code, with their numbers."""
    docstrings = set(_docstring_lines(ast.parse(source)))
    numbers = {
        number
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in SILENT
        for number in range(token.start[0], token.end[0] + 1)
    }
    lines = source.splitlines()
    return [(number, lines[number - 1].strip()) for number in sorted(numbers - docstrings)]


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def package_of(name: str) -> str:
    """The package a file belongs to, such as ``protocol/sabot_protocol``."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def totals(sources: Sources) -> dict[str, int]:
    """Code lines by package."""
    counted: dict[str, int] = defaultdict(int)
    for name, source in sources.items():
        if not name.endswith(GENERATED):
            counted[package_of(name)] += len(code_lines(source))
    return dict(counted)


def repeated(sources: Sources) -> Iterator[str]:
    """Blocks of code that occur twice, each reported once, at its first lines."""
    seen: dict[tuple[str, ...], tuple[str, int]] = {}
    for name, source in sources.items():
        if name.endswith(GENERATED):
            continue
        lines = code_lines(source)
        told = -BLOCK
        for index in range(len(lines) - BLOCK + 1):
            block = tuple(text for _, text in lines[index : index + BLOCK])
            at = seen.setdefault(block, (name, lines[index][0]))
            if at != (name, lines[index][0]) and index >= told + BLOCK:
                told = index
                yield f"{name}:{lines[index][0]} repeats {at[0]}:{at[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or the repeated blocks; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.code_lines", description=__doc__)
    parser.add_argument("commits", nargs="*", help="older commits to compare with")
    parser.add_argument("--repeated", action="store_true", help="list repeated blocks instead")
    asked = parser.parse_args(arguments)
    if asked.repeated:
        blocks = list(repeated(checkout()))
        sys.stdout.writelines(f"{each}\n" for each in blocks)
        return 1 if blocks else 0
    columns = [*(totals(committed(commit)) for commit in asked.commits), totals(checkout())]
    packages = sorted({package for column in columns for package in column})
    rows = [(package, [column.get(package, 0) for column in columns]) for package in packages]
    rows.append(("all", [sum(column.values()) for column in columns]))
    sys.stdout.write("| package | " + " | ".join([*asked.commits, "now"]) + " |\n")
    sys.stdout.write("| --- |" + " ---: |" * len(columns) + "\n")
    for package, numbers in rows:
        sys.stdout.write(f"| {package} | " + " | ".join(f"{number:,}" for number in numbers) + " |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
