"""``python -m sabot_protocol.generate``: write what changed; with ``--check`` only say what would."""

import argparse
import sys
from pathlib import Path

from sabot_protocol.generate.canonical_schema import ARTEFACT as SCHEMA_HASH
from sabot_protocol.generate.checkout import Artefact, NoCheckout, repository_root


def main(arguments: list[str] | None = None) -> int:
    """Write the stale artefacts, or with ``--check`` name them and return 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m sabot_protocol.generate", description="Write the files that come out of the schema."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    check: bool = parser.parse_args(arguments).check
    try:
        root = repository_root()
    except NoCheckout as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return _check(root) if check else _write(root)


def _check(root: Path) -> int:
    from sabot_protocol.generate.artefacts import stale

    found = stale(root)
    for artefact in found:
        sys.stdout.write(f"stale: {artefact.path}\n")
    if found:
        sys.stdout.write("run 'python -m sabot_protocol.generate' and commit what it writes\n")
    return 1 if found else 0


def _write(root: Path) -> int:
    """The schema's hash first: importing what makes the others reads it, and they show it."""
    if SCHEMA_HASH.is_stale(root):
        _write_one(SCHEMA_HASH, root)
    from sabot_protocol.generate.artefacts import stale

    for artefact in stale(root):
        _write_one(artefact, root)
    return 0


def _write_one(artefact: Artefact, root: Path) -> None:
    artefact.write(root)
    sys.stdout.write(f"wrote {artefact.path}\n")


if __name__ == "__main__":
    sys.exit(main())
