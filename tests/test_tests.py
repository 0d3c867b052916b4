"""How the tests are laid out, so that everybody finds things: checked here, explained in tests/README.md."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULES = sorted(path for path in TESTS.rglob("test_*.py") if "node_modules" not in path.parts)
FOLDERS = sorted({path.parent for path in MODULES} - {TESTS})


def _imports(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{each.name}" for each in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_module_imports_no_other_and_holds_no_fixture(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {other.stem for other in MODULES}
    assert [each for each in _imports(tree) if names & set(each.split(".")[:-1])] == []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert not any(ast.unparse(each).startswith("pytest.fixture") for each in node.decorator_list), (
                f"{node.name}: fixtures live in conftest.py"
            )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(TESTS)))
def test_every_folder_says_in_one_line_what_it_proves(folder: Path) -> None:
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1] == ""
    assert 20 <= len(lines[2]) <= 160


def _sweeps() -> set[str]:
    """Every test of which ``make test`` runs a part: by its mark, by a case's mark, or by its fixture."""
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = " ".join(ast.unparse(each) for each in node.decorator_list)
                grows = "amount" in [each.arg for each in node.args.args]
                if grows or "pytest.mark.sweep" in marks or "pytest.mark.full" in marks:
                    found.add(f"{path.name}::{node.name}")
    return found


def test_the_page_lists_every_sweep_and_what_its_sample_covers(root: Path) -> None:
    page = (root / "docs/testing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- `(test_\w+\.py::test_\w+)`", page, re.MULTILINE)) == _sweeps()
