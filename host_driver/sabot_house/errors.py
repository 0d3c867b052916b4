"""What can be wrong with a house's statements, certificates and proofs."""

from sabot_driver.errors import SabotError


class HouseError(SabotError):
    """A statement of a house that is not accepted; nothing was changed."""


class NoHouse(HouseError):
    """This computer trusts no house."""

    advice = "Have the floor or service name the house once: sabot house trust house.json --site SITE."


class OfficeUnusable(HouseError):
    """The house's folder cannot be used."""

    advice = "Name the folder of 'sabot house init', and keep a copy of it in a safe place."


class BadStatement(HouseError):
    """A file that is no statement of a house, or one whose signature does not fit: forged or damaged."""

    advice = "Get the file again from the house. Do not use one that somebody else sent."


class OtherHouse(HouseError):
    """A statement that is signed by a key that this computer does not trust."""

    advice = "If the house has a new key, give its rotation first: sabot house update rotation.json."


class OldStatement(HouseError):
    """A list of revocations or a rotation that is older than what this computer has, or contradicts it."""

    advice = "Get the newest file from the house."


class CertificateExpired(HouseError):
    """The certificate's time is over."""

    advice = "The house signs a new certificate: sabot house sign."


class CertificateRevoked(HouseError):
    """The house has revoked the certificate."""

    advice = "The person must not act. The house may sign a new certificate."


class WrongSite(HouseError):
    """The certificate is for another site."""

    advice = "The house signs a certificate for this site: sabot house sign --site SITE."


class WrongRole(HouseError):
    """The certificate does not allow this role."""

    advice = "The house signs a certificate with the role: sabot house sign --role ROLE."


class BadProof(HouseError):
    """A proof of holding the certificate's key that is not good: forged, old or replayed."""

    advice = "Show certificate and key file again; check the computer's clock."
