"""The files of one user of this computer: names of tables, device keys, journals."""

import hashlib
import os
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from sabot_driver.errors import SabotError
from sabot_driver.keyring import SIMULATORS, Keyring
from sabot_driver.private_files import make_folder, write_synced
from sabot_driver.serial_numbers import format_serial
from sabot_driver.transports import is_simulator

HOME_VARIABLE = "SABOT_HOME"
TABLE_RECORD = ".table.db"
LONGEST_PLAIN = 64
_PLAIN_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9.-]{{0,{LONGEST_PLAIN - 2}}}[A-Za-z0-9-])?")
"""A table's name that is its folder's name too."""


class TableUnknown(SabotError, KeyError):
    """No table of that name is set up on this computer."""

    advice = "See 'sabot table list'; set one up with 'sabot table set NAME --device URL'."

    def __str__(self) -> str:
        return str(self.args[0])


class NameTaken(SabotError, ValueError):
    """Another table of this computer has the name."""

    advice = "Choose another name; 'sabot table list' shows those that are taken."


class RecordTaken(SabotError):
    """The record that is named after a device belongs to a table which has another machine now."""

    advice = "Give the machine a table and a record of its own: 'sabot table set NAME --device URL'."


class PolicyGone(SabotError):
    """A table goes by a house policy, and the policy's text is missing or was changed."""

    advice = (
        "Set it again: 'sabot table set NAME --device URL --policy FILE'. Until then the table is not run."
    )


class SettingsDamaged(SabotError, ValueError):
    """The file with the tables' names cannot be read."""

    advice = "Correct the file; docs/driver.md shows what it looks like."


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One table: the URL of its device, and which device belongs there."""

    name: str
    url: str
    serial: str | None = None
    """The serial number of the table's device; the driver refuses any other device."""
    simulator: bool = False
    """Whether the device is emulated. A machine is refused here, and an emulated device elsewhere."""
    record: str | None = None
    """The name of the table's record, if the table had another machine before; else the serial number."""
    policy: str | None = None
    """The SHA-256 of the table's house policy, whose text `UserFiles.policy` gives."""

    @property
    def record_name(self) -> str | None:
        """The name of the table's record; None for a table without a device."""
        return self.record or self.serial


