"""One archive with copies of journals and records, what signs them, and the verifier itself."""

import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO

from sabot_evidence import verifier
from sabot_evidence.chain import Checkpoint, newest_checkpoint
from sabot_evidence.errors import ChainDamaged

LOCK_S = 10.0  # how long to wait for a program that writes
README = """Evidence of a table. Verify it with Python 3.11 or newer and the library 'cryptography':

    python verifier.py ARCHIVE.zip

Add --anchor FILE for the floor's lines, --chain-key FILE for the device's K_0, --pc-key HEX for the PC's key.
docs/evidence.md of the project explains every word it says. Take verifier.py from a source that you
trust, not from this archive, if the archive itself is in doubt.
"""


def read_newest(path: Path) -> Checkpoint | None:
    """The newest checkpoint of a journal or record, read without holding the file; None if there is none.

    `ChainDamaged` if it cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            found = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'").fetchone()
            return None if found is None else newest_checkpoint(db)
    except sqlite3.Error as error:
        raise ChainDamaged(f"{path}: {error}") from error


def kept_text(newest: Checkpoint) -> str:
    """A checkpoint as one line of JSON that the verifier takes as an anchor."""
    return json.dumps({"statement": newest.text, "signature": newest.signature.hex()})


def export(out: BinaryIO, files: Sequence[Path], device: dict[str, object] | None = None) -> None:
    """Write the archive: a snapshot of each file, the newest checkpoints, the verifier, a page to read first.

    Programs may write the files meanwhile. ``device`` is the newest checkpoint as the device itself gave it.
    `ChainDamaged` for a file that cannot be read.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        zipfile.ZipFile(out, "w", compression=zipfile.ZIP_DEFLATED) as archive,
    ):
        kept = []
        copies = snapshots(files, Path(name))
        for number, (path, copy) in enumerate(zip(files, copies, strict=True)):
            taken = {each.filename for each in archive.infolist()}
            archive.write(copy, path.name if path.name not in taken else f"{number}-{path.name}")
            newest = read_newest(copy)
            if newest is not None:
                kept.append(kept_text(newest))
        archive.writestr("checkpoints.jsonl", "".join(each + "\n" for each in kept))
        if device is not None:
            archive.writestr("device-checkpoint.json", json.dumps(device) + "\n")
        archive.writestr("verifier.py", Path(verifier.__file__).read_text(encoding="utf-8"))
        archive.writestr("README.txt", README)


def snapshots(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copies of databases as they all were at one moment, each in one file; `ChainDamaged` names the file.

    Their programs wait meanwhile. Each file's checkpoints name the other's newest row, so copies of two
    moments would look like a file that was put back.
    """
    copies = []
    with ExitStack() as stack:
        for path in files:
            stack.enter_context(closing(_locked(path)))
        for number, path in enumerate(files):
            copy = folder / f"{number}.db"
            try:
                with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
                    source.backup(target)
                    target.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.Error as error:
                raise ChainDamaged(f"{path}: {error}") from error
            copies.append(copy)
    return copies


def _locked(path: Path) -> sqlite3.Connection:
    """A database that no program writes until the connection is closed."""
    db = None
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", LOCK_S, isolation_level=None, uri=True)
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        if db is not None:
            db.close()
        raise ChainDamaged(f"{path}: {error}") from error
    return db
