"""``sabot provision``: give a new device its key, people's keys and its house."""

import contextlib
import os
from pathlib import Path

import click

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import (
    DeviceOptions,
    device_options,
    find_device,
    open_device,
    provision_simulator_keys,
)
from sabot_cli.help_text import example
from sabot_cli.house_device_commands import bind_device, check_site, pass_reset, read_house
from sabot_cli.output import OK
from sabot_cli.people_keys import KEY_FILE, give_key
from sabot_driver.chain_key_file import ChainKeyFile
from sabot_driver.clock import Clock
from sabot_driver.error_mapping import wrong_kind
from sabot_driver.errors import KeysLost, WrongDevice
from sabot_driver.opened_device import not_provisioned
from sabot_driver.serial_numbers import format_serial
from sabot_driver.transports import transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.user_files import TableEntry
from sabot_house.statements import Statement
from sabot_protocol.host.messages import ChainKey, IdentityFlag, Role
from sabot_protocol.wire_constants import KEY_SIZE

REPLACED = (
    "This machine had a key. Was the contact in its logic compartment held? If not, it may be an impostor."
)
NO_CHAIN_KEY = (
    "No file was named for the first key of its event chain (--chain-key FILE). The device forgets this key. "
    "Later the hashes of its events can be checked, but not that the device made them. "
    "To begin another chain, clear the keys at the contact and provision again."
)
TAKE_AWAY = "Give the file to the regulator, and leave no copy on this computer."
BIND_S = 30.0  # a device that tests itself takes no house until it is done

pass_state = click.make_pass_decorator(CliContext)


@click.command(epilog=example("sabot provision --floor-key floor.key --device sim://"))
@device_options
@click.option("--floor-key", type=KEY_FILE, help="the floor's key too; the file is made if there is none")
@click.option("--service-key", type=KEY_FILE, help="the same for service")
@click.option("--lab-key", type=KEY_FILE, help="the same for a laboratory")
@click.option("--chain-key", type=KEY_FILE, help="new file for the regulator: the event chain's first key")
@click.option("--house", type=KEY_FILE, help="bind the device to the house of this house.json; needs --site")
@click.option("--site", help="the device's site, as the house names it")
@click.option("--reset-statement", type=KEY_FILE, help="of the house that the device belongs to")
@click.option("--replace", is_flag=True, help="also if this machine had a key that is known here")
@pass_state
def provision(
    state: CliContext,
    /,
    replace: bool,
    house: Path | None,
    site: str | None,
    reset_statement: Path | None,
    floor_key: Path | None,
    service_key: Path | None,
    lab_key: Path | None,
    chain_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Give a new device its key, and keep it here.

    The key is drawn anew each time and sent in clear: use a cable you trust. A machine whose key is known
    here had its keys cleared at the contact in its logic compartment, or is an impostor: it takes --replace.

    People's keys follow in a session, hidden; whoever has such a file can do what that person may: keep it
    away from the table's computer. Slots that are not filled now are closed: later it takes service's key
    ('sabot key give').

    --chain-key FILE takes the first key of the device's event chain, which proves its events later. The
    device gives it away now and never again. The file goes to the regulator and must not stay on this PC.

    A device that belongs to a house takes a new key only with the house's statement for this one reset
    ('sabot house reset'). --house FILE --site SITE binds a device that belongs to none.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified or it had a key.
    """
    if (house is None) != (site is None):
        raise click.UsageError("give --house and --site together")
    bound = None
    if house is not None and site is not None:
        check_site(site)
        bound = (read_house(house), site)
    entry = find_device(state, options)
    people = ((Role.FLOOR, floor_key), (Role.SERVICE, service_key), (Role.LAB, lab_key))
    with contextlib.ExitStack() as files:
        file = None
        if chain_key is not None:
            folders = (state.user_files.config, state.user_files.state)
            file = files.enter_context(ChainKeyFile(chain_key, folders))
        return _provision(state, options, entry, replace, people, file, bound, reset_statement)


def _provision(
    state: CliContext,
    options: DeviceOptions,
    entry: TableEntry,
    replace: bool,
    people: tuple[tuple[Role, Path | None], ...],
    chain_file: ChainKeyFile | None,
    house: tuple[Statement, str] | None,
    reset_statement: Path | None,
) -> int:
    with UnsecuredExchange(transport_for(entry.url), entry.url, Clock(), options.timeout) as asking:
        about = asking.identify()
        simulator = entry.simulator
        if simulator != bool(about.flags & IdentityFlag.SIMULATOR):
            raise wrong_kind(entry.url, about.serial, not simulator)
        if simulator and state.user_files.keyring.is_machine(about.serial):
            raise WrongDevice(f"{format_serial(about.serial)} is the serial number of a machine known here")
        state.output.simulator = simulator
        keyring, serial = state.user_files.keyring, format_serial(about.serial)
        if about.flags & IdentityFlag.KEYS_DAMAGED:
            raise KeysLost(f"{entry.url}: the keys of {serial} are damaged")
        # Only a device without a key is sent one, and never one that any device had before: who claims this
        # serial number would learn it. A device that has a key proves in the session below that it is ours.
        if not about.flags & IdentityFlag.PROVISIONED:
            if not simulator and keyring.had_key(about.serial):
                if not replace:
                    raise not_provisioned(entry.url, about.serial, keyring)
                state.output.tell("warning", f"[yellow]{serial}: {REPLACED}[/yellow]", message=REPLACED)
            pass_reset(asking, about.serial, reset_statement)
            key = os.urandom(KEY_SIZE)
            keyring.keep_next(about.serial, key, simulator)  # one that only the device has would be lost
            asking.provision(about.serial, key)
    with open_device(state, options, owner=True, fill=False) as client:
        path = keyring.path(about.serial, simulator)
        state.output.tell(
            "provisioned", f"{serial} has its key; it is kept in {path}", serial=serial, key_file=str(path)
        )
        if chain_file is not None:
            chain_file.write(about.serial, client.ask(ChainKey(), options.timeout))
            state.output.tell(
                "chain_key", f"The event chain's first key is in {chain_file.path}. {TAKE_AWAY}",
                serial=serial, chain_key_file=str(chain_file.path),
            )  # fmt: skip
        elif not simulator and not about.flags & IdentityFlag.PROVISIONED:
            state.output.tell("warning", f"[yellow]{serial}: {NO_CHAIN_KEY}[/yellow]", message=NO_CHAIN_KEY)
        if house is not None:
            bind_device(state, client, house[0], house[1], None, max(options.timeout, BIND_S))
        for role, file in people:
            if file is not None:
                give_key(state, client, role, file, options.timeout)
        if simulator and not any(file for _, file in people):
            provision_simulator_keys(state.user_files, client, options.timeout)
    return OK
