"""The pages that the package adds to those of the project: recipe, noise, risks, what to read first."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from sabot_lab.source_tree import SourceTree

TEXTS = Path(__file__).parent / "texts"
NOISE = (TEXTS / "noise.md").read_text(encoding="utf-8")
COMMANDS = (TEXTS / "commands.md").read_text(encoding="utf-8")


def recipe(source: SourceTree, images: Mapping[str, bytes]) -> str:
    """How to build the same bytes, and their hashes."""
    project = source.project()
    lines = [
        "# Build recipe",
        "",
        f"- Commit `{source.commit}`, tree `{source.tree}`.",
        f"- {len(source.files)} files: `sources.sha256` has the hash of each.",
        f"- Python {project['project']['requires-python']}; `components.json` has the libraries.",
        "",
        "```",
        "git clone SOURCE sabot && cd sabot",
        f"git checkout {source.commit}",
        "sha256sum -c sources.sha256   # the file of this package",
        "make pico                     # the image for the Raspberry Pi Pico, in build/",
        "make lab-results              # every test, with the commit in the results",
        "sabot lab-package build --source . --results build/lab/results.xml --out lab.zip",
        "```",
        "",
        "The package is the same, byte for byte, for the same commit, results and images.",
        "`sabot lab-package verify lab.zip --against other.zip` compares two without their signatures.",
        "",
        "| image | SHA-256 |",
        "| --- | --- |",
        *(f"| {name} | {hashlib.sha256(data).hexdigest()} |" for name, data in sorted(images.items())),
    ]
    if not images:
        lines.append("| none was given to this package | |")
    return "\n".join(lines) + "\n"


def risks(source: SourceTree) -> str:
    """Every remaining risk that the pages name, with the page it comes from."""
    lines = ["# Remaining risks", "", "Collected from the project's pages, which have the whole context."]
    for page, heading in (
        ("docs/security.md", "What remains"),
        ("docs/fairness.md", "Limits"),
        ("docs/faults.md", "What no sensor sees"),
        ("docs/evidence.md", "What it cannot see"),
        ("docs/credentials.md", "What remains"),
    ):
        lines += ["", f"## {page}: {heading}", "", section(source.text(page), heading, page)]
    lines += ["", "## docs/security.md: what remains of each attack", ""]
    lines += [f"- {each}" for each in remains(source.text("docs/security.md"))]
    return "\n".join(lines) + "\n"


def section(text: str, heading: str, where: str) -> str:
    """The text under a heading, up to the next one of the same or a higher level."""
    found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^##? |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{where} has no section '{heading}'")
    return found[2].strip()


def remains(text: str) -> list[str]:
    """What remains of each attack, with the attack."""
    found = []
    for each in re.finditer(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|^#|\Z)", text, re.MULTILINE | re.DOTALL):
        left = re.search(r"\*Remains:\* (.*?)(?=\*Test:\*|\Z)", each[2], re.DOTALL)
        if left:
            found.append(f"{' '.join(each[1].split())}: {' '.join(left[1].split())}")
    return found


def first_page(source: SourceTree, version: str, results: Mapping[str, int] | None, since: str | None) -> str:
    """What is in the package, and what is not."""
    lines = [
        f"# Sabot {version}: package for the test laboratory",
        "",
        f"Commit {source.commit}. Verify it: `sabot lab-package verify FILE --trust KEY`.",
        "",
        "| file | what |",
        "| --- | --- |",
        "| recipe.md, sources.sha256 | how to build the same bytes; SHA-256 of every source file |",
        "| components.json | components of images and packages with hashes; lowest versions of libraries |",
        "| clauses.csv | clause, tests, results of this build |",
        "| faults.csv, pages/faults.md | every fault in every phase: what the machine did |",
        "| fairness/ | evidence of uniformity and secrecy, and the commands that repeat it |",
        "| campaigns/ | dated results of long runs |",
        "| noise.md | raw noise for SP 800-90B: **to be taken on the board** |",
        f"| changes.md | change list and re-test scope against {since or 'nothing: no release before'} |",
        "| risks.md | what remains |",
        "",
        "## Clauses",
        "",
    ]
    if results is None:
        lines.append("**No test results were given to this package: every test is `not run`.**")
    else:
        lines += [f"- {count} clauses: {how}" for how, count in results.items()]
    return "\n".join(lines) + "\n"
