"""What changed since the last release, and which tests that asks for again."""

from sabot_lab.source_tree import SourceTree

SCOPE = (
    ("protocol/", "the wire", "make test (conformance, protocol, independent client, fuzz), make test-board"),
    ("firmware/sabot_image_build/", "the image", "make pico twice: equal bytes; make test-board"),
    ("firmware/", "the controller", "make test, test-board, fairness, soak, attack-board"),
    ("host_driver/sabot_table/", "the rules", "make test (rules, table), make monte-carlo"),
    ("host_driver/sabot_session/", "the session", "make test (session, at_table), make kill-days"),
    ("host_driver/sabot_evidence/", "the evidence", "make test (evidence, attacks), make evidence-edits"),
    ("host_driver/sabot_house/", "people's certificates", "make test (house, attacks)"),
    ("host_driver/sabot_driver/", "the driver", "make test (driver, conformance, attacks)"),
    ("host_driver/", "other programs of the table PC", "make test, make test-browser"),
    ("simulators/", "the emulators, with which everything is tested", "make test, make simulate-planted"),
    ("tests/", "the tests", "make test, make mutants-sample"),
    ("docs/", "the pages", "make docs"),
    ("", "build and project files", "make test from a fresh clone"),
)
"""By the beginning of a file's name: what it belongs to, and what is to be run again. The first fits."""


def page(source: SourceTree, since: str | None) -> str:
    """The change list and the re-test scope."""
    commits, files = source.changes(since)
    against = f"release {since}" if since else "nothing: no release was made before, so everything is new"
    lines = ["# Changes and re-test scope", "", f"Against {against}. Commit {source.commit}.", ""]
    lines += ["## What is to be tested again", ""]
    lines += ["| part | files that differ | run again |", "| --- | ---: | --- |"]
    for at, (start, part, run) in enumerate(SCOPE):
        earlier = tuple(each for each, _, _ in SCOPE[:at])
        count = sum(1 for name in files if name.startswith(start) and not name.startswith(earlier))
        again = run if count else "nothing"
        lines.append(f"| {part} | {count} | {again} |")
    lines += ["", "## Commits, newest first", "", *(f"- {each}" for each in commits)]
    lines += ["", "## Files that differ", "", *(f"- {each}" for each in files)]
    return "\n".join(lines) + "\n"
