"""The house's office: a folder with the house key on a computer that is not connected to any table.

The folder holds ``house.pem`` (the key), ``house.json`` (what tables trust), ``issued.jsonl`` (every
certificate), ``revocations.json`` (the newest list) and ``rotations.jsonl``.
"""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from sabot_evidence.signing_key import SigningKey
from sabot_house import statements
from sabot_house.errors import OfficeUnusable
from sabot_house.statements import Statement

KEY, ABOUT, ISSUED, REVOKED, ROTATED = (
    "house.pem", "house.json", "issued.jsonl", "revocations.json", "rotations.jsonl",
)  # fmt: skip
ROLES = ("dealer", "floor", "service")
PERSON = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
PUBLIC = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Issued:
    """One certificate of the house."""

    certificate: Statement
    revoked: bool

    @property
    def person(self) -> str:
        """Whose it is."""
        return str(self.certificate.told["person"])


def begin(folder: Path, name: str, draw: Callable[[Path], SigningKey]) -> "Office":
    """A new house: its key and the statement that tables trust; `OfficeUnusable` if the folder has one."""
    if (folder / KEY).exists():
        raise OfficeUnusable(f"{folder}: there is a house key already", "Name a new folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise OfficeUnusable(f"{folder}: {error.strerror}") from error
    key = draw(folder / KEY)
    _write(folder / ABOUT, statements.sign(statements.HOUSE, key, key=key.public, name=name))
    office = Office(folder, key)
    office._revoke(0, [])
    return office


class Office:
    """A house's folder, with the key at hand."""

    def __init__(self, folder: Path, key: SigningKey | None, old: bool = False) -> None:
        """`OfficeUnusable` if the key is not the one of the house. Without a key it can only be read.

        ``old``: a key that was rotated away is taken too, for devices that do not know the new one.
        """
        self.folder = folder
        self._key = key
        self.about = statements.read_file(folder / ABOUT, statements.HOUSE)
        known = [self.about.told["key"], *([each.told["from"] for each in self.rotations()] if old else [])]
        if key is not None and key.public not in known:
            raise OfficeUnusable(f"{folder}: this key is not the house's, {self.about.told['key'][:16]}")

    @property
    def key(self) -> SigningKey:
        """The house key."""
        assert self._key is not None
        return self._key

    def issued(self) -> list[Issued]:
        """Every certificate, oldest first."""
        path = self.folder / ISSUED
        if not path.exists():
            return []
        gone = set(self.revocations().told["revoked"])
        found = [
            statements.read(line, statements.CERTIFICATE, f"{path}, line {number}")
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        ]
        return [Issued(each, each.id in gone) for each in found]

    def revocations(self) -> Statement:
        """The newest list of revocations."""
        return statements.read_file(self.folder / REVOKED, statements.REVOCATIONS)

    def sign(
        self, person: str, roles: Collection[str], site: str, not_after_s: int, public: str, out: Path
    ) -> Statement:
        """A certificate for a person, written to a file; `OfficeUnusable` for values that cannot be."""
        if not PERSON.fullmatch(person):
            raise OfficeUnusable(f"'{person}' is no id: use up to 32 letters, digits, dots and dashes")
        if not roles or not set(roles) <= set(ROLES):
            raise OfficeUnusable(f"{person} is to be one or more of {', '.join(ROLES)}")
        if not site.strip():
            raise OfficeUnusable("a certificate is for one site", "Name it: --site SITE.")
        if not PUBLIC.fullmatch(public):
            raise OfficeUnusable("a public key has 64 digits", "'sabot evidence new-key' prints it.")
        made = statements.sign(
            statements.CERTIFICATE,
            self.key,
            house=self.key.public,
            key=public,
            not_after_s=not_after_s,
            person=person,
            roles=sorted(set(roles)),
            site=site,
        )
        with (self.folder / ISSUED).open("a", encoding="utf-8") as file:
            file.write(made.line() + "\n")
            file.flush()
            os.fsync(file.fileno())
        _write(out, made)
        return made

    def revoke(self, who: str) -> list[Statement]:
        """Revoke every certificate of a person, or one by its id; those that are revoked now.

        `OfficeUnusable` if there is none that is good.
        """
        found = [
            each.certificate
            for each in self.issued()
            if not each.revoked and who in (each.person, each.certificate.id)
        ]
        if not found:
            raise OfficeUnusable(f"no good certificate is of '{who}'", "'sabot house list' shows them all.")
        newest = self.revocations().told
        self._revoke(newest["number"] + 1, [*newest["revoked"], *(each.id for each in found)])
        return found

    def _revoke(self, number: int, revoked: list[str]) -> None:
        made = statements.sign(
            statements.REVOCATIONS, self.key, house=self.key.public, number=number, revoked=sorted(revoked)
        )
        _write(self.folder / REVOKED, made)

    def rotate(self, draw: Callable[[Path], SigningKey], old_until_s: int, out: Path) -> Statement:
        """A new house key, named by a statement that the old key signs.

        The old key's certificates are good until ``old_until_s``. The old key file stays as ``house-N.pem``.
        """
        number = len(self.rotations()) + 1
        new = draw(self.folder / f"new-{KEY}")
        made = statements.sign(
            statements.ROTATION,
            self.key,
            **{"from": self.key.public, "number": number, "old_until_s": old_until_s, "to": new.public},
        )
        with (self.folder / ROTATED).open("a", encoding="utf-8") as file:
            file.write(made.line() + "\n")
        _write(out, made)
        newest, name = self.revocations().told, self.about.told["name"]
        (self.folder / KEY).rename(self.folder / f"house-{number}.pem")
        (self.folder / f"new-{KEY}").rename(self.folder / KEY)
        self._key = new
        about = statements.sign(statements.HOUSE, new, key=new.public, name=name)
        _write(self.folder / ABOUT, about)
        self.about = about
        self._revoke(newest["number"] + 1, newest["revoked"])
        return made

    def reset(self, serial: bytes, count: int, out: Path) -> Statement:
        """The statement that lets one device, whose keys were cleared, take a new key; for one count only."""
        made = statements.sign(
            statements.RESET, self.key, count=count, house=self.key.public, serial=serial.hex()
        )
        _write(out, made)
        return made

    def rotations(self) -> list[Statement]:
        """Every rotation of the house key, oldest first."""
        path = self.folder / ROTATED
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
        return [
            statements.read(line, statements.ROTATION, f"{path}, line {n}") for n, line in enumerate(lines, 1)
        ]


def _write(path: Path, made: Statement) -> None:
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(made.line() + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise OfficeUnusable(f"{path}: {error.strerror}") from error
