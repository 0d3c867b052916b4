"""Each row of each rule text is dropped or changed: does some test notice? ``make rule-mutants`` runs it.

A first run of the tests records which rows each test uses, and how long it takes. Then pytest collects the
tests once. Each mutant is a process forked from there: it changes one row of one text, runs only the tests
that use the row, the quickest first, and ends at the first failure. An unchanged text is judged first: no
test may fail with it. Results are kept in ``build/rule-mutants.json``; a second run goes on where the first
one stopped.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.table import test_states

from sabot_table import paytables, rule_text_files
from sabot_table.errors import RuleTextError, TableError
from sabot_table.procedure.context import TableContext
from sabot_table.rule_text_files import RuleText
from sabot_table.ruleset import RuleSet, parse
from sabot_table.toml_files import shaped

ROOT = Path(__file__).parent.parent.parent
STATE = ROOT / "build" / "rule-mutants.json"
FILES = (
    "test_three_card_procedure", "test_mini_procedure", "test_clauses_in_play", "test_house_policy",
    "test_days", "test_settlement", "test_wagers", "test_rulesets", "test_progressive",
    "test_stakes", "test_versions", "test_states", "test_bounds", "test_duties",
)  # fmt: skip
BOUNDS = ("cards", "seats", "dealing", "cut", "cover", "stub", "idle", "wagers", "settlement")
# These are about whole texts: they run for every row, and first.
WHOLE = (
    "tests/table/test_duties.py::test_each_act_is_for_these_people",
    "tests/table/test_clauses_in_play.py::test_the_floor_countersigns_these_acts_and_no_others",
    "tests/table/test_states.py::test_every_state_of_a_text",
    "tests/table/test_states.py::test_every_clause_that_the_table_cites",
)
# First of the tests that use a row: they are about bounds and payouts. Too many others only use them.
FIRST = ("tests/table/test_bounds.py", "tests/table/test_wagers.py::test_each_outcome")
PAGE = (
    "tests/table/test_states.py::test_the_page_is_not_stale"  # the last resort: it shows any change of an act
)
QUICK_S = 1.0  # of the tests of one mutant; slower ones do not run
STATIC = {
    "clauses": test_states.test_every_clause_that_the_table_cites_is_in_the_list,
    "page": test_states.test_the_page_is_not_stale,
}
ON_PAGE = "on the page"  # no other quick test notices it
NOWHERE = "0.X"  # a clause that no text has
Path_ = tuple[str | int, ...]


def data_of(key: str) -> dict[str, Any]:
    """The file of a text."""
    file = resources.files("sabot_table").joinpath(rule_text_files.FOLDER, f"{key}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


# -- mutants -------------------------------------------------------------------------------------


def mutants(key: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(name, the row that it changes, the text's data) for everything that is changed in a text."""
    data = data_of(key)
    for table in ("acts", "pack_acts"):
        for action, row in data[table].items():
            where = f"{table}.{action}"
            yield f"{where} dropped", where, _without(data, (table, action))
            for name, part, value in _row_changes(row):
                yield f"{where} {name}", where, _with(data, (table, action, part), value)
    for table in ("clauses", "voids", "removal", "absent"):
        for name in data.get(table, {}):
            where = f"{table}.{name}"
            yield f"{where} cites another clause", where, _with(data, (table, name), NOWHERE)
    for table in BOUNDS:
        for name, value in data.get(table, {}).items():
            for told, other in _other_bounds(value):
                where = f"{table}.{name}"
                yield f"{where} {told}", where, _with(data, (table, name), other)
    for place, row in enumerate(data["paytable"]):
        where = f"paytable.{row['wager']}"
        label = f"{where}[{place}]"
        yield f"{label} dropped", where, _without(data, ("paytable", place))
        for part in ("clause", "rule"):
            yield f"{label} {part}", where, _with(data, ("paytable", place, part), NOWHERE)
        for line, odds in row.get("pays", {}).items():
            path = ("paytable", place, "pays", line)
            yield f"{label} {line} pays more", where, _with(data, path, _more(odds))
        for part in ("least_pays", "for_one", "vigorish"):
            for told, other in _other_bounds(row.get(part)):
                yield f"{label} {part} {told}", where, _with(data, ("paytable", place, part), other)
        for line, award in row.get("awards", {}).items():
            less = re.sub("[0-9]+", lambda found: str(int(found[0]) - 1), award, count=1)
            path = ("paytable", place, "awards", line)
            yield f"{label} {line} awards {less}", where, _with(data, path, less)


