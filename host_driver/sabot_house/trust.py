"""What a table PC knows of its house: its key, revocations, and which proofs were used.

It is a SQLite file that only its owner can read. What the house signed is taken from anybody; which house is
trusted, and for which site, is a decision of the floor or service.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from sabot_driver.private_files import make_folder, prepare_database
from sabot_house import statements
from sabot_house.errors import (
    BadProof,
    BadStatement,
    CertificateExpired,
    CertificateRevoked,
    HouseError,
    NoHouse,
    OldStatement,
    OtherHouse,
    WrongSite,
)
from sabot_house.proof import ShownCertificate
from sabot_house.statements import Statement

VERSION = 1
BUSY_S = 5.0
PROOF_S = 120  # how far a proof's time may be from this computer's
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE old_keys (key TEXT PRIMARY KEY, until_s INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE revoked (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE proofs (nonce TEXT PRIMARY KEY, at_s INTEGER NOT NULL) WITHOUT ROWID;
"""


class HouseTrust(AbstractContextManager["HouseTrust"]):
    """The house of a table PC; None keeps it in memory. Several programs may use the file at once."""

    def __init__(self, path: Path | None) -> None:
        """Open or begin it; `HouseError` if the file cannot be used."""
        self.path = path
        self._lock = threading.RLock()
        try:
            if path is not None:
                make_folder(path.parent)
                prepare_database(path)
            self._db = sqlite3.connect(
                ":memory:" if path is None else path, BUSY_S, isolation_level=None, check_same_thread=False
            )
        except (sqlite3.Error, OSError) as error:
            raise HouseError(f"{path}: {error}") from error
        try:
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise HouseError(f"{path}: version {version}, not {VERSION}", "Update this program.")
            self._db.execute("PRAGMA synchronous=FULL")
            if version == 0:
                with self._transaction() as db:
                    for each in _TABLES.split(";\n"):
                        if each.strip():
                            db.execute(each)
                    db.execute(f"PRAGMA user_version={VERSION}")
        except sqlite3.Error as error:
            self._db.close()
            raise HouseError(f"{path}: {error}") from error
        except HouseError:
            self._db.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # -- the house ------------------------------------------------------------------------------

    @property
    def site(self) -> str:
        """The site of this computer; empty while no house is trusted."""
        return self._meta().get("site", "")

    @property
    def key(self) -> str:
        """The house's public key; empty while no house is trusted."""
        return self._meta().get("key", "")

    @property
    def revocations(self) -> int:
        """The number of the newest list of revocations; -1 before the first."""
        return int(self._meta().get("revocations", "-1"))

    @property
    def newest_list(self) -> Statement | None:
        """The newest list of revocations, as the house signed it; None if this file never had one whole."""
        line = self._meta().get("list", "")
        return statements.read(line, statements.REVOCATIONS, str(self.path)) if line else None

    def trust(self, about: Statement, site: str) -> None:
        """Trust a house, also the same one again. Revocations, old keys and the newest time are forgotten."""
        public = str(about.told["key"])
        if not about.signed_by(public):
            raise BadStatement("the house's statement is not signed by its own key")
        if not site.strip():
            raise HouseError("a table PC is at one site", "Name it: --site SITE.")
        with self._transaction() as db:
            for table in ("meta", "old_keys", "revoked"):
                db.execute(f"DELETE FROM {table}")
            for name, value in (("key", public), ("name", about.told["name"]), ("site", site)):
                db.execute("INSERT INTO meta VALUES (?, ?)", (name, value))

    def add_rotation(self, made: Statement) -> None:
        """The house has a new key; `OtherHouse` unless the key that is trusted now signed it."""
        told, key = made.told, self._house()
        if told["from"] != key or not made.signed_by(key):
            raise OtherHouse(f"this rotation is not signed by the house's key, {key[:16]}")
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO old_keys VALUES (?, ?)", (key, told["old_until_s"]))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('key', ?)", (told["to"],))

    def add_revocations(self, made: Statement) -> int:
        """Take a list of revocations; its number. A list that is older than the newest is refused."""
        told, key = made.told, self._house()
        if told["house"] != key or not made.signed_by(key):
            raise OtherHouse(f"these revocations are not signed by the house's key, {key[:16]}")
        revoked = {str(each) for each in told["revoked"]}
        with self._transaction() as db:
            there = {row[0] for row in db.execute("SELECT id FROM revoked")}
            number = int(told["number"])
            if number < self.revocations:
                words = f"revocations {number} are older than number {self.revocations}, which is here"
                raise OldStatement(words)
            if there - revoked:
                raise OldStatement(f"revocations {number} leave out {len(there - revoked)} that are here")
            if number == self.revocations and revoked != there:
                raise OldStatement(f"there are two lists of revocations with number {number}")
            db.executemany("INSERT OR IGNORE INTO revoked VALUES (?)", [(each,) for each in revoked])
            db.execute("INSERT OR REPLACE INTO meta VALUES ('revocations', ?)", (str(number),))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('list', ?)", (made.line(),))
        return number

    # -- people ---------------------------------------------------------------------------------

    def check(self, certificate: Statement, at_s: int) -> None:
        """Nothing if a certificate is good here and now; else the error that says why not."""
        told, key = certificate.told, self._house()
        signer = str(told["house"])
        old = dict(self._all("SELECT key, until_s FROM old_keys"))
        if signer != key and signer not in old:
            raise OtherHouse(f"the certificate is of another house, {signer[:16]}")
        if not certificate.signed_by(signer):
            raise BadStatement("the certificate is forged or damaged: the house's signature does not fit")
        if signer != key and self._no_earlier(at_s) > old[signer]:
            raise CertificateExpired("the certificate is of the house's old key, which is no longer good")
        if self._all("SELECT 1 FROM revoked WHERE id = ?", certificate.id):
            raise CertificateRevoked(f"the house has revoked the certificate of {told['person']}")
        if told["site"] != self.site:
            raise WrongSite(f"the certificate is for {told['site']}, and this is {self.site}")
        if self._no_earlier(at_s) > told["not_after_s"]:
            raise CertificateExpired(f"the certificate of {told['person']} is no longer good")

    def _no_earlier(self, at_s: int) -> int:
        """``at_s``, or the newest time of an accepted proof on this computer's clock, if that is later."""
        return max(at_s, int(self._meta().get("newest_s", "0")))

    def prove(self, shown: ShownCertificate, at_s: int) -> None:
        """Check certificate and proof; the proof is used up. The errors of `check`, or `BadProof`."""
        self.check(shown.certificate, at_s)
        told = shown.proof.told
        if not shown.proof.signed_by(str(shown.certificate.told["key"])):
            raise BadProof("the proof is not signed by the certificate's key")
        if told["certificate"] != shown.certificate.id or told["site"] != self.site:
            raise BadProof("the proof is for another certificate or another site")
        if abs(told["at_s"] - at_s) > PROOF_S:
            raise BadProof(f"the proof is {abs(told['at_s'] - at_s)} s away from this computer's time")
        with self._transaction() as db:
            db.execute("DELETE FROM proofs WHERE at_s < ?", (at_s - 2 * PROOF_S,))
            if db.execute("SELECT 1 FROM proofs WHERE nonce = ?", (told["nonce"],)).fetchone():
                raise BadProof("this proof was used before: somebody replays it")
            db.execute("INSERT INTO proofs VALUES (?, ?)", (told["nonce"], told["at_s"]))
            newest_s = str(self._no_earlier(at_s))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('newest_s', ?)", (newest_s,))

    # -- SQL ------------------------------------------------------------------------------------

    def _house(self) -> str:
        if not self.key:
            raise NoHouse("this computer trusts no house")
        return self.key

    def _meta(self) -> dict[str, str]:
        return dict(self._all("SELECT name, value FROM meta"))

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise HouseError(f"{self.path}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise HouseError(f"{self.path}: {error}") from error
            finally:
                if self._db.in_transaction:
                    self._db.rollback()
