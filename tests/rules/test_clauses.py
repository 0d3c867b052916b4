"""Every clause a test carries is known, and the page is up to date."""

import ast

from tests.rules import clauses


def test_the_page_is_not_stale() -> None:
    assert clauses.PAGE.read_text(encoding="utf-8") == clauses.render(), "run python -m tests.rules.clauses"


def test_every_clause_has_a_duty_and_a_sentence() -> None:
    for clause in clauses.clauses().values():
        assert clause.duty in clauses.DUTIES
        assert clause.says.endswith(".")


def test_every_machine_clause_has_a_test_that_proves_it() -> None:
    table = clauses.clauses().values()
    assert [clause.key for clause in table if clause.duty == "machine" and not clause.tests] == []


def test_clauses_are_found_on_marked_and_on_portable_tests() -> None:
    portable = "RULES = {'test_a': ('MD3 3.A', 'MD3 3.B')}"
    marked = "@pytest.mark.rule('MD3 5.B')\ndef test_b(): pass\ndef test_c(): pass"
    tree = ast.parse(portable + "\n" + marked)
    assert clauses.carried(tree) == [("test_a", "MD3 3.A"), ("test_a", "MD3 3.B"), ("test_b", "MD3 5.B")]
