"""How the tests are laid out, so that everybody finds things: checked here, explained in tests/README.md."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MODULES = sorted(path for path in TESTS.rglob("test_*.py") if "node_modules" not in path.parts)
FOLDERS = sorted({path.parent for path in MODULES} - {TESTS})


IMPORT = re.compile(r"^\s*(?:from\s+[\w.]+\s+)?import\s+(?:\([^)]*\)|[^\n]+)", re.MULTILINE)


def test_a_test_module_imports_no_other_and_holds_no_fixture() -> None:
    names = {other.stem for other in MODULES}
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for statement in IMPORT.findall(text):
            assert not names & set(re.findall(r"\w+", statement)), f"{path}: {statement}"
        assert not re.search(r"^\s*@(pytest\.)?fixture", text, re.MULTILINE), (
            f"{path}: fixtures live in conftest.py"
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
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if re.search(r"\bamount\b|pytest\.mark\.(sweep|full)", text) else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = " ".join(ast.unparse(each) for each in node.decorator_list)
                grows = "amount: Amount" in [ast.unparse(each) for each in node.args.args]
                if grows or "pytest.mark.sweep" in marks or "pytest.mark.full" in marks:
                    found.add(f"{path.name}::{node.name}")
    return found


def test_the_page_lists_every_sweep_and_what_its_sample_covers(root: Path) -> None:
    page = (root / "docs/testing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- `(test_\w+\.py::test_\w+)`", page, re.MULTILINE)) == _sweeps()
