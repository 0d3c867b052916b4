"""The configuration of a site's NATS servers, and the users that they know, as text.

A table's credential is an NKey: an Ed25519 seed that never leaves the table PC. Servers know public keys.
All users are in one file that each server includes, so that one file says who may connect.
"""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sabot_floor.permissions import Permissions

USERS_FILE = "users.conf"
_SEED, _USER = 18 << 3, 20 << 3  # the prefixes of NKeys: "S", "U"


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The files of a server's TLS."""

    certificate: Path
    private_key: Path


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a site."""

    name: str
    """Of all servers that are connected, also by leaf nodes, none has the same name."""
    port: int
    store: Path
    http_port: int | None = None
    """The monitoring port; it listens on this computer only."""
    cluster_port: int | None = None
    routes: Sequence[int] = ()
    host: str = "127.0.0.1"
    tls: ServerTls | None = None
    users: str | None = None
    """The file with the users, as seen from the configuration's folder; None lets everybody do everything,
    which is for tests on one computer."""
    sync: str = "always"
    domain: str | None = None
    """The JetStream domain: a name for each casino of an operator, and one for headquarters."""
    leaf_port: int | None = None
    """Where servers of casinos connect to headquarters."""
    headquarters: Sequence[str] = ()
    """The addresses of headquarters' leaf ports, at a server of a casino; it must have a domain then."""


def server_text(server: Server) -> str:
    """A server's configuration. ``sync_interval: always``: an acknowledged message is on its disk."""
    lines = [
        f"server_name: {json.dumps(server.name)}",
        f"listen: {json.dumps(f'{server.host}:{server.port}')}",
        "max_payload: 1MB",
        "jetstream {",
        f"  store_dir: {json.dumps(str(server.store))}",
        f"  sync_interval: {server.sync}",
        *([f"  domain: {server.domain}"] if server.domain else []),
        "}",
    ]
    if server.http_port is not None:
        lines.append(f'http: "127.0.0.1:{server.http_port}"')
    if server.tls is not None:
        cert, key = json.dumps(str(server.tls.certificate)), json.dumps(str(server.tls.private_key))
        lines += ["tls {", f"  cert_file: {cert}", f"  key_file: {key}", "}"]
    if server.cluster_port is not None:
        routes = ", ".join(f'"nats://127.0.0.1:{each}"' for each in server.routes)
        listen = f'  listen: "127.0.0.1:{server.cluster_port}"'
        lines += ["cluster {", f"  name: {server.domain or 'site'}", listen, f"  routes: [{routes}]", "}"]
    lines += _leaf_lines(server)
    if server.users is not None:
        lines.append(f"include {json.dumps(server.users)}")
    return "\n".join(lines) + "\n"


_CHANGES = ("CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "RESTORE", "SNAPSHOT")
"""What headquarters may not do to a casino's streams."""


def _leaf_lines(server: Server) -> list[str]:
    """How casinos and headquarters are connected: rows pass by *sourcing* the stream, and nothing else."""
    if server.leaf_port is not None:
        return ["leafnodes {", f"  listen: {json.dumps(f'{server.host}:{server.leaf_port}')}", "}"]
    if not server.headquarters:
        return []
    if not server.domain:
        raise ValueError(f"server {server.name} is connected to headquarters and has no JetStream domain")
    api = f"$JS.{server.domain}.API"
    closed = ["sabot.>", "$KV.>"]
    refused = [*closed, *(f"{api}.STREAM.{each}.>" for each in _CHANGES), f"{api}.CONSUMER.DURABLE.>"]
    return [
        "leafnodes {",
        "  remotes: [{",
        f"    urls: {json.dumps(list(server.headquarters))}",
        f"    deny_exports: {json.dumps(closed)}",
        f"    deny_imports: {json.dumps(refused)}",
        "  }]",
        "}",
    ]


def users_text(users: Mapping[str, tuple[str, Permissions]]) -> str:
    """The file of users: for each name, its public key and what it may do."""
    lines = ["authorization {", "  users: ["]
    for name, (public, allowed) in sorted(users.items()):
        publish, subscribe = json.dumps(list(allowed.publish)), json.dumps(list(allowed.subscribe))
        lines += [
            f"    # {name}",
            f"    {{nkey: {public}, permissions: {{",
            f"      publish: {{allow: {publish}}}",
            f"      subscribe: {{allow: {subscribe}}}",
            "    }}",
        ]
    return "\n".join([*lines, "  ]", "}"]) + "\n"


def new_nkey(random: bytes | None = None) -> tuple[str, str]:
    """A new user's seed and public key, as NATS writes them."""
    secret = secrets.token_bytes(32) if random is None else random
    public = Ed25519PrivateKey.from_private_bytes(secret).public_key()
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    seed = bytes([_SEED | (_USER >> 5), (_USER & 31) << 3]) + secret
    return _encoded(seed), _encoded(bytes([_USER]) + raw)


def _encoded(raw: bytes) -> str:
    """NKeys' own form: base 32 with a CRC-16 (XMODEM, little-endian) behind."""
    crc = 0
    for each in raw:
        crc ^= each << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")
