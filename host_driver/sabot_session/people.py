"""The register of people on the table PC: who they are, their roles, and how each proves it.

A person has a PIN and may hold a badge, key files that devices know, or a certificate of the house
(docs/credentials.md). A PIN alone signs a dealer in and authorises nothing else. The register is a SQLite
file that only its owner can read; PINs and badge codes are in it as scrypt hashes, keys as their SHA-256.
docs/security.md says what this stops and what not.

A wrong PIN is counted on disk before the PIN is looked at, so ending the program saves nobody the delay.
"""

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sabot_driver.credentials import Credential
from sabot_driver.private_files import make_folder, prepare_database
from sabot_house.errors import HouseError, WrongRole
from sabot_house.proof import ShownCertificate
from sabot_house.trust import HouseTrust
from sabot_session import pin_hash
from sabot_session.errors import (
    BadPerson,
    CertificateRefused,
    NotAuthenticated,
    NothingHeld,
    PeopleFailed,
    PersonUnknown,
    PinDelayed,
    WrongPin,
)
from sabot_session.rows import Authentication
from sabot_table.procedure import TableRole

VERSION = 1
BUSY_S = 5.0
ROLES = (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE)
FREE_TRIES = 3  # wrong PINs without a delay
FIRST_DELAY_S = 30  # then 30 s, doubled with each wrong PIN
LONGEST_DELAY_S = 900
PIN = re.compile(r"[0-9]{4,12}")
PERSON_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
SHORTEST_BADGE = 4
LONGEST_NAME = 100
STEPS = "01234567890 09876543210"

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE people (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, roles TEXT NOT NULL, pin TEXT NOT NULL, badge TEXT UNIQUE,
    wrong INTEGER NOT NULL DEFAULT 0, tried_s INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE keys (
    sha256 TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES people (id), role TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE changes (
    number INTEGER PRIMARY KEY, at_s INTEGER NOT NULL, by TEXT NOT NULL, person TEXT NOT NULL,
    what TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in the register. A removed person stays, because records name them."""

    person: str
    name: str
    roles: frozenset[TableRole]
    has_badge: bool
    keys: tuple[TableRole, ...]
    """The roles of the key files this person holds."""
    removed: bool


@dataclass(frozen=True, slots=True)
class Presented:
    """What somebody shows: an id, a badge, a key or a certificate, and a PIN."""

    pin: str = field(repr=False)
    person: str = ""
    badge: str = field(default="", repr=False)
    key: Credential | None = None
    certificate: ShownCertificate | None = None


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A person who proved who they are, the roles that this proof allows, and a key for the device."""

    person: str
    roles: frozenset[TableRole]
    how: Authentication
    key: Credential | None = None
    """What authorises requests that the device guards; None if the person showed no key."""


@dataclass(frozen=True, slots=True)
class RegisterChange:
    """One change of the register: who made it, to whose entry, and what it was."""

    at_s: int
    by: str
    person: str
    what: str


class PeopleRegister:
    """The people of a house as this table PC knows them; None keeps the register in memory.

    Every change names the person who makes it (``by``), and is listed by `changes`. Several programs may use
    the register at once.
    """

    def __init__(self, path: Path | None, salt: Callable[[], bytes] = pin_hash.new_salt) -> None:
        """Open or begin a register; `PeopleFailed` if it cannot be used. The house it trusts is beside it."""
        self.path = path
        self.house = None if path is None else path.with_name("house.db")
        self._salt = salt
        self._lock = threading.RLock()
        try:
            if path is not None:
                make_folder(path.parent)
                prepare_database(path)
            self._db = sqlite3.connect(
                ":memory:" if path is None else path, BUSY_S, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise PeopleFailed(f"{path}: {error}") from error
        except OSError as error:
            advice = "Check the disk and the rights of the folder. SABOT_HOME must name a folder."
            raise PeopleFailed(f"{path}: {error.strerror or error}", advice) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._db.close()
            raise PeopleFailed(f"{path}: {error}") from error
        except PeopleFailed:
            self._db.close()
            raise

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise PeopleFailed(
                f"{self.path}: a register of version {version}, not {VERSION}", "Update this program."
            )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        if version == 0:
            with self._transaction() as db:
                for statement in _TABLES.split(";\n"):
                    if statement.strip():
                        db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('badge_salt', ?)", (self._salt().hex(),))
                db.execute(f"PRAGMA user_version={VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # -- who is there ---------------------------------------------------------------------------

    def people(self, removed: bool = False) -> Sequence[Person]:
        """Everybody, by id; with ``removed`` also those who were removed."""
        found = [_person(row, self._keys(row[0])) for row in self._all(f"{_PERSON} ORDER BY id")]
        return [each for each in found if removed or not each.removed]

    def find(self, person: str) -> Person:
        """Somebody by id, removed or not; `PersonUnknown` if the id was never enrolled."""
        rows = self._all(f"{_PERSON} WHERE id = ?", person)
        if not rows:
            raise PersonUnknown(f"nobody here has the id '{person}'")
        return _person(rows[0], self._keys(person))

    def changes(self) -> Sequence[RegisterChange]:
        """Every change of the register, oldest first."""
        return [
            RegisterChange(*row)
            for row in self._all("SELECT at_s, by, person, what FROM changes ORDER BY number")
        ]

    def _keys(self, person: str) -> tuple[TableRole, ...]:
        rows = self._all("SELECT role FROM keys WHERE person = ? ORDER BY role", person)
        return tuple(TableRole(role) for (role,) in rows)

    # -- changes --------------------------------------------------------------------------------

    def enrol(
        self, person: str, name: str, roles: Collection[TableRole], pin: str, by: str, at_s: int
    ) -> None:
        """Add somebody. An id is given once: records name people by it.

        `BadPerson` for an id, a name, roles or a PIN that cannot be.
        """
        if not PERSON_ID.fullmatch(person):
            raise BadPerson(f"'{person}' is no id: use up to 32 letters, digits, dots and dashes")
        if not name.strip():
            raise BadPerson(f"{person} has no name")
        if not name.isprintable() or len(name) > LONGEST_NAME:
            raise BadPerson(f"the name of {person} is no plain text of up to {LONGEST_NAME} characters")
        if not roles or not set(roles) <= set(ROLES):
            raise BadPerson(f"{person} is to be one or more of {', '.join(ROLES)}")
        _check_pin(pin)
        hashed = pin_hash.hash_secret(pin, self._salt())
        with self._transaction() as db:
            if db.execute("SELECT 1 FROM people WHERE id = ?", (person,)).fetchone():
                raise BadPerson(f"the id '{person}' was given before", "Choose another id.")
            db.execute(
                "INSERT INTO people (id, name, roles, pin) VALUES (?,?,?,?)",
                (person, name.strip(), json.dumps(sorted(roles)), hashed),
            )
            _note(db, at_s, by, person, f"enrolled as {', '.join(sorted(roles))}")

    def change_pin(self, person: str, pin: str, new: str, at_s: int) -> None:
        """Somebody changes their own PIN, and proves the old one; errors as `authenticate` has them."""
        _check_pin(new)
        self._check_entered(person, pin, at_s)
        self._set_pin(person, new, person, at_s, "changed the PIN")

    def set_pin(self, person: str, new: str, by: str, at_s: int) -> None:
        """Somebody else sets a forgotten PIN anew; the delay after wrong PINs ends."""
        _check_pin(new)
        self._set_pin(person, new, by, at_s, "got a new PIN")

    def _set_pin(self, person: str, new: str, by: str, at_s: int, what: str) -> None:
        hashed = pin_hash.hash_secret(new, self._salt())
        with self._transaction() as db:
            self._must_be_here(db, person)
            db.execute("UPDATE people SET pin = ?, wrong = 0, tried_s = 0 WHERE id = ?", (hashed, person))
            _note(db, at_s, by, person, what)

    def give_badge(self, person: str, badge: str, by: str, at_s: int) -> None:
        """The badge a person holds from now on, instead of an older one."""
        code = badge.strip()
        if len(code) < SHORTEST_BADGE:
            raise BadPerson(f"a badge code has at least {SHORTEST_BADGE} characters")
        hashed = self._badge_hash(code)
        with self._transaction() as db:
            self._must_be_here(db, person)
            other = db.execute("SELECT id FROM people WHERE badge = ?", (hashed,)).fetchone()
            if other is not None and other[0] != person:
                raise BadPerson(f"{other[0]} holds this badge")
            db.execute("UPDATE people SET badge = ? WHERE id = ?", (hashed, person))
            _note(db, at_s, by, person, "got a badge")

    def take_badge(self, person: str, by: str, at_s: int) -> None:
        """A person's badge is no longer good: lost or given back."""
        with self._transaction() as db:
            self._must_be_here(db, person)
            db.execute("UPDATE people SET badge = NULL WHERE id = ?", (person,))
            _note(db, at_s, by, person, "holds no badge")

    def give_key(self, person: str, key: Credential, by: str, at_s: int) -> None:
        """A key file that a person holds from now on; an older key of the same role is no longer good."""
        role = TableRole(key.role.name.lower())
        with self._transaction() as db:
            roles = self._must_be_here(db, person)
            if role not in roles:
                raise BadPerson(f"{person} is not {role}, and this is a key of that role")
            owner = db.execute("SELECT person FROM keys WHERE sha256 = ?", (_fingerprint(key),)).fetchone()
            if owner is not None and owner[0] != person:
                raise BadPerson(f"{owner[0]} holds this key")
            db.execute("DELETE FROM keys WHERE person = ? AND role = ?", (person, role))
            db.execute("INSERT OR REPLACE INTO keys VALUES (?,?,?)", (_fingerprint(key), person, role))
            _note(db, at_s, by, person, f"got a key as {role}")

    def remove(self, person: str, by: str, at_s: int) -> None:
        """Somebody leaves: PIN, badge and keys are no longer good; id and name stay for the records."""
        with self._transaction() as db:
            self._must_be_here(db, person)
            db.execute("UPDATE people SET removed = 1, badge = NULL, pin = '' WHERE id = ?", (person,))
            db.execute("DELETE FROM keys WHERE person = ?", (person,))
            _note(db, at_s, by, person, "removed")

    @staticmethod
    def _must_be_here(db: sqlite3.Connection, person: str) -> list[str]:
        """The roles of somebody who is enrolled and not removed."""
        found = db.execute("SELECT roles FROM people WHERE id = ? AND removed = 0", (person,)).fetchone()
        if found is None:
            raise PersonUnknown(f"nobody here has the id '{person}'")
        return list(json.loads(found[0]))

    # -- proof ----------------------------------------------------------------------------------

    def authenticate(self, shown: Presented, at_s: int) -> Authenticated:
        """Who somebody is, and which roles the proof allows.

        `PersonUnknown` for an id, badge or key that nobody here has; `WrongPin`; `PinDelayed` while a delay
        runs; `NothingHeld` if a PIN alone is not enough for any of the person's roles; `NotAuthenticated` if
        id, badge, key and certificate are of different people; `CertificateRefused` for a certificate or a
        proof that is not good.
        """
        person, how = self._identify(shown)
        roles = self.find(person).roles
        if how is Authentication.CERTIFICATE_AND_PIN:
            roles &= self._certified(shown, person, at_s)
        if how is Authentication.PIN:
            if TableRole.DEALER not in roles:
                raise NothingHeld(f"{person} is no dealer, and a PIN alone signs only a dealer in")
            roles = frozenset({TableRole.DEALER})
        self._check_entered(person, shown.pin, at_s)
        return Authenticated(person, roles, how, shown.key)

    def _identify(self, shown: Presented) -> tuple[str, Authentication]:
        found = {}
        if shown.badge:
            found[Authentication.BADGE_AND_PIN] = self._holder_of_badge(shown.badge)
        if shown.key is not None:
            found[Authentication.KEY_AND_PIN] = self._holder_of_key(shown.key)
        if shown.certificate is not None:
            found[Authentication.CERTIFICATE_AND_PIN] = shown.certificate.person
        if shown.person or not found:
            found[Authentication.PIN] = shown.person
        if len(set(found.values())) > 1:
            raise NotAuthenticated("id, badge, key and certificate are of different people")
        strongest = (
            Authentication.CERTIFICATE_AND_PIN,
            Authentication.KEY_AND_PIN,
            Authentication.BADGE_AND_PIN,
            Authentication.PIN,
        )
        how = next(each for each in strongest if each in found)
        return found[how], how

    def _certified(self, shown: Presented, person: str, at_s: int) -> frozenset[TableRole]:
        """The roles of the certificate that somebody shows and proves; the proof is used up."""
        assert shown.certificate is not None
        if self.house is None or not self.house.exists():
            raise CertificateRefused(
                "this computer trusts no house", "Show a badge or a key file, or see 'sabot house trust'."
            )
        try:
            with HouseTrust(self.house) as house:
                house.prove(shown.certificate, at_s)
            roles = frozenset(TableRole(each) for each in shown.certificate.certificate.told["roles"])
            if not roles & self.find(person).roles:
                raise WrongRole(f"{person} is enrolled for none of the certificate's roles")
        except HouseError as error:
            raise CertificateRefused(str(error), error.advice) from error
        except ValueError as error:
            raise CertificateRefused(f"the certificate has an unknown role: {error}") from error
        return roles

    def _holder_of_badge(self, badge: str) -> str:
        rows = self._all("SELECT id FROM people WHERE badge = ?", self._badge_hash(badge.strip()))
        if not rows:
            raise PersonUnknown("nobody here holds this badge")
        return str(rows[0][0])

    def _holder_of_key(self, key: Credential) -> str:
        rows = self._all(
            "SELECT person FROM keys WHERE sha256 = ? AND role = ?", _fingerprint(key), key.role.name.lower()
        )
        if not rows:
            raise PersonUnknown("nobody here holds this key")
        return str(rows[0][0])

    def _badge_hash(self, code: str) -> str:
        """One salt for all badges: a badge names its person, so it is looked up by its hash."""
        (salt,) = self._all("SELECT value FROM meta WHERE name = 'badge_salt'")[0]
        return pin_hash.hash_secret(code, bytes.fromhex(salt))

    def _check_entered(self, person: str, pin: str, at_s: int) -> None:
        """Check a PIN. The try is on disk as wrong before the PIN is looked at."""
        with self._transaction() as db:
            self._must_be_here(db, person)
            row = db.execute("SELECT pin, wrong, tried_s FROM people WHERE id = ?", (person,)).fetchone()
            kept, wrong, tried_s = row
            if at_s < tried_s:  # the clock was set back: the delay begins again, and no longer than once
                db.execute("UPDATE people SET tried_s = ? WHERE id = ?", (at_s, person))
            waits_s = _delay_s(wrong) - max(at_s - tried_s, 0)
            if waits_s <= 0:
                db.execute("UPDATE people SET wrong = wrong + 1, tried_s = ? WHERE id = ?", (at_s, person))
        if waits_s > 0:
            raise PinDelayed(person, waits_s)
        try:
            right = pin_hash.matches(pin, kept)
        except ValueError as error:
            raise PeopleFailed(f"{self.path}: the PIN of {person} cannot be read: {error}") from error
        if not right:
            raise WrongPin(person, _delay_s(wrong + 1))
        with self._transaction() as db:
            db.execute("UPDATE people SET wrong = 0, tried_s = 0 WHERE id = ?", (person,))

    # -- SQL ------------------------------------------------------------------------------------

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise PeopleFailed(f"{self.path}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise PeopleFailed(f"{self.path}: {error}") from error
            finally:
                if self._db.in_transaction:
                    self._db.rollback()


_PERSON = "SELECT id, name, roles, badge IS NOT NULL, removed FROM people"


def _person(row: tuple[Any, ...], keys: tuple[TableRole, ...]) -> Person:
    person, name, roles, badge, removed = row
    known = frozenset(TableRole(each) for each in json.loads(roles))
    return Person(person, name, known, bool(badge), keys, bool(removed))


def _delay_s(wrong: int) -> int:
    """How long nobody may try after so many wrong PINs in a row."""
    if wrong < FREE_TRIES:
        return 0
    return min(FIRST_DELAY_S << min(wrong - FREE_TRIES, 16), LONGEST_DELAY_S)


def _check_pin(pin: str) -> None:
    if not PIN.fullmatch(pin):
        raise BadPerson("a PIN is 4 to 12 digits")
    if len(set(pin)) == 1 or pin in STEPS:
        raise BadPerson("a PIN of equal digits or of digits in a row is the first that others try")


def _fingerprint(key: Credential) -> str:
    return hashlib.sha256(b"sabot person key" + key.key).hexdigest()


def _note(db: sqlite3.Connection, at_s: int, by: str, person: str, what: str) -> None:
    db.execute("INSERT INTO changes (at_s, by, person, what) VALUES (?,?,?,?)", (at_s, by, person, what))
