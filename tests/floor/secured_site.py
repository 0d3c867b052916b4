"""A site whose servers know users and use TLS, as in production."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sabot_floor.connection import Servers, inbox_of
from sabot_floor.server_files import ServerTls
from sabot_floor.site_users import SiteUsers
from sabot_simulators.floor.servers import Site

SITE = "harbour"
USERS = ("archive", "wall", "admin", "t01", "t02")


class SecuredSite:
    """One server with TLS and NKeys."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.users = SiteUsers(folder / "users", SITE)
        self.users.change(add=USERS)
        self._folder = folder
        self.ca, tls = _certificates(folder)
        self.site = Site(folder / "nats", users=folder / "users" / "users.conf", tls=tls, sync="1m")

    def servers(self, user: str, inbox: str | None = None) -> Servers:
        """How a user reaches the server."""
        seed = self._folder / "users" / "seeds" / f"{user}.seed"
        return Servers(self.site.urls, seed, self.ca, inbox or inbox_of(user))


def _certificates(folder: Path) -> tuple[Path, ServerTls]:
    """An authority of this test, and a server's certificate of it."""
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in ("test ca", "127.0.0.1")]
    found = []
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=number == 0, path_length=None), critical=True)
        )
        if number:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        found.append(made.sign(keys[0], hashes.SHA256()).public_bytes(Encoding.PEM))
    paths = [folder / name for name in ("ca.pem", "server.pem", "server.key")]
    private = keys[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for path, content in zip(paths, (*found, private), strict=True):
        path.write_bytes(content)
    return paths[0], ServerTls(paths[1], paths[2])
