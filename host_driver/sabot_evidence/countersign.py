"""The floor countersigns checkpoints with a key that the table PC does not have.

A countersigned checkpoint is one line of JSON: the PC's ``statement`` and ``signature``, and under
``countersigned`` the floor's own statement and signature. The floor keeps the lines in a file of its own. A
checkpoint that does not continue what the file has is refused: the table's files were put back or forked.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sabot_evidence import verifier
from sabot_evidence.errors import NotCountersigned
from sabot_evidence.signing_key import SigningKey


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """One line of a file that the floor keeps."""

    of: str
    chain: str
    row: int
    hash: str
    key: str
    """The PC's public key."""
    statement: str
    signature: bytes


def read_kept(line: str, where: str) -> KeptCheckpoint:
    """A checkpoint out of a line of JSON; `NotCountersigned` if the PC's signature does not fit."""
    try:
        kept = json.loads(line)
        if "statement" not in kept:  # a line of 'sabot evidence show --json'
            kept = json.loads(kept["checkpoint"])
        text, signature = kept["statement"], bytes.fromhex(kept["signature"])
        found = verifier.read_checkpoint(json.loads(text)["n"], text, signature)
    except (ValueError, KeyError, TypeError) as error:
        raise NotCountersigned(f"{where}: not a checkpoint: {error!r}") from error
    if found is None or not verifier.signature_fits(found.told["key"], signature, text):
        raise NotCountersigned(f"{where}: the checkpoint's signature does not fit")
    told = found.told
    return KeptCheckpoint(told["of"], told["chain"], told["row"], told["hash"], told["key"], text, signature)


def countersigned_line(checkpoint: KeptCheckpoint, key: SigningKey, by: str, at_us: int) -> str:
    """The line that the floor keeps: the checkpoint, who countersigned it, and when."""
    statement = {
        "at_us": at_us,
        "by": by,
        "checkpoint": hashlib.sha256(checkpoint.statement.encode()).hexdigest(),
        "key": key.public,
        "v": 1,
    }
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"))
    signature = key.sign(verifier.COUNTERSIGNED_AS + text.encode()).hex()
    return json.dumps(
        {
            "statement": checkpoint.statement,
            "signature": checkpoint.signature.hex(),
            "countersigned": {"statement": text, "signature": signature},
        }
    )


def check_continues(checkpoint: KeptCheckpoint, before: Sequence[KeptCheckpoint]) -> bool:
    """Whether it is newer than what the floor has of its chain; False if it is the newest one again.

    `NotCountersigned` if the floor has another hash for its row, a later row, or another key of the PC.
    """
    mine = [each for each in before if (each.of, each.chain) == (checkpoint.of, checkpoint.chain)]
    what = f"{checkpoint.of} {checkpoint.chain[:8]}"
    for each in mine:
        if each.row == checkpoint.row and each.hash != checkpoint.hash:
            raise NotCountersigned(f"{what}: FORK: the floor keeps another row {each.row}")
        if each.row > checkpoint.row:
            raise NotCountersigned(
                f"{what}: ROLLBACK: the floor keeps row {each.row}, "
                f"and this checkpoint is of row {checkpoint.row}"
            )
        if each.key != checkpoint.key:
            raise NotCountersigned(
                f"{what}: OTHER KEY: the floor keeps checkpoints of the PC's key {each.key[:16]}, "
                f"and this one is signed by {checkpoint.key[:16]}"
            )
    return not any(each.row == checkpoint.row for each in mine)


def read_kept_file(path: Path) -> list[KeptCheckpoint]:
    """Everything that a file of the floor has; a file that is not there has nothing."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [read_kept(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.startswith("{")]
