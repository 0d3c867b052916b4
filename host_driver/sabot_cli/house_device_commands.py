"""``sabot house bind|show|reset``: the house that a device belongs to, and letting it be provisioned anew."""

from pathlib import Path

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, device_options, find_device, open_device
from sabot_cli.help_text import example
from sabot_cli.output import OK
from sabot_cli.people_keys import KEY_FILE, person_credential
from sabot_cli.signing_keys import opened, passphrase_option
from sabot_cli.written_files import check_writable
from sabot_driver import Client
from sabot_driver.certified import Authority
from sabot_driver.clock import Clock
from sabot_driver.errors import Refused, ResetRefused, ResetRequired
from sabot_driver.serial_numbers import format_serial, parse_serial
from sabot_driver.transports import transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_house import office, statements
from sabot_house.errors import BadStatement, OtherHouse
from sabot_house.office import Office
from sabot_house.statements import Statement, kind_of
from sabot_protocol.host.messages import BadProofDetail, HouseKey, ResetIs, Role
from sabot_protocol.house_lines import is_site

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
MOST_COUNT = 0xFFFFFFFF
MOST_SITE = 24
CHECK_S = 30.0  # shortest time-out of a rotation's check by the device

pass_state = click.make_pass_decorator(CliContext)


def read_house(path: Path) -> Statement:
    """The house of a file; `BadStatement` if its own key did not sign it."""
    about = statements.read_file(path, statements.HOUSE)
    if not about.signed_by(about.told["key"]):
        raise BadStatement(f"{path}: the house's signature does not fit")
    return about


def check_site(site: str) -> None:
    """Refuse a site's name that a device cannot hold."""
    if not is_site(site) or len(site) > MOST_SITE:
        raise click.UsageError(
            f"'{site}' is no site for a device: up to {MOST_SITE} printable ASCII characters, no quotes"
        )


def bind_device(
    state: CliContext, client: Client, about: Statement, site: str, by: Authority | None, timeout: float
) -> None:
    """Hand a house's public key to a device that belongs to none."""
    try:
        client.ask(HouseKey(bytes.fromhex(about.told["key"]), site, 0, 0, b""), timeout, by)
    except Refused as refused:
        if refused.code != BadProofDetail.CODE:
            raise
        raise OtherHouse(
            "the device belongs to another house, or to an older key of this one",
            "Give each rotation since then: --rotation FILE. Another house's key cannot be replaced.",
        ) from refused
    serial = format_serial(client.identity.serial)
    words = f"{serial} at {site} belongs to {about.told['name']}, key {about.told['key']}"
    state.output.tell("bound", escape(words), serial=serial, site=site, public=about.told["key"])


@click.command("bind", epilog=example("sabot house bind office/house.json --site MAIN --device sim://"))
@device_options
@click.argument("file", type=FILE)
@click.option("--site", required=True, help="the device's site")
@click.option("--service-key", type=KEY_FILE, help="service's key file")
@click.option("--rotation", "rotations", type=FILE, multiple=True, help="to a new key of the house")
@pass_state
def bind(
    state: CliContext,
    /,
    file: Path,
    site: str,
    service_key: Path | None,
    rotations: tuple[Path, ...],
    options: DeviceOptions,
) -> int:
    """Bind a device to a house. Service authorises it.

    From then on the contact in the logic compartment is not enough to give the device a new key: it takes the
    house's reset statement too ('sabot house reset'). If the device knows an old key of the house, give each
    rotation since then, oldest first. Only the old key can name another one.

    Exit codes: 0 done, 1 refused, 2 usage, 3 no device, 4 several devices, 5 not verified, 6 in use.
    """
    about = read_house(file)
    check_site(site)
    steps = [statements.read_file(path, statements.ROTATION) for path in rotations]
    if steps and steps[-1].told["to"] != about.told["key"]:
        raise OtherHouse(f"{rotations[-1]}: this rotation does not end at the key of {file}")
    if steps and service_key is not None and kind_of(service_key) == statements.CERTIFICATE:
        raise click.UsageError(
            "--rotation takes service's key file: after it the device refuses certificates of the old key"
        )
    with open_device(state, options, owner=True) as client:
        by = person_credential(state, client, Role.SERVICE, service_key)
        for step in steps:
            number, until_s = step.told["number"], step.told["old_until_s"]
            message = HouseKey(bytes.fromhex(step.told["to"]), site, number, until_s, step.signature)
            client.ask(message, max(options.timeout, CHECK_S), by)
        bind_device(state, client, about, site, by, options.timeout)
    return OK


