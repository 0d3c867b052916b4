"""Clause, tests and results of one build: out of clauses.json and the JUnit file of its test run."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass

from sabot_lab.errors import ResultsUnusable

PASSED, FAILED, SKIPPED, NOT_RUN = "passed", "failed", "skipped", "not run"
WORST_FIRST = (FAILED, NOT_RUN, SKIPPED, PASSED)
NO_TEST = {"people": "no test: people do it"}


@dataclass(frozen=True, slots=True)
class Row:
    """One clause: who fulfils it, the tests that prove it with their results, and the result of all."""

    clause: str
    duty: str
    says: str
    tests: tuple[tuple[str, str], ...]
    result: str


def read_results(data: bytes, commit: str) -> dict[str, str]:
    """The result of each test function, the worst of its cases; `ResultsUnusable` if not of this commit."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ResultsUnusable("the results declare entities, which no test run does")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ResultsUnusable(f"the results cannot be read: {error}") from error
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    if not suites:
        raise ResultsUnusable("no test run is in the results")
    found: dict[str, str] = {}
    for suite in suites:
        if suite.get("name") != commit:
            raise ResultsUnusable(f"the results are of '{suite.get('name')}', and this is commit {commit}")
        for case in suite.findall("testcase"):
            name = (case.get("name") or "").partition("[")[0]
            test = f"{(case.get('classname') or '').replace('.', '/')}.py::{name}"
            how = PASSED
            if case.find("failure") is not None or case.find("error") is not None:
                how = FAILED
            elif case.find("skipped") is not None:
                how = SKIPPED
            found[test] = min(how, found.get(test, how), key=WORST_FIRST.index)
    return found


def matrix(clauses: str, results: dict[str, str] | None) -> list[Row]:
    """Every clause with its tests and their results; without results every test is *not run*."""
    rows = []
    for each in json.loads(clauses):
        tests = tuple((test, (results or {}).get(test, NOT_RUN)) for test in each["tests"])
        if tests:
            result = min((how for _, how in tests), key=WORST_FIRST.index)
        else:
            result = NO_TEST.get(each["duty"], "no test yet")
        rows.append(Row(each["clause"], each["duty"], each["says"], tests, result))
    return rows


def as_csv(rows: list[Row]) -> bytes:
    """The matrix, one line for each clause and test."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(("clause", "duty", "asks", "test", "result of the test", "result of the clause"))
    for row in rows:
        for test, how in row.tests or (("", ""),):
            write((row.clause, row.duty, row.says, test, how, row.result))
    return text.getvalue().encode()


def counts(rows: list[Row]) -> dict[str, int]:
    """How many clauses have each result."""
    return dict(sorted(Counter(row.result for row in rows).items()))
