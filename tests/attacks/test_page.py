"""docs/security.md names every attack of this folder, and nothing that is not there."""

import ast
import re
from pathlib import Path


def _tests(folder: Path) -> set[str]:
    found = set()
    for path in folder.glob("test_*.py"):
        if path.name == "test_page.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"{path.stem}::{node.name}")
    return found


def test_the_security_page_names_every_attack_and_no_other(root: Path) -> None:
    page = (root / "docs/security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+::test_\w+)`", page))
    assert named == _tests(root / "tests/attacks")


def test_every_attack_says_what_happened_before(root: Path) -> None:
    for path in (root / "tests/attacks").glob("test_*.py"):
        if path.name == "test_page.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{path.name}::{node.name} does not say what the attack did"
