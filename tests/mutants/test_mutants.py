"""The mutation runner itself: what it changes, which mutants it tries again, and that its lists are true."""

import importlib.util
from pathlib import Path

import pytest
from tests.mutants import campaign, planted, report
from tests.mutants.campaign import Job, Result
from tests.mutants.coverage_map import CoverageMap
from tests.mutants.fork_server import functions_only, replace_code
from tests.mutants.mutations import Mutation, mutations_in, mutations_of, sample_of
from tests.mutants.packages import MUTATED, mutated_files

pytestmark = pytest.mark.slow

PATH = "somewhere/module.py"


def mutants(text: str) -> set[str]:
    """Every mutated text of a module."""
    return {each.apply(text) for each in mutations_in(PATH, text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < b\n", {"x = a <= b\n"}),
        ("x = a is not b\n", {"x = a is b\n"}),
        ("x = 5\n", {"x = (6)\n", "x = (4)\n"}),
        ("x = True\n", {"x = False\n"}),
        ("x = a + b\n", {"x = a - b\n"}),
        ("x = 'a' + b\n", set()),
        ("x = a and b and c\n", {"x = ((a) or (b) or (c))\n"}),
        ("x = not a\n", {"x = (a)\n"}),
        ("if a:\n    pass\n", {"if (not (a)):\n    pass\n"}),
        ("f(a, b, c)\n", {"f(b, a, c)\n"}),
        ("def f():\n    a()\n", {"def f():\n    pass\n"}),
        ("def f():\n    log.info(a, b)\n", set()),
        ("def f(a: int = b) -> 'x':\n    '''Text.'''\n    assert a\n", set()),
        ("def f():\n    return a\n", {"def f():\n    return None\n"}),
        ("def f():\n    raise E(1)\n", {"def f():\n    pass\n"}),
        ("for x in y:\n    break\n", {"for x in y:\n    continue\n"}),
        ("é = ä == b\n", {"é = ä != b\n"}),
    ],
)
def test_an_operator_changes_one_thing(text: str, expected: set[str]) -> None:
    assert mutants(text) == expected


@pytest.mark.parametrize("package", MUTATED)
def test_a_sample_has_distinct_names_and_is_code(package: str) -> None:
    sample = sample_of(mutated_files(package), 40)
    assert len({each.name for each in sample}) == 40
    for each in sample:
        compile(each.apply(Path(each.path).read_text(encoding="utf-8")), each.path, "exec")


def test_an_edit_elsewhere_changes_no_name_and_no_rank() -> None:
    text = "def f(a):\n    return a + 1\n"
    names = {each.name: each.rank() for each in mutations_in(PATH, text)}
    after = {each.name: each.rank() for each in mutations_in(PATH, "def g():\n    h()\n\n\n" + text)}
    assert names.items() < after.items()


def test_only_changes_within_functions_need_no_import() -> None:
    text = "A = 1\n\n\ndef f(b=2):\n    return b\n"
    assert functions_only(text, text.replace("return b", "return None"))
    assert not functions_only(text, text.replace("A = 1", "A = 2"))
    assert not functions_only(text, text.replace("b=2", "b=3"))


def test_the_code_of_imported_functions_is_replaced(tmp_path: Path) -> None:
    text = "class A:\n    @property\n    def b(self):\n        return [x + 1 for x in (1, 2)]\n"
    text += "\n\nf = lambda: 3\n"
    file = tmp_path / "mutated_module.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mutated_module", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert replace_code(str(file), text, text.replace("x + 1", "x - 1"))
    assert (module.A().b, module.f()) == ([0, 1], 3)
    assert not replace_code(str(file), text, text.replace("f = lambda: 3", "f = 3"))


def test_a_mutant_is_tried_by_the_tests_of_its_line_fastest_first() -> None:
    found = CoverageMap(seconds={"a": 2.0, "b": 1.0, "c": 50.0, "d": 30.0})
    found.lines[PATH][3] = {"a", "b", "c", "d"}
    found.lines[PATH][1] = {""}
    assert found.tests_for(PATH, range(3, 4)) == ["b", "a", "d", "c"]
    assert found.tests_for(PATH, range(1, 2)) == [
        "b",
        "a",
        "d",
        "c",
    ]  # it runs at import: all tests of the file
    assert found.tests_for(PATH, range(2, 3)) == []


def test_a_job_has_no_more_tests_than_the_limit_allows() -> None:
    mutation = mutations_of("protocol/sabot_protocol/ticks.py")[-1]
    found = CoverageMap(seconds={"a": 2.0, "b": 1.0, "c": 50.0, "d": 30.0})
    found.lines[mutation.path][mutation.line] = {"a", "b", "c", "d"}
    assert campaign.job_for(mutation, found, 60).tests == ("b", "a", "d")
    assert campaign.job_for(mutation, found, 0.5).tests == ("b",)  # one at least
    assert campaign.job_for(mutation, found, 60).in_process
    found.lines[mutation.path][mutation.line].add("")
    assert not campaign.job_for(mutation, found, 60).in_process


def test_a_result_counts_until_what_it_depends_on_changes() -> None:
    job = Job("name", PATH, "before", "after", ("tests/mutants/test_mutants.py::a",), (1.0,), True)

    def result(outcome: str, file: str = job.file_digest, tests: str = job.tests_digest) -> Result:
        return Result("name", file, tests, 1, outcome, "", "", 1, 1.0)

    assert campaign.is_due(job, None)
    assert campaign.is_due(job, result("killed", file="other"))
    assert not campaign.is_due(job, result("killed", tests="other"))
    assert not campaign.is_due(job, result("survived"))
    assert campaign.is_due(job, result("survived", tests="other"))


def test_every_planted_defect_fits_the_code_and_names_tests_that_exist(root: Path) -> None:
    for defect in planted.defects():
        assert defect.job().after != defect.job().before
        for test in defect.tests:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (root / file).read_text(encoding="utf-8")


def test_every_equivalent_mutant_exists_and_has_a_reason() -> None:
    equivalents = report.equivalents()
    paths = {name.partition("::")[0] for name in equivalents}
    assert paths <= {Path(path).as_posix() for package in MUTATED for path in mutated_files(package)}
    every = {each.name for path in paths for each in mutations_of(path)}
    for name, why in equivalents.items():
        assert name in every
        assert len(why) > 20


def test_the_page_tells_survivors_from_equivalents(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {package: mutated_files(package)[:2] for package in MUTATED}
    monkeypatch.setattr(report, "mutated_files", few.__getitem__)
    first, second, third = sample_of(few["sabot_driver"], 3)
    monkeypatch.setattr(report, "equivalents", lambda: {second.name: "no test can tell"})
    monkeypatch.setattr(report, "before_triage", lambda: {"sabot_driver": {"tried": 3, "killed": 1}})

    def result(mutation: Mutation, outcome: str) -> Result:
        return Result(mutation.name, "", "", 1, outcome, "", "", 1, 1.0)

    last = {first.name: result(first, "killed"), second.name: result(second, "survived")}
    last[third.name] = result(third, "not covered")
    page = report.page(last, 3)
    assert "| `sabot_driver` | 3 of 3 | 33.3 % of 3 | 1 | 0 | 1 | 1 | 50.0 % |" in page
    assert "equivalent: no test can tell" in page
    assert page.count("not covered") == 1
