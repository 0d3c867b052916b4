"""Keys of people: who authorises a request, and giving a person a key on the device."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from sabot_cli.cli_context import CliContext
from sabot_driver import Client, Credential
from sabot_driver.certified import Authority
from sabot_driver.credentials import free_slot
from sabot_driver.errors import KeyIsSet, KeyMissing, WrongRole
from sabot_driver.keyring import read_key, read_person, write_key
from sabot_driver.user_files import UserFiles
from sabot_house.on_device import certified_file, fits_a_device, hand_over
from sabot_house.statements import CERTIFICATE, Statement, kind_of
from sabot_house.trust import HouseTrust
from sabot_protocol.host.messages import Role
from sabot_protocol.wire_constants import KEY_SIZE

KEY_FILE = click.Path(dir_okay=False, path_type=Path)


def simulators_key(state: CliContext, client: Client) -> bytes:
    """The key that people have on an emulated device, which was given to it when it was provisioned."""
    path = state.user_files.floor_key(client.identity.serial)
    if not path.exists():
        raise KeyMissing(
            "this computer has no keys of people for this emulated device",
            "Give the key files: --floor-key FILE, --lab-key FILE. Or start the emulated device anew.",
        )
    return read_key(path)


def person_credential(state: CliContext, client: Client, role: Role, file: Path | None) -> Authority:
    """Who authorises a request: the person of a key file or a certificate.

    On an emulated device it may be a key of this computer. A certificate's device is given the newest list of
    revocations first, if this computer trusts the house.
    """
    if file is not None and kind_of(file) == CERTIFICATE:
        by = certified_file(file, role)
        newest = newest_list(state.user_files)
        if newest is not None and fits_a_device(newest):  # else the device keeps its older list
            hand_over(client, newest)
        return by
    return key_credential(state, client, role, file)


def key_credential(state: CliContext, client: Client, role: Role, file: Path | None) -> Credential:
    """The person of a key file, or on an emulated device a key of this computer."""
    if file is not None:
        return Credential.read(role, file)
    if client.simulator:
        path = state.user_files.floor_key(client.identity.serial)
        return Credential(role, simulators_key(state, client), source=str(path))
    name = role.name.lower()
    raise KeyMissing(f"this needs the key of {name}", f"Give the key file: --{name}-key FILE.")


def table_credentials(
    state: CliContext, client: Client, floor_key: Path | None
) -> Callable[[Role], Credential]:
    """The credential of each role at a table. The floor's key is checked at once, not in a round."""

    def credential(role: Role) -> Credential:
        return key_credential(state, client, role, floor_key)

    credential(Role.FLOOR).slot_among(client.key_slots())
    return credential


def newest_list(user_files: UserFiles) -> Statement | None:
    """The newest list of revocations that this computer has; None if it trusts no house."""
    if not user_files.house.exists():
        return None
    with HouseTrust(user_files.house) as trust:
        return trust.newest_list


def give_key(
    state: CliContext, client: Client, role: Role, file: Path, timeout: float, by: Authority | None = None
) -> None:
    """Give a person's key to the device: the one in a file, or a new one that is written there first."""
    name, new = role.name.lower(), not file.exists()
    slot = free_slot(client.key_slots(timeout).slots)
    if new:
        write_key(file, os.urandom(KEY_SIZE), person=slot)
    try:
        client.set_key(role, read_key(file), read_person(file) or slot, slot, by, timeout)
    except WrongRole as error:
        if new:
            file.unlink()
        raise KeyIsSet(f"the key slots of this device are closed: no key for {name} was set") from error
    state.output.tell(
        "key_given", f"the key of {name} is {file}, in slot {slot}", role=name, slot=slot, key_file=str(file)
    )
