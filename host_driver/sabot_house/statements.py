"""Signed statements: one JSON object with canonical text and an Ed25519 signature over it.

What is signed begins with the statement's kind, so that none passes for another. The layout is in
docs/credentials.md.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sabot_evidence.signing_key import SigningKey, signature_fits
from sabot_house.errors import BadStatement

HOUSE, CERTIFICATE, REVOCATIONS, ROTATION, PROOF, RESET = (
    "house", "certificate", "revocations", "rotation", "proof", "reset",
)  # fmt: skip
FIELDS: dict[str, dict[str, type]] = {
    HOUSE: {"key": str, "name": str},
    CERTIFICATE: {"house": str, "key": str, "not_after_s": int, "person": str, "roles": list, "site": str},
    REVOCATIONS: {"house": str, "number": int, "revoked": list},
    ROTATION: {"from": str, "number": int, "old_until_s": int, "to": str},
    RESET: {"count": int, "house": str, "serial": str},
    PROOF: {"at_s": int, "certificate": str, "nonce": str, "site": str},
}
"""What each kind of statement has, beside ``v``, the version of its layout."""
MOST = 1_000_000  # characters of a statement that is read at all


@dataclass(frozen=True, slots=True)
class Statement:
    """One signed statement whose text is canonical; the signature is checked by `signed_by`."""

    kind: str
    text: str
    signature: bytes
    told: Mapping[str, Any]

    @property
    def id(self) -> str:
        """What names it: 32 digits of the hash of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def signed_by(self, public: str) -> bool:
        """Whether this key signed it."""
        return signature_fits(public, self.signature, _signed(self.kind, self.text))

    def line(self) -> str:
        """The statement as a file has it: one line of JSON."""
        return json.dumps(
            {"kind": self.kind, "signature": self.signature.hex(), "statement": self.text}, sort_keys=True
        )


def sign(kind: str, by: SigningKey, /, **told: Any) -> Statement:
    """A new statement."""
    text = _canonical({**told, "v": 1})
    return Statement(kind, text, by.sign(_signed(kind, text)), {**told, "v": 1})


def read(line: str, kind: str, where: str) -> Statement:
    """A statement of one kind; `BadStatement` for anything else. The signature is not yet checked."""
    if len(line) > MOST:
        raise BadStatement(f"{where}: longer than any statement of a house")
    try:
        kept = json.loads(line)
        text, signature = kept["statement"], bytes.fromhex(kept["signature"])
        told = json.loads(text)
        if kept["kind"] != kind:
            raise BadStatement(f"{where}: a statement of kind '{kept['kind']}', not '{kind}'")
        fields = {**FIELDS[kind], "v": int}
        whole = told.keys() == fields.keys() and all(
            type(told[name]) is wanted for name, wanted in fields.items()
        )
        same = _canonical(told) == text and told["v"] == 1
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadStatement(f"{where}: not a statement of a house: {error!r}") from error
    if not whole or not same:
        raise BadStatement(f"{where}: not a whole statement of kind '{kind}'")
    return Statement(kind, text, signature, told)


def read_file(path: Path, kind: str) -> Statement:
    """The statement in a file; `BadStatement` if there is none."""
    try:
        return read(path.read_text(encoding="utf-8"), kind, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadStatement(f"{path}: {error}") from error


def kind_of(path: Path) -> str:
    """The kind that a file says it is; empty for what is no statement."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")[:MOST])
        return str(found["kind"]) if found["kind"] in FIELDS else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _canonical(told: Mapping[str, Any]) -> str:
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def _signed(kind: str, text: str) -> bytes:
    return f"sabot {kind} 1\n".encode() + text.encode()