class UserFiles:
    """The paths of one user's files; all of them are in one folder if SABOT_HOME names it.

    ``tables.toml`` holds the names of tables. ``keys/SERIAL.key`` is a device's key; only its owner can read
    it. ``journals/SERIAL.db`` is a device's journal. Keys and journals of emulated devices are in
    ``keys/simulators`` and ``journals/simulators``, so that they never mix with those of a machine.
    """

    def __init__(self, home: Path | None = None) -> None:
        named = os.environ.get(HOME_VARIABLE)
        if home is None and named:
            home = Path(named)
        self.config = home or platformdirs.user_config_path("sabot", appauthor=False)
        self.state = home or platformdirs.user_state_path("sabot", appauthor=False)

    @property
    def tables_file(self) -> Path:
        """The names of tables."""
        return self.config / "tables.toml"

    @property
    def keyring(self) -> Keyring:
        """The devices' keys."""
        return Keyring(self.config / "keys", self._machines)

    def _machines(self) -> list[str]:
        """Serial numbers of tables that have a machine."""
        return [each.serial for each in self.tables().values() if each.serial and not each.simulator]

    def table_record(self, entry: TableEntry) -> Path | None:
        """The path of a table's record; None for a table without a device."""
        name = entry.record_name
        return None if name is None else self._journal_folder(entry.simulator) / f"{name}{TABLE_RECORD}"

    def record_of(self, serial: bytes, simulator: bool = False) -> Path:
        """The path of the record that a device's table has; a device without a table has its own.

        `RecordTaken` if that one belongs to a table which has another machine now.
        """
        name = format_serial(serial)
        tables = [each for each in self.tables().values() if each.simulator == simulator]
        for each in tables:
            if each.serial == name:
                found = self.table_record(each)
                assert found is not None
                return found
        for each in tables:
            if each.record_name == name:
                raise RecordTaken(f"the record of {name} belongs to the table '{each.name}' ({each.serial})")
        return self._journal_folder(simulator) / f"{name}{TABLE_RECORD}"

    def table_of(self, serial: bytes, simulator: bool = False) -> TableEntry | None:
        """The table that has a device; None if no table has it."""
        name = format_serial(serial)
        there = (each for each in self.tables().values() if each.simulator == simulator)
        return next((each for each in there if each.serial == name), None)

    def keep_policy(self, text: str) -> str:
        """Keep the text of a house policy; its SHA-256, by which a table names it."""
        name = hashlib.sha256(text.encode()).hexdigest()
        path = self._policy_path(name)
        make_folder(path.parent)
        write_synced(path, text.encode())
        return name

    def policy(self, entry: TableEntry) -> str | None:
        """The text of a table's house policy, None without one; `PolicyGone` if it is not what was set."""
        if entry.policy is None:
            return None
        path = self._policy_path(entry.policy)
        try:
            text = path.read_bytes()
        except OSError as error:
            raise PolicyGone(f"the house policy of '{entry.name}' cannot be read: {error}") from error
        if hashlib.sha256(text).hexdigest() != entry.policy:
            raise PolicyGone(f"the house policy of '{entry.name}' was changed: {path}")
        return text.decode()

    def _policy_path(self, name: str) -> Path:
        return self.config / "policies" / f"{name}.toml"

    def new_record_name(self, serial: str, simulator: bool) -> str | None:
        """What to name the record of a table with this device; None: after the device, as usual."""
        taken = {each.record_name for each in self.tables().values() if each.simulator == simulator}
        if serial not in taken:
            return None
        number = 2
        while f"{serial}-{number}" in taken:
            number += 1
        return f"{serial}-{number}"

    def table_folder(self, name: str) -> Path:
        """Where programs find what runs a table, by the table's name or by its device's URL.

        A name that cannot be a folder's name as it is gets a part of its hash: no two tables share a folder.
        """
        if not _PLAIN_NAME.fullmatch(name):
            plain = re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_.")[:LONGEST_PLAIN] or "table"
            name = f"{plain}_{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}"
        return self.state / "tables" / name

    @property
    def house(self) -> Path:
        """What this computer knows of the house whose certificates it trusts; beside the register."""
        return self.people.with_name("house.db")

    @property
    def people(self) -> Path:
        """The register of people of this computer."""
        return self.state / "people.db"

    def floor_key(self, serial: bytes) -> Path:
        """The path of the floor's key for an emulated device. For a machine, people keep their own keys."""
        return self.keyring.path(serial, simulator=True).with_suffix(".floor.key")

    def journal(self, serial: bytes, simulator: bool = False) -> Path:
        """The journal of a device."""
        return self._journal_folder(simulator) / f"{format_serial(serial)}.db"

    def _journal_folder(self, simulator: bool) -> Path:
        folder = self.state / "journals"
        return folder / SIMULATORS if simulator else folder

    def journals(self) -> list[Path]:
        """All journals of this user, without the records of tables that lie beside them."""
        there = (self.state / "journals").glob("**/*.db")
        return sorted(path for path in there if not path.name.endswith(TABLE_RECORD))

    def records(self) -> list[Path]:
        """All records of tables of this user."""
        there = (self.state / "journals").glob(f"**/*{TABLE_RECORD}")
        return sorted(there)

    def tables(self) -> dict[str, TableEntry]:
        """Every table by its name."""
        path = self.tables_file
        try:
            with path.open("rb") as file:
                read = tomllib.load(file).get("tables", {})
        except FileNotFoundError:
            return {}
        except OSError as error:
            advice = "Check the rights of this file and its folder. SABOT_HOME must name a folder."
            raise SettingsDamaged(f"{path}: {error.strerror}", advice) from error
        except tomllib.TOMLDecodeError as error:
            raise SettingsDamaged(f"{path}: {error}") from error
        found = {}
        for name, entry in read.items():
            if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
                raise SettingsDamaged(f"{path}: table '{name}' has no url")
            url = entry["url"]
            simulator = is_simulator(url) or entry.get("simulator") is True
            about = (entry.get(key) for key in ("record", "policy"))
            found[name] = TableEntry(name, url, entry.get("serial"), simulator, *about)
        return found

    def table(self, name: str) -> TableEntry:
        """One table; TableUnknown if it is not set up here."""
        found = self.tables().get(name)
        if found is None:
            raise TableUnknown(f"no table '{name}' is set up on this computer")
        return found

    def set_table(self, entry: TableEntry) -> None:
        """Add or replace one table; the other tables stay as they are."""
        self._write_tables({**self.tables(), entry.name: entry})

    def remove_table(self, name: str) -> TableEntry:
        """Forget the name of a table; keys, journal and record stay. `TableUnknown` if there is none."""
        entry = self.table(name)
        self._write_tables({key: each for key, each in self.tables().items() if key != name})
        return entry

    def rename_table(self, name: str, new: str) -> TableEntry:
        """Give a table another name; `TableUnknown` if there is none, `NameTaken` if another has the name."""
        entry = replace(self.table(name), name=new)
        tables = self.tables()
        if new in tables:
            raise NameTaken(f"there is a table '{new}'")
        tables[name] = entry
        self._write_tables({each.name: each for each in tables.values()})
        return entry

    def _write_tables(self, tables: dict[str, TableEntry]) -> None:
        lines = ["# Tables of this computer; written by 'sabot table set'.\n"]
        for each in tables.values():
            lines.append(f"\n[tables.{_quoted(each.name)}]\nurl = {_quoted(each.url)}\n")
            if each.serial is not None:
                lines.append(f"serial = {_quoted(each.serial)}\n")
            if each.simulator:
                lines.append("simulator = true\n")
            if each.record is not None:
                lines.append(f"record = {_quoted(each.record)}\n")
            if each.policy is not None:
                lines.append(f"policy = {_quoted(each.policy)}\n")
        make_folder(self.config)
        write_synced(self.tables_file, "".join(lines).encode())  # it decides which device a table trusts


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    escaped = "".join(
        f"\\u{ord(each):04x}" if ord(each) < 32 or ord(each) == 127 else each
        for each in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'
