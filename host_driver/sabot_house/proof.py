"""A person shows a certificate and proves to hold its key, for one act."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from sabot_evidence.errors import SigningKeyUnusable
from sabot_evidence.signing_key import SigningKey, read_signing_key
from sabot_house import statements
from sabot_house.errors import BadProof
from sabot_house.statements import Statement


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """A certificate and the proof that its holder is here."""

    certificate: Statement = field(repr=False)
    proof: Statement = field(repr=False)

    @property
    def person(self) -> str:
        """Whom the certificate names; not checked yet."""
        return str(self.certificate.told["person"])


def prove(certificate: Statement, key: SigningKey, at_s: int) -> ShownCertificate:
    """Sign a proof for one act at this moment. It is good for the certificate's site and once."""
    proof = statements.sign(
        statements.PROOF,
        key,
        at_s=at_s,
        certificate=certificate.id,
        nonce=secrets.token_hex(16),
        site=certificate.told["site"],
    )
    return ShownCertificate(certificate, proof)


def show_file(path: Path, at_s: int) -> ShownCertificate:
    """Show the certificate of a file with the key beside it: ``dana.cert`` and ``dana.pem``.

    `BadStatement` or `BadProof` says what is wrong.
    """
    certificate = statements.read_file(path, statements.CERTIFICATE)
    try:
        key = read_signing_key(path.with_suffix(".pem"))
    except SigningKeyUnusable as error:
        raise BadProof(str(error), f"Keep the key file beside {path.name}. {error.advice}") from error
    return prove(certificate, key, at_s)
