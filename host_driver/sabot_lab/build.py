"""Gathers the files of the package out of a source tree, test results and images."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from sabot_flash.uf2_image import Uf2Image
from sabot_lab import archive, change_scope, clause_matrix, pages
from sabot_lab.errors import SourceUnusable
from sabot_lab.source_tree import SourceTree

CLAUSES = "host_driver/sabot_table/clauses.json"
VERSION = "protocol/sabot_protocol/__init__.py"
FAIRNESS = ("fairness.md", "fairness-tests.md", "side-channels.md", "shuffling.md", "commit-reveal.md")
PAGES = (
    "faults.md", "rules.md", "security.md", "evidence.md", "credentials.md", "testing.md", "benchmarks.md",
)  # fmt: skip


def build(source: SourceTree, results: bytes | None, images: Mapping[str, Uf2Image]) -> bytes:
    """The package, not signed. Equal inputs give equal bytes.

    `SourceUnusable` or `ResultsUnusable` says what is missing.
    """
    tests = None if results is None else clause_matrix.read_results(results, source.commit)
    try:
        rows = clause_matrix.matrix(source.text(CLAUSES), tests)
        since = source.last_release()
        files = {
            "README.md": pages.first_page(
                source, version(source), None if tests is None else clause_matrix.counts(rows), since
            ),
            "recipe.md": pages.recipe(source, {name: each.data for name, each in images.items()}),
            "sources.sha256": source.hashes(),
            "components.json": components(source, images),
            "noise.md": pages.NOISE,
            "changes.md": change_scope.page(source, since),
            "risks.md": pages.risks(source),
            "fairness/commands.md": pages.COMMANDS,
        }
    except (ValueError, KeyError, TypeError) as error:
        raise SourceUnusable(f"{source.folder}: {error}", "Give the whole project.") from error
    made = {name: text.encode() for name, text in files.items()}
    made["clauses.csv"] = clause_matrix.as_csv(rows)
    made["faults.csv"] = source.read("docs/faults.csv")
    made |= {f"fairness/{name}": source.read(f"docs/{name}") for name in FAIRNESS}
    made |= {f"pages/{name}": source.read(f"docs/{name}") for name in PAGES}
    made |= {f"campaigns/{Path(name).name}": source.read(name) for name in source.under("docs/campaigns")}
    made |= {f"images/{name}": each.data for name, each in images.items()}
    return archive.pack(made)


def version(source: SourceTree) -> str:
    """The project's version."""
    found = re.search(r'^__version__ = "(.+?)"', source.text(VERSION), re.MULTILINE)
    if found is None:
        raise ValueError(f"{VERSION} tells no version")
    return found[1]


def components(source: SourceTree, images: Mapping[str, Uf2Image]) -> str:
    """Components of the images, hashes of the packages, and the lowest versions of libraries."""
    project = source.project()["project"]
    told = {
        "version": version(source),
        "commit": source.commit,
        "images": {
            name: [
                {"name": each.name, "version": each.version, "sha256": each.sha256.hex()}
                for each in image.components
            ]
            for name, image in sorted(images.items())
        },
        "packages_sha256": source.packages(),
        "lowest_versions": {
            "python": project["requires-python"],
            "libraries": sorted(project["dependencies"]),
            "extras": {name: sorted(each) for name, each in project["optional-dependencies"].items()},
        },
    }
    return json.dumps(told, indent=1, sort_keys=True) + "\n"

