"""The users of a site's servers in one folder: who has which key, and the file that servers include.

``users.json`` names every user with its public key. ``users.conf`` is made from it. ``seeds/NAME.seed`` is a
new user's secret: it goes to that user's computer and is deleted here.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sabot_driver.private_files import make_folder, open_new
from sabot_floor.errors import FloorError
from sabot_floor.names import SiteNames, check_table
from sabot_floor.permissions import (
    Permissions,
    archive_permissions,
    release_permissions,
    table_permissions,
    wall_permissions,
)
from sabot_floor.server_files import USERS_FILE, new_nkey, users_text

SERVICES: Mapping[str, Callable[[SiteNames], Permissions]] = {
    "archive": archive_permissions,
    "wall": wall_permissions,
    "admin": release_permissions,
}
"""Users that are no tables."""


class UsersDamaged(FloorError):
    """The file of a site's users cannot be read."""

    advice = "Put back its last copy. Servers keep the users they know until they read another file."


class UserKnown(FloorError):
    """The user has a key already."""

    advice = "Revoke it first: 'sabot floor keys FOLDER --site SITE --revoke NAME'."


class UserUnknown(FloorError):
    """There is no such user."""

    advice = "'users.json' in the folder names the users."


@dataclass(frozen=True, slots=True)
class SiteUsers:
    """The users of one site."""

    folder: Path
    site: str

    def names(self) -> dict[str, str]:
        """Each user's public key."""
        path = self.folder / "users.json"
        if not path.exists():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {str(name): str(key) for name, key in found["users"].items()}
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise UsersDamaged(f"{path}: {error!r}") from error

    def change(self, add: Iterable[str] = (), revoke: Iterable[str] = ()) -> list[Path]:
        """Add and revoke users, all or none; the seeds of the new ones. Servers must read the file then."""
        users, seeds = self.names(), {}
        for name in revoke:
            if name not in users:
                raise UserUnknown(f"user '{name}'")
            del users[name]
        for name in add:
            if name in users:
                raise UserKnown(f"user '{name}'")
            if name not in SERVICES:
                check_table(name)
            seeds[name], users[name] = new_nkey()
        make_folder(self.folder / "seeds")
        written = []
        for name, seed in seeds.items():
            path = self.folder / "seeds" / f"{name}.seed"
            path.unlink(missing_ok=True)
            with open_new(path) as file:
                file.write(seed.encode())
            written.append(path)
        self._write(users)
        return written

    def _write(self, users: Mapping[str, str]) -> None:
        names = SiteNames(self.site)
        known = {name: (public, _permissions(names, name)) for name, public in users.items()}
        whole = json.dumps({"site": self.site, "users": dict(sorted(users.items()))}, indent=1)
        for name, text in (("users.json", whole), (USERS_FILE, users_text(known))):
            part = self.folder / f"{name}.part"
            part.write_text(text, encoding="utf-8")
            part.replace(self.folder / name)


def _permissions(names: SiteNames, user: str) -> Permissions:
    return SERVICES[user](names) if user in SERVICES else table_permissions(names, user)