def _row_changes(row: dict[str, Any]) -> Iterator[tuple[str, str, object]]:
    who = row["who"].split()
    for role in who:
        if len(who) > 1:
            yield f"not by {role}", "who", " ".join(each for each in who if each != role)
    yield (
        "by player" if "player" not in who else "by service",
        "who",
        (f"{row['who']} player" if "player" not in who else f"{row['who']} service"),
    )
    sources = row["from"].split()
    for state in sources:
        if len(sources) > 1:
            yield f"not from {state}", "from", " ".join(each for each in sources if each != state)
    if row["to"] != "=":
        yield "stays", "to", "="
    yield "cites another clause", "clause", NOWHERE
    yield "countersign changed", "countersign", not row.get("countersign", False)


def _other_bounds(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, bool):
        yield "changed", not value
    elif isinstance(value, int):
        yield "higher", value + 1
        if value > 1:
            yield "lower", value - 1
    elif isinstance(value, list) and all(isinstance(each, int) for each in value):
        yield "wider", [value[0], value[1] + 1]
        yield "narrower", [value[0] + 1, value[1] + 1]
    elif isinstance(value, list):
        for each in value:
            yield f"without {each}", [other for other in value if other != each]
    elif isinstance(value, str):
        others = {
            "may": ["shall"], "shall": ["may"], "every-round": ["every-shoe"], "every-shoe": ["every-round"],
            "unless-machine": ["always", "never"], "always": ["unless-machine"], "never": ["always"],
            "clockwise": ["counter-clockwise", "losers-first"], "counter-clockwise": ["clockwise"],
            "losers-first": ["clockwise"],
        }  # fmt: skip
        words = value.split()
        for other in others.get(value, []):
            yield f"is {other}", other
        for each in words if value not in others else []:
            if len(words) > 1:
                yield f"without {each}", " ".join(other for other in words if other != each)


def _more(odds: int | str) -> int | str:
    return odds + 1 if isinstance(odds, int) else "3"


def _without(data: dict[str, Any], path: Path_) -> dict[str, Any]:
    changed = deepcopy(data)
    place: Any = changed
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return changed


def _with(data: dict[str, Any], path: Path_, value: object) -> dict[str, Any]:
    changed = deepcopy(data)
    place: Any = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed


# -- which tests use a row -----------------------------------------------------------------------


class Coverage:
    """A plugin of pytest that records the rows which each test uses."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = {}  # "MD3 acts.settle" -> tests
        self.seconds: dict[str, float] = {}  # by test
        self._test = ""
        self._began_s = 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._test = nodeid
        self._began_s = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """How much processor time a test took, with its fixtures."""
        self.seconds[nodeid] = time.process_time() - self._began_s

    def note(self, key: str, row: str) -> None:
        """A row of a text was used."""
        if self._test:
            self.used.setdefault(f"{key} {row}", set()).add(self._test)

    def patch(self) -> None:
        """Watch every place where a row is looked up."""
        either = ("acts", "pack_acts", "absent")
        for owner, name, tables in (
            (TableContext, "check", ("acts",)),
            (TableContext, "move", ("acts",)),
            (TableContext, "check_pack", ("pack_acts",)),
            (TableContext, "move_pack", ("pack_acts",)),
            (TableContext, "has", either),
            (RuleText, "clause", ("clauses", *either)),
            (RuleText, "absent_clause", ("absent",)),
            (RuleText, "void_clause", ("voids",)),
            (RuleText, "removal_clause", ("removal",)),
            (RuleSet, "paytable", ("paytable",)),
        ):
            self._watch(owner, name, tables)
        self._watch_bounds()

    def _watch_bounds(self) -> None:
        """Bounds are plain attributes: watch each reading of them."""
        texts = [(key, rule_text_files.rule_text(key)) for key in rule_text_files.packaged()]
        parts = {id(getattr(text, table)): f"{key} {table}" for key, text in texts for table in BOUNDS}

        def watched(me: Any, name: str) -> Any:
            if id(me) in parts:
                self.note(*f"{parts[id(me)]}.{name}".split(" "))
            return object.__getattribute__(me, name)

        reading = "__getattribute__"
        for table in BOUNDS:
            for part in (getattr(text, table) for _, text in texts):
                if part is not None:
                    setattr(type(part), reading, watched)

    def _watch(self, owner: type, name: str, tables: tuple[str, ...]) -> None:
        inner = getattr(owner, name)

        def watched(me: Any, key: str, *args: Any) -> Any:
            rules = me.rules if isinstance(me, TableContext) else me
            text = rules.key if isinstance(rules, RuleText) else rules.text
            for table in tables:
                self.note(text, f"{table}.{key}")
            return inner(me, key, *args)

        setattr(owner, name, watched)


def forked(work: Any) -> int:
    """Run something in a process of its own, silently; its exit code."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 99
        try:
            code = int(work())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def run_tests(*plugins: object) -> int:
    """Have pytest collect the tests in this process, and run them unless a plugin does."""
    os.chdir(ROOT)
    tests = [f"tests/table/{name}.py" for name in FILES]
    return int(pytest.main(["-p", "no:cacheprovider", *tests], plugins=[*plugins]))