@click.command("show", epilog=example("sabot house show --device sim://"))
@device_options
@pass_state
def show(state: CliContext, /, options: DeviceOptions) -> int:
    """Which house a device belongs to, and its reset count. The device says so without proof.

    Exit codes: 0 done, 2 usage, 3 no device, 4 several devices.
    """
    entry = find_device(state, options)
    with UnsecuredExchange(transport_for(entry.url), entry.url, Clock(), options.timeout) as asking:
        about, belongs = asking.identify(), asking.reset_state()
    serial = format_serial(about.serial)
    state.output.tell(
        "house", escape(house_words(serial, belongs)), serial=serial, bound=bool(belongs.bound),
        public=belongs.house.hex() if any(belongs.house) else None, reset_count=belongs.count,
    )  # fmt: skip
    return OK


def house_words(serial: str, belongs: ResetIs) -> str:
    """Whose a device is, in a sentence."""
    if not belongs.bound:
        return f"{serial} belongs to no house: presence at its contact is enough to provision it anew"
    if not any(belongs.house):
        return f"{serial} belongs to a house, and its record is damaged: see docs/credentials.md"
    return f"{serial} belongs to the house with key {belongs.house.hex()}; its reset count is {belongs.count}"


@click.command("reset", epilog=example("sabot house reset office SB000123 0 --out reset.json"))
@json_option
@passphrase_option
@click.argument("folder", type=FOLDER)
@click.argument("serial")
@click.argument("count", type=click.IntRange(0, MOST_COUNT))
@click.option("--old-key", type=FILE, help="a key that was rotated away, such as office/house-1.pem")
@click.option("--out", type=FILE, required=True, help="the statement, such as reset.json")
@click.pass_obj
def reset(
    state: CliContext,
    folder: Path,
    serial: str,
    count: int,
    old_key: Path | None,
    out: Path,
    passphrase_stdin: bool,
) -> int:
    """Sign that one device may be provisioned anew, once.

    'sabot house show' at the device tells serial number and count. Sign only for a device that is yours and
    that your people have in hands: whoever holds the statement and the device's contact owns the device.

    Exit codes: 0 done, 1 refused, 2 usage.
    """
    number = parse_serial(serial)
    check_writable(out)
    here = Office(folder, opened(old_key or folder / office.KEY, passphrase_stdin), old=old_key is not None)
    made = here.reset(number, count, out)
    words = f"{out}: {format_serial(number)} may be given a new key, reset count {count}; for one time only"
    state.output.tell(
        "reset", escape(words), serial=format_serial(number), count=count, public=made.told["house"],
        file=str(out),
    )  # fmt: skip
    return OK


def pass_reset(asking: UnsecuredExchange, serial: bytes, file: Path | None) -> None:
    """Show the device the reset statement of a file, if it belongs to a house.

    `ResetRequired` without a file; `ResetRefused` if the statement is for something else.
    """
    belongs = asking.reset_state()
    if not belongs.bound:
        return
    name = format_serial(serial)
    if file is None:
        signs = f"sabot house reset OFFICE {name} {belongs.count} --out reset.json"
        advice = f"The house's office signs: {signs}. Then add --reset-statement reset.json."
        raise ResetRequired(house_words(name, belongs), advice)
    if not any(belongs.house):
        raise ResetRequired(house_words(name, belongs), "Only the maker can help: docs/credentials.md.")
    made = statements.read_file(file, statements.RESET)
    if made.told["serial"] != serial.hex():
        other = format_serial(bytes.fromhex(made.told["serial"]))
        raise ResetRefused(f"{file}: the statement is for {other}, and this device is {name}")
    if made.told["count"] != belongs.count:
        count = made.told["count"]
        raise ResetRefused(
            f"{file}: the statement is for reset count {count}, and this device's is {belongs.count}"
        )
    if made.told["house"] != belongs.house.hex():
        raise ResetRefused(
            f"{file}: the statement is of the key {made.told['house'][:16]}, and this device belongs to "
            f"{belongs.house.hex()[:16]}"
        )
    asking.show_reset(made.signature)
