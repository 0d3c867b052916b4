"""The tables of states: sound, drawn in the docs, and by clauses that exist."""

import ast
import tomllib
from pathlib import Path

import pytest

import sabot_table
from sabot_table import paytables
from sabot_table.procedure import TableProcedure
from sabot_table.procedure.diagram import page
from sabot_table.rule_text_files import RuleText, packaged, rule_text
from sabot_table.ruleset import load
from sabot_table.text_vocabulary import (
    EVERY_ACT,
    EVERY_GROUND,
    GAME_STATES,
    PACK_ACTS,
    TABLE_STATES,
    acts_of,
    voids_of,
)

ROOT = Path(__file__).parent.parent.parent
LIST = tomllib.loads((ROOT / "docs" / "clauses.toml").read_text(encoding="utf-8"))
CLAUSES = {each["key"] for each in LIST["clause"]}
# Acts that other acts lead to, not people: where they lead is decided by what happened.
INNER = {
    "deal_stack",
    "hands_dealt",
    "four_dealt",
    "coup_complete",
    "coup_simulated",
    "void",
    "count_wrong",
    "clear_jam_with_tool",
    "recount",
    "retype",
}
PACK_INNER = {"stack_unwashed", "play", "discard", "spread_idle", "remove"}


def texts() -> list[RuleText]:
    """Every packaged text, as it is now."""
    return [rule_text(key) for key in packaged()]


def test_the_page_is_not_stale() -> None:
    assert (ROOT / "docs" / "procedure.md").read_text(encoding="utf-8") == page(), "run make generate"


@pytest.mark.parametrize("key", packaged())
def test_every_state_of_a_text_is_reached_and_its_table_can_be_closed_again(key: str) -> None:
    text = rule_text(key)
    foreign = {state for game, states in GAME_STATES.items() if game is not text.game for state in states}
    moves = {(source, row.after(source)) for row in text.rows.values() for source in row.sources}
    for first, edges in (("closed", moves), ("closed", {(to, of) for of, to in moves})):
        reached = {first}
        while more := {to for of, to in edges if of in reached} - reached:
            reached |= more
        assert reached == set(TABLE_STATES) - foreign


@pytest.mark.parametrize("key", packaged())
def test_every_act_is_a_method_of_the_table_or_taken_by_one(key: str) -> None:
    text = rule_text(key)
    procedure = TableProcedure(load("md-mini-baccarat"))
    parts = (procedure, *vars(procedure).values())
    for action in (*text.rows, *text.pack_rows):
        assert action in INNER | PACK_INNER or any(hasattr(part, action) for part in parts), action


def test_every_act_that_a_text_may_have_is_used_by_some_text_and_by_the_code() -> None:
    used = {action for text in texts() for action in (*text.rows, *text.pack_rows)}
    assert used == EVERY_ACT
    for action in INNER | PACK_INNER:
        assert any(f'"{action}"' in source for source in SOURCES), f"nothing takes {action}"
    for text in texts():
        assert set(text.rows) <= set(acts_of(text.game))
        assert set(text.pack_rows) <= set(PACK_ACTS)


SOURCES = [
    each.read_text(encoding="utf-8") for each in sorted(Path(*sabot_table.__path__, "procedure").glob("*.py"))
]


def keys_of_refusals() -> set[str]:
    """Every key that the procedure gives to refuse(), clause() and check_round()."""
    places = {"refuse": 1, "clause": 0, "check_round": 2}
    found = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            place = places.get(node.func.attr)
            if place is not None and len(node.args) > place:
                found |= {
                    str(each.value)
                    for each in ast.walk(node.args[place])
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    return found


def test_every_key_of_a_refusal_is_an_act_or_a_ground_and_every_ground_is_used() -> None:
    given = keys_of_refusals()
    assert len(given) > 25
    assert sorted(given - EVERY_ACT - EVERY_GROUND) == []
    code = "".join(each.read_text(encoding="utf-8") for each in Path(*sabot_table.__path__).rglob("*.py"))
    vocabulary = Path(*sabot_table.__path__, "text_vocabulary.py").read_text(encoding="utf-8")
    unused = [key for key in EVERY_GROUND if code.count(f'"{key}"') <= vocabulary.count(f'"{key}"')]
    assert sorted(unused) == []


def test_every_clause_that_the_table_cites_is_in_the_list() -> None:
    cited = {each.clause for each in paytables.all_paytables()} | {
        each.rule for each in paytables.all_paytables()
    }
    for text in texts():
        cited |= {row.clause for row in (*text.rows.values(), *text.pack_rows.values())}
        cited |= {text.clause(key) for key in text.clauses} | {text.absent_clause(key) for key in text.absent}
        cited |= {text.void_clause(reason) for reason in voids_of(text.game)}
        cited |= {text.removal_clause(reason) for reason in text.removal}
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