@dataclass(frozen=True)
class Covered:
    """Which tests use each row, and how long each test takes."""

    rows: dict[str, list[str]]
    seconds: dict[str, float]

    def by(self, key: str, row: str) -> list[str]:
        """The tests for a row: of whole texts, of bounds and payouts, the quickest others, and the page."""
        whole = [each for each in self.seconds if each.startswith(WHOLE) and of_text(each, key)]
        using = sorted(self.rows.get(f"{key} {row}", []), key=lambda each: self.seconds.get(each, 0.0))
        first = [each for each in using if each.startswith(FIRST)]
        chosen: list[str] = []
        left_s = QUICK_S
        for each in using:
            if each not in (*whole, *first, PAGE):
                left_s -= self.seconds.get(each, 0.0)
                if left_s > 0 or not chosen:
                    chosen.append(each)
        return [*whole, *first, *chosen, PAGE]


def of_text(test: str, key: str) -> bool:
    """Whether a test is about this text, or about all."""
    return not test.endswith("]") or test.endswith(f"[{key}]")


def record_coverage(path: Path) -> Covered:
    """The tests that use each row; recorded anew only if tests, texts or the table's code changed."""
    watched = [Path(__file__), *(ROOT / f"tests/table/{name}.py" for name in FILES)]
    watched += sorted((ROOT / "host_driver" / "sabot_table").rglob("*.py"))
    watched += sorted((ROOT / "host_driver" / "sabot_table" / rule_text_files.FOLDER).glob("*.toml"))
    sha256 = hashlib.sha256(b"".join(each.read_bytes() for each in watched)).hexdigest()
    if not path.exists() or json.loads(path.read_text())["sha256"] != sha256:

        def work() -> int:
            coverage = Coverage()
            coverage.patch()
            code = run_tests(coverage)
            rows = {row: sorted(tests) for row, tests in coverage.used.items()}
            path.write_text(json.dumps({"sha256": sha256, "rows": rows, "seconds": coverage.seconds}))
            return code

        code = forked(work)
        if code != 0:
            path.unlink(missing_ok=True)
            sys.exit(f"the tests fail without any change (exit {code}); mend them first")
    kept = json.loads(path.read_text())
    return Covered(kept["rows"], kept["seconds"])


# -- running -------------------------------------------------------------------------------------


