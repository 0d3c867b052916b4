"""Writes the page of a campaign: the score of each package, and each mutant that survives."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.mutants.campaign import BROKEN, DEAD, Result, results
from tests.mutants.fork_server import HUNG, KILLED
from tests.mutants.mutations import sample_of
from tests.mutants.packages import MUTATED, ROOT, mutated_files

FOLDER = Path(__file__).parent
NOTES = ROOT / "docs/campaigns"
HEAD = """# Mutants, {date}

`make mutants` changes one small thing of the code at a time and runs the tests that run that line, fastest
first, at most 60 s a mutant ([tests/mutants](../../tests/mutants/README.md)). A mutant is *killed* if a test
fails twice with it and passes without it. A mutant *hangs* if a test does not end; it counts as killed. The
sample is fixed: of each package the {size} mutations whose names have the lowest hash.

"""


def equivalents() -> dict[str, str]:
    """Mutants that no test can notice, each with the reason."""
    found = tomllib.loads((FOLDER / "equivalent.toml").read_text(encoding="utf-8"))
    return {each["mutant"]: each["why"] for each in found["equivalent"]}


def before_triage() -> dict[str, dict[str, Any]]:
    """The scores of the first run, before tests were written for its survivors."""
    return tomllib.loads((FOLDER / "before_triage.toml").read_text(encoding="utf-8"))


def write(size: int) -> str:
    """Write the page of all results so far; returns where it is."""
    date = datetime.now(UTC).date().isoformat()
    place = NOTES / f"{date}-mutants.md"
    last = {result.name: result for result in results()}
    text = HEAD.format(date=date, size=size) + page(last, size)
    place.write_text(text, encoding="utf-8")
    return str(place.relative_to(ROOT))


def page(last: dict[str, Result], size: int) -> str:
    """The table of packages and the list of survivors."""
    rows, survivors = [], []
    why, first = equivalents(), before_triage()
    for package in MUTATED:
        sample = sample_of(mutated_files(package), size)
        tried = [last[each.name] for each in sample if each.name in last]
        killed = sum(result.outcome in (KILLED, BROKEN) for result in tried)
        hung = sum(result.outcome == HUNG for result in tried)
        alive = [result for result in tried if result.outcome not in DEAD]
        known = [result for result in alive if result.name in why]
        counted = len(tried) - len(known)
        score = f"{100 * (killed + hung) / counted:.1f} %" if counted else "none"
        was = first.get(package)
        before = f"{100 * was['killed'] / was['tried']:.1f} % of {was['tried']}" if was else "none"
        rows.append(
            f"| `{package}` | {len(tried)} of {len(sample)} | {before} | {killed} | {hung} "
            f"| {len(alive) - len(known)} | {len(known)} | {score} |"
        )
        for result in alive:
            note = f"equivalent: {why[result.name]}" if result.name in why else result.outcome
            survivors.append(f"- line {result.line}, `{result.name.replace('`', '')}`: {note}")
    table = [
        "| package | tried | killed before triage | killed | hung | survived | equivalent | score now |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(
        [*table, "", "The score now leaves equivalent mutants out.", "", "## Survivors", "", *survivors, ""]
    )
