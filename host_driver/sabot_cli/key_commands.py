"""``sabot key``: whose keys a device has, and changing them; ``sabot evict``: taking a device from a host."""

import os
from pathlib import Path

import click

from sabot_cli.cli_context import CliContext, verbose_option
from sabot_cli.device_access import DeviceOptions, device_options, open_device
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK
from sabot_cli.people_keys import KEY_FILE, give_key, person_credential
from sabot_driver.errors import OwnerHeld
from sabot_driver.keyring import write_key
from sabot_protocol.host.messages import EvictOwner, KeySlot, Role
from sabot_protocol.wire_constants import KEY_SIZE

PEOPLE = {"dealer": Role.DEALER, "floor": Role.FLOOR, "service": Role.SERVICE, "lab": Role.LAB}
NAMES = {role.value: name for name, role in PEOPLE.items()}
NAMES |= {Role.TABLE.value: "device", Role.OBSERVER.value: "observers"}

service_option = click.option("--service-key", type=KEY_FILE, help="service's key file")
pass_state = click.make_pass_decorator(CliContext)


@click.group(cls=Group)
@verbose_option
def key() -> None:
    """Whose keys a device has, and changing them."""


@key.command("list", epilog=example("sabot key list --device sim://"))
@device_options
@pass_state
def key_list(state: CliContext, /, options: DeviceOptions) -> int:
    """The key slots that are set.

    Exit codes: 0 done, 2 usage, 3 no device, 4 several devices, 5 not verified.
    """
    with open_device(state, options, owner=False) as client:
        held = client.key_slots(options.timeout)
    for slot, role, person in zip(held.slots, held.roles, held.persons, strict=True):
        name = NAMES.get(role, str(role))
        who = f"  person {person}" if person else ""
        state.output.tell("key", f"slot {slot}  {name}{who}", slot=slot, role=name, person=person)
    return OK


@key.command("give", epilog=example("sabot key give floor anna.key --device sim://"))
@device_options
@service_option
@click.argument("role", type=click.Choice(list(PEOPLE)))
@click.argument("file", type=KEY_FILE)
@pass_state
def key_give(
    state: CliContext, /, role: str, file: Path, service_key: Path | None, options: DeviceOptions
) -> int:
    """Give a person a key slot. The file holds the person's key and number; it is made if there is none.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with open_device(state, options, owner=True) as client:
        service = person_credential(state, client, Role.SERVICE, service_key)
        give_key(state, client, PEOPLE[role], file, options.timeout, service)
    return OK


@key.command("remove", epilog=example("sabot key remove 4 --device sim://"))
@device_options
@service_option
@click.argument("slot", type=click.IntRange(1, 13))
@pass_state
def key_remove(state: CliContext, /, slot: int, service_key: Path | None, options: DeviceOptions) -> int:
    """Empty a key slot; see 'sabot key list'.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with open_device(state, options, owner=True) as client:
        client.remove_key(slot, person_credential(state, client, Role.SERVICE, service_key), options.timeout)
    state.output.tell("key_removed", f"slot {slot} is empty", slot=slot)
    return OK


@key.command("observers", epilog=example("sabot key observers watchers.key --device sim://"))
@device_options
@service_option
@click.argument("file", type=KEY_FILE)
@pass_state
def key_observers(state: CliContext, /, file: Path, service_key: Path | None, options: DeviceOptions) -> int:
    """Give the device a new key for those who only look on, and write it to a file.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    new = os.urandom(KEY_SIZE)
    with open_device(state, options, owner=True) as client:
        service = person_credential(state, client, Role.SERVICE, service_key)
        write_key(file, new)
        client.set_observers_key(new, service, options.timeout)
    state.output.tell("key_given", f"the observers' key is {file}", slot=KeySlot.OBSERVER, key_file=str(file))
    return OK


@key.command("device", epilog=example("sabot key device --device sim://"))
@device_options
@service_option
@pass_state
def key_device(state: CliContext, /, service_key: Path | None, options: DeviceOptions) -> int:
    """Give the device a new key of its own, and keep it here; all other hosts' sessions end.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    with open_device(state, options, owner=True) as client:
        service = person_credential(state, client, Role.SERVICE, service_key)
        client.set_device_key(os.urandom(KEY_SIZE), service, options.timeout)
        path = state.user_files.keyring.path(client.identity.serial, client.simulator)
    state.output.tell("key_given", f"the device's new key is {path}", slot=KeySlot.DEVICE, key_file=str(path))
    return OK


@click.command(epilog=example("sabot evict --device sim://"))
@device_options
@click.option("--floor-key", type=KEY_FILE, help="the floor's key file")
@pass_state
def evict(state: CliContext, /, floor_key: Path | None, options: DeviceOptions) -> int:
    """Take the device from the host that owns it, between rounds; takes the floor.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    holder = b""
    try:
        with open_device(state, options, owner=True):
            pass
    except OwnerHeld as held:
        holder = bytes.fromhex(held.holder)
    if holder:
        with open_device(state, options, owner=False) as client:
            floor = person_credential(state, client, Role.FLOOR, floor_key)
            client.ask(EvictOwner(holder), options.timeout, floor)
    words = f"host {holder.hex()} no longer owns the device" if holder else "no other host owned the device"
    state.output.tell("evicted", words, owner=holder.hex())
    return OK
