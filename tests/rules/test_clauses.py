"""Every clause a test carries is known, and the page is up to date."""

import ast

import pytest
from tests.rules import clauses


@pytest.mark.slow
def test_the_page_is_not_stale() -> None:
    assert clauses.PAGE.read_text(encoding="utf-8") == clauses.render(), "run make generate"
    assert clauses.RECORD.read_text(encoding="utf-8") == clauses.record(), "run make generate"


def test_every_clause_has_a_duty_and_a_sentence() -> None:
    for clause in clauses.clauses().values():
        assert clause.duty in clauses.DUTIES
        assert clause.says.endswith(".")


@pytest.mark.slow
def test_every_machine_clause_has_a_test_that_proves_it() -> None:
    table = clauses.clauses().values()
    assert [each.key for each in table if each.duty == "machine" and not clauses.machine_tests(each)] == []


@pytest.mark.slow
def test_every_clause_of_the_table_has_a_test() -> None:
    assert [each.key for each in clauses.clauses().values() if each.duty == "table" and not each.tests] == []


def test_a_test_of_the_table_is_no_proof_for_the_machine() -> None:
    clause = clauses.Clause("MD3 8", "Says.", "machine", ["tests/table/test_a.py::test_b"])
    assert clauses.machine_tests(clause) == []
    clause.tests.append("tests/machine/test_a.py::test_b")
    assert clauses.machine_tests(clause) == ["tests/machine/test_a.py::test_b"]


def test_clauses_are_found_on_marked_and_on_portable_tests() -> None:
    portable = "RULES = {'test_a': ('MD3 3.A', 'MD3 3.B')}"
    marked = "@pytest.mark.rule('MD3 5.B')\ndef test_b(): pass\ndef test_c(): pass"
    tree = ast.parse(portable + "\n" + marked)
    assert clauses.carried(tree) == [("test_a", "MD3 3.A"), ("test_a", "MD3 3.B"), ("test_b", "MD3 5.B")]
