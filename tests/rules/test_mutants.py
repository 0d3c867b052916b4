"""The mutants of the rule texts: every row is changed, and each mutant differs from its text."""

import pytest
from tests.rules import mutants

from sabot_table.rule_text_files import packaged


@pytest.mark.slow
@pytest.mark.parametrize("key", packaged())
def test_every_row_of_a_text_is_changed_by_some_mutant(key: str) -> None:
    data = mutants.data_of(key)
    made = list(mutants.mutants(key))
    names = [name for name, _, _ in made]
    assert len(set(names)) == len(names)
    assert all(changed != data for _, _, changed in made)
    rows = {row for _, row, _ in made}
    for table in ("acts", "pack_acts", "clauses", "voids", "removal"):
        assert {f"{table}.{name}" for name in data[table]} <= rows
    assert {f"paytable.{row['wager']}" for row in data["paytable"]} <= rows
    assert mutants.data_of(key) == data


def test_a_change_that_the_loader_refuses_needs_no_test() -> None:
    data = mutants.data_of("MD3")
    del data["acts"]["hands_dealt"]
    assert mutants.verdict_untested("MD3", data, ["a test"]) == "refused"
    whole = mutants.data_of("MD3")
    assert mutants.verdict_untested("MD3", whole, []) == "not covered"
