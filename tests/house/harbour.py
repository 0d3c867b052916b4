"""A house with an office and one table PC."""

from pathlib import Path
from types import TracebackType
from typing import Self

from sabot_evidence.signing_key import SigningKey, draw_signing_key, read_signing_key
from sabot_house import office, proof, statements
from sabot_house.office import Office
from sabot_house.proof import ShownCertificate
from sabot_house.statements import Statement
from sabot_house.trust import HouseTrust
from sabot_session.people import PeopleRegister
from sabot_table.procedure import TableRole

NOW = 1_800_000_000
YEAR_S = 31_536_000
PIN = "739518"


class Harbour:
    """The office, the register of one table PC, and what that PC knows of the house."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.office: Office = office.begin(folder / "office", "Harbour", draw_signing_key)
        self.people = PeopleRegister(folder / "people.db")
        self.people.enrol("dana", "Dana", [TableRole.FLOOR, TableRole.DEALER], PIN, "", NOW)
        assert self.people.house is not None
        self.trust = HouseTrust(self.people.house)
        self.trust.trust(self.office.about, "MAIN")
        self.trust.add_revocations(self.office.revocations())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.trust.close()
        self.people.close()

    def key(self, person: str = "dana") -> SigningKey:
        """A person's key."""
        path = self.folder / f"{person}.pem"
        return read_signing_key(path) if path.exists() else draw_signing_key(path)

    def certificate(
        self, roles: tuple[str, ...] = ("floor",), site: str = "MAIN", until_s: int = NOW + YEAR_S
    ) -> Statement:
        """Dana's certificate."""
        out = self.folder / "dana.cert"
        return self.office.sign("dana", roles, site, until_s, self.key().public, out)

    def shown(self, certificate: Statement | None = None, at_s: int = NOW) -> ShownCertificate:
        """Dana shows a certificate."""
        return proof.prove(certificate or self.certificate(), self.key(), at_s)


def changed(made: Statement, **values: object) -> Statement:
    """The statement with other values and the old signature, as a forger has it."""
    told = {**made.told, **values}
    return Statement(made.kind, statements._canonical(told), made.signature, told)