class Judge:
    """A plugin of pytest that judges mutants by the collected tests, each in a forked process."""

    def __init__(self, work: Callable[["Judge"], None], covered: Covered) -> None:
        self._work = work
        self._covered = covered
        self._items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge instead of running the tests."""
        self._items = {each.nodeid: each for each in session.items}
        self._work(self)
        return True

    def verdict(self, key: str, row: str, data: dict[str, Any]) -> str:
        """What becomes of a mutant: "noticed", "on the page", "missed", or see `verdict_untested`."""
        covering = self._covered.by(key, row)
        told = verdict_untested(key, data, covering)
        if isinstance(told, str):
            return told
        items = [self._items[each] for each in covering if each in self._items]
        code = forked(lambda: _tried(key, told, items))
        return {0: "missed", 1: "noticed", 2: ON_PAGE}.get(code, f"failed with exit {code}")


def verdict_untested(key: str, data: dict[str, Any], covering: list[str]) -> str | RuleText:
    """What no test decides: "refused" by the loader, or "not covered" by any test; else the changed text."""
    try:
        text = shaped(RuleText, data, key, RuleTextError)
        problems = tuple(rule_text_files._problems(text))
    except RuleTextError:
        return "refused"
    if problems:
        return "refused"
    return text if covering else "not covered"


def _tried(key: str, text: RuleText, items: list[pytest.Item]) -> int:
    """Run tests with a changed text in this process; 1 if one fails."""
    rule_text_files._packaged[key] = text
    paytables._tables.cache_clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.table."):
            for attribute, value in list(vars(module).items()):
                if isinstance(value, RuleSet) and value.text == key:
                    try:
                        setattr(module, attribute, parse(value.model_dump(mode="json")))
                    except TableError:
                        return 1  # a rule set does not fit the changed text
    session = items[0].session
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 2 if item.nodeid == PAGE else 1
    return 0


def shown(key: str, data: dict[str, Any]) -> str:
    """Which of two tests shows a mutant without any play: "refused", "page", "clauses", or "no"."""
    text = verdict_untested(key, data, ["a test"])
    if isinstance(text, str):
        return text
    before = rule_text_files.rule_text(key)
    rule_text_files._packaged[key] = text
    paytables._tables.cache_clear()
    try:
        for name, test in STATIC.items():
            try:
                test()
            except (AssertionError, TableError):
                return name
    finally:
        rule_text_files._packaged[key] = before
        paytables._tables.cache_clear()
    return "no"


def look(texts: list[str]) -> None:
    """Print for all mutants which are shown without any play, and name those that are not."""
    told = {f"{key} {name}": shown(key, data) for key in texts for name, _, data in mutants(key)}
    for verdict in sorted(set(told.values())):
        found = [name for name, was in told.items() if was == verdict]
        sys.stdout.write(f"{verdict}: {len(found)} of {len(told)}\n")
    sys.stdout.write("".join(f"  {name}\n" for name, was in told.items() if was == "no"))


def main() -> None:
    """Run every mutant that has no result yet, and print what no test noticed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--texts", default=",".join(rule_text_files.packaged()))
    asked.add_argument("--rows", default="", help="only rows whose name begins so, such as acts")
    asked.add_argument("--fresh", action="store_true", help="forget earlier results")
    asked.add_argument("--again", action="store_true", help="try again what no test noticed")
    asked.add_argument("--shown", action="store_true", help="only say which mutants two static tests show")
    given = asked.parse_args()
    if given.shown:
        look(given.texts.split(","))
        return
    STATE.parent.mkdir(exist_ok=True)
    kept: dict[str, Any] = {} if given.fresh or not STATE.exists() else json.loads(STATE.read_text())
    texts = {key: rule_text_files.rule_text(key).sha256 for key in given.texts.split(",")}
    results: dict[str, str] = kept.setdefault("results", {})
    hashes: dict[str, str] = kept.setdefault("texts", {})
    kept.setdefault("seconds", 0.0)
    for key, sha256 in texts.items():
        if hashes.get(key) != sha256:  # another text: its results are of no use
            for name in [each for each in results if each.startswith(f"{key} ")]:
                del results[name]
            hashes[key] = sha256
    if given.again:
        for name in [name for name, was in results.items() if was not in ("noticed", "refused", ON_PAGE)]:
            del results[name]

    def work(judge: Judge) -> None:
        for key in texts:  # an unchanged text: a verdict that differs is a fault of this program
            kept.setdefault("controls", {})[key] = judge.verdict(key, "cards.decks", data_of(key))
        keep(kept)
        for key in texts if set(kept["controls"].values()) == {"missed"} else []:
            for name, row, data in mutants(key):
                label = f"{key} {name}"
                if label in results or not row.startswith(given.rows):
                    continue
                began = time.monotonic()
                results[label] = judge.verdict(key, row, data)
                kept["seconds"] += time.monotonic() - began
                keep(kept)

    covered = record_coverage(STATE.with_suffix(".coverage.json"))
    code = forked(lambda: run_tests(Judge(work, covered)))
    if not STATE.exists():
        sys.exit(f"no mutant was judged: pytest ended with {code}")
    kept = json.loads(STATE.read_text())
    for key, was in kept.get("controls", {}).items():
        if was != "missed":
            sys.exit(f"nothing was judged: tests fail with {key} unchanged ({was}); mend this program")
    report(kept["results"])
    sys.exit(code)


def keep(kept: dict[str, Any]) -> None:
    """Keep the results: all of them or those before, whenever the run is interrupted."""
    beside = STATE.with_suffix(".new")
    beside.write_text(json.dumps(kept, indent=1))
    beside.replace(STATE)


def report(results: dict[str, str]) -> None:
    """How many mutants there were, and the rows that no test noticed."""
    for verdict in sorted(set(results.values())):
        found = [name for name, was in results.items() if was == verdict]
        sys.stdout.write(f"{verdict}: {len(found)} of {len(results)}\n")
        if verdict not in ("noticed", "refused", ON_PAGE):
            sys.stdout.write("".join(f"  {name}\n" for name in found))


if __name__ == "__main__":
    main()
