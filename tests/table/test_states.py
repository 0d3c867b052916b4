"""The tables of states: sound, drawn in the docs, and by clauses that exist."""

import ast
import tomllib
from pathlib import Path

import pytest

import sabot_table
from sabot_table import paytables
from sabot_table.procedure import TableProcedure
from sabot_table.procedure.action_table import (
    PACK_ACTIONS,
    PACK_STATES,
    TABLE_ACTIONS,
    TABLE_STATES,
    ActionRule,
)
from sabot_table.procedure.diagram import page
from sabot_table.rule_texts import RULE_TEXTS
from sabot_table.ruleset import load

ROOT = Path(__file__).parent.parent.parent
LIST = tomllib.loads((ROOT / "docs" / "clauses.toml").read_text(encoding="utf-8"))
CLAUSES = {each["key"] for each in LIST["clause"]}
# Rows that other actions take, not people: where they lead is decided by what happened.
INNER = {
    "deal_stack", "hands_dealt", "four_dealt", "coup_complete", "coup_simulated", "void", "recount", "retype",
}  # fmt: skip
PACK_INNER = {"stack_unwashed", "play", "discard", "spread_idle", "remove"}


def test_the_page_is_not_stale() -> None:
    assert (ROOT / "docs" / "procedure.md").read_text(encoding="utf-8") == page(), "run make generate"


BOTH = [(TABLE_STATES, TABLE_ACTIONS), (PACK_STATES, PACK_ACTIONS)]


@pytest.mark.parametrize(("states", "rows"), BOTH, ids=["table", "pack"])
def test_every_state_is_reached_and_every_name_known(
    states: dict[str, str], rows: tuple[ActionRule, ...]
) -> None:
    for row in rows:
        assert set(row.sources.split()) <= set(states)
        assert row.dest == "=" or row.dest in states
        assert row.who
    assert len({row.action for row in rows}) == len(rows), "one row an action"
    reached = {next(iter(states))}
    while True:
        more = {row.dest for row in rows if row.dest != "=" and reached & set(row.sources.split())} - reached
        if not more:
            break
        reached |= more
    assert reached == set(states)


def test_every_row_is_a_method_of_the_table_or_taken_by_one() -> None:
    procedure = TableProcedure(load("md-mini-baccarat"))
    parts = (procedure, *vars(procedure).values())
    for row in TABLE_ACTIONS:
        assert row.action in INNER or any(hasattr(part, row.action) for part in parts), row.action
    for row in PACK_ACTIONS:
        assert row.action in PACK_INNER or any(hasattr(part, row.action) for part in parts), row.action
    calls = "".join(each.read_text(encoding="utf-8") for each in Path(*sabot_table.__path__).rglob("*.py"))
    for action in INNER | PACK_INNER:
        assert calls.count(f'"{action}"') >= 2, f"nothing takes {action}"


def test_every_clause_that_the_table_cites_is_in_the_list() -> None:
    cited = {f"MD3 {row.md3}" for row in (*TABLE_ACTIONS, *PACK_ACTIONS)} | {
        f"MDM {row.mdm}" for row in (*TABLE_ACTIONS, *PACK_ACTIONS)
    }
    cited |= {each.clause for each in paytables.all_paytables()} | {
        each.rule for each in paytables.all_paytables()
    }
    for text in RULE_TEXTS.values():
        cited |= {getattr(text, name) for name in text.__slots__ if name.endswith("_clause")}
    for path in Path(*sabot_table.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.refuse":
                md3, mdm = node.args[1:3]
                if isinstance(md3, ast.Constant) and isinstance(mdm, ast.Constant):
                    cited |= {f"MD3 {md3.value!s}", f"MDM {mdm.value!s}"}
    assert sorted(cited - CLAUSES) == []


def test_the_table_knows_no_device() -> None:
    """It imports nothing of the other packages, and no clock."""
    imported = set()
    for path in Path(*sabot_table.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {each.name.split(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).split(".")[0])
    assert {each for each in imported if each.startswith("sabot_")} == {"sabot_table"}
    assert not imported & {"time", "datetime", "threading", "asyncio", "serial", "random", "socket"}
