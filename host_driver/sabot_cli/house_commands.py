"""``sabot house``: the house's key, certificates of people, revocations, and whom a computer trusts.

What concerns a device is in ``house_device_commands``.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option, verbose_option
from sabot_cli.help_text import Group, example
from sabot_cli.house_device_commands import bind, reset, show
from sabot_cli.output import OK
from sabot_cli.people_commands import authorise, by_options
from sabot_cli.signing_keys import draw, opened, passphrase_option
from sabot_cli.written_files import check_writable
from sabot_house import office, statements
from sabot_house.errors import BadStatement
from sabot_house.office import Office
from sabot_house.trust import HouseTrust
from sabot_session.people import PeopleRegister

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
DAY_S = 86_400


@click.group(cls=Group)
@verbose_option
def house() -> None:
    """Certificates of people, signed by the house.

    The house key stays on a computer of the house's office that is connected to no table. Table PCs learn the
    public key once ('sabot house trust') and take over revocations and new keys that the house signed
    ('sabot house update'). A device that is bound to a house ('sabot house bind') is provisioned anew
    only with the house's statement, and checks certificates itself (docs/credentials.md).
    """


for command in (bind, show, reset):
    house.add_command(command)


def _day(text: str) -> int:
    """The last second of a day in UTC."""
    try:
        begins = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise click.UsageError(f"'{text}' is no day: write it as 2027-06-30") from error
    return int(begins.timestamp()) + DAY_S - 1


def _until(not_after_s: int) -> str:
    try:
        return datetime.fromtimestamp(not_after_s, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return f"{not_after_s} s"


@house.command("init", epilog=example("sabot house init office --name Harbour"))
@json_option
@passphrase_option
@click.argument("folder", type=FOLDER)
@click.option("--name", required=True, help="the house's name")
@click.pass_obj
def init(state: CliContext, folder: Path, name: str, passphrase_stdin: bool) -> int:
    """Draw the house's key in a new folder, and write house.json for the table PCs.

    Exit codes: 0 done, 1 the folder has a key or cannot be written, 2 usage.
    """
    made = office.begin(folder, name, lambda path: draw(path, passphrase_stdin))
    words = f"{folder}: the key of {name} is {made.key.public}; give {folder / office.ABOUT} to the tables"
    state.output.tell("house", escape(words), name=name, public=made.key.public, folder=str(folder))
    return OK


@house.command(
    "sign",
    epilog=example(
        "sabot house sign office dana --role floor --site MAIN --not-after 2099-12-31 "
        "--new-key --out dana.cert"
    ),
)
@json_option
@passphrase_option
@click.argument("folder", type=FOLDER)
@click.argument("person")
@click.option("--role", "roles", type=click.Choice(office.ROLES), multiple=True, required=True)
@click.option("--site", required=True, help="the site at which the certificate is good")
@click.option("--not-after", required=True, metavar="DAY", help="the last day, such as 2027-06-30")
@click.option("--public", metavar="HEX", help="the person's public key, of 'sabot evidence new-key'")
@click.option("--new-key", is_flag=True, help="draw the person's key beside --out, for the person's medium")
@click.option("--out", type=FILE, required=True, help="the certificate, such as dana.cert")
@click.pass_obj
def sign(
    state: CliContext,
    folder: Path,
    person: str,
    roles: tuple[str, ...],
    site: str,
    not_after: str,
    public: str | None,
    new_key: bool,
    out: Path,
    passphrase_stdin: bool,
) -> int:
    """Sign a person's certificate: id, roles, site, last day, public key.

    The certificate and the key file beside it (dana.cert, dana.pem) belong on the person's own medium.

    Exit codes: 0 done, 1 refused, 2 usage.
    """
    if (public is None) != new_key:
        raise click.UsageError("give the person's --public HEX, or --new-key")
    not_after_s = _day(not_after)
    check_writable(out)
    here = Office(folder, opened(folder / office.KEY, passphrase_stdin))
    if public is None:
        public = draw(out.with_suffix(".pem"), passphrase_stdin=False, ask=False).public
    made = here.sign(person, roles, site, not_after_s, public.lower(), out)
    words = f"{out}: {person}, {', '.join(roles)}, at {site} until {not_after}; certificate {made.id}"
    state.output.tell(
        "certificate", escape(words), id=made.id, person=person, roles=sorted(roles), site=site,
        not_after_s=not_after_s, file=str(out),
    )  # fmt: skip
    return OK


@house.command("revoke", epilog=example("sabot house revoke office dana"))
@json_option
@passphrase_option
@click.argument("folder", type=FOLDER)
@click.argument("who")
@click.pass_obj
def revoke(state: CliContext, folder: Path, who: str, passphrase_stdin: bool) -> int:
    """Revoke a person's certificates, or one by its id.

    The new list, revocations.json, goes to every table PC: 'sabot house update revocations.json'.

    Exit codes: 0 done, 1 nothing to revoke, 2 usage.
    """
    here = Office(folder, opened(folder / office.KEY, passphrase_stdin))
    gone = here.revoke(who)
    number = here.revocations().told["number"]
    for each in gone:
        words = f"{each.told['person']}: certificate {each.id} is revoked"
        state.output.tell("revoked", escape(words), id=each.id, person=each.told["person"])
    words = f"give {folder / office.REVOKED}, number {number}, to every table PC"
    state.output.tell("revocations", escape(words), number=number, file=str(folder / office.REVOKED))
    return OK


@house.command(
    "rotate", epilog=example("sabot house rotate office --old-until 2026-12-31 --out rotation.json")
)
@json_option
@passphrase_option
@click.argument("folder", type=FOLDER)
@click.option("--old-until", required=True, metavar="DAY", help="the last day of the old key's certificates")
@click.option("--out", type=FILE, required=True, help="the statement for the table PCs")
@click.pass_obj
def rotate(state: CliContext, folder: Path, old_until: str, out: Path, passphrase_stdin: bool) -> int:
    """Draw a new house key; the old one signs the statement that names it.

    Every table PC takes it with 'sabot house update FILE'. A key that others may have is rotated with a day
    in the past: the old certificates end at once.

    Exit codes: 0 done, 1 refused, 2 usage.
    """
    until_s = _day(old_until)
    check_writable(out)
    here = Office(folder, opened(folder / office.KEY, passphrase_stdin))
    made = here.rotate(lambda path: draw(path, passphrase_stdin), until_s, out)
    words = f"{out}: the house's key is now {made.told['to']}; give this file to every table PC"
    state.output.tell("rotation", escape(words), public=made.told["to"], number=made.told["number"])
    return OK


@house.command("list", epilog=example("sabot house list office"))
@json_option
@click.argument("folder", type=FOLDER)
@click.pass_obj
def list_command(state: CliContext, folder: Path) -> int:
    """Every certificate of the house: person, roles, site, last day, and whether it is good.

    Exit codes: 0 done, 1 the folder cannot be read, 2 usage.
    """
    now_s = int(time.time())
    found = Office(folder, None).issued()
    for each in found:
        told = each.certificate.told
        until = _until(told["not_after_s"])
        how = "revoked" if each.revoked else "expired" if now_s > told["not_after_s"] else "good"
        words = f"{each.person:<12} {', '.join(told['roles']):<20} {told['site']:<12} until {until}  {how}"
        state.output.tell(
            "certificate", escape(words), id=each.certificate.id, person=each.person, roles=told["roles"],
            site=told["site"], not_after_s=told["not_after_s"], how=how,
        )  # fmt: skip
    if not found:
        state.output.tell("certificates", "no certificate was signed yet", certificates=0)
    return OK


@house.command("trust", epilog=example("sabot house trust office/house.json --site MAIN"))
@by_options
@click.argument("file", type=FILE)
@click.option("--site", required=True, help="the site of this computer")
@click.pass_obj
def trust(
    state: CliContext,
    file: Path,
    site: str,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Trust a house's certificates on this computer. The floor or service authorises it.

    Revocations and old house keys that this computer had are forgotten, also of the same house. So give it
    the newest list at once: 'sabot house update revocations.json'.

    Compare the key with what the house's office says: whoever's key is trusted here can enrol people.

    Exit codes: 0 done, 1 the file is no statement of a house, 2 usage, 5 not authorised.
    """
    about = statements.read_file(file, statements.HOUSE)
    with PeopleRegister(state.user_files.people) as register:
        by = authorise(register, by_key, by_role, by_badge, pin_stdin)
    with HouseTrust(state.user_files.house) as known:
        known.trust(about, site)
    words = f"this computer, at {site}, trusts {about.told['name']}, key {about.told['key']}"
    state.output.tell("trusted", escape(words), name=about.told["name"], public=about.told["key"], by=by)
    return OK


@house.command("update", epilog=example("sabot house update office/revocations.json"))
@json_option
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.pass_obj
def update(state: CliContext, files: tuple[Path, ...]) -> int:
    """Take over revocations and new keys that the trusted house signed.

    Exit codes: 0 done, 1 a file is refused: forged, older than what is here, or of another house; 2 usage.
    """
    with HouseTrust(state.user_files.house) as known:
        for path in files:
            kind = statements.kind_of(path)
            if kind == statements.ROTATION:
                known.add_rotation(statements.read_file(path, kind))
                state.output.tell("updated", f"the house's key is now {known.key}", public=known.key)
            elif kind == statements.REVOCATIONS:
                number = known.add_revocations(statements.read_file(path, kind))
                state.output.tell("updated", f"revocations number {number} are here", revocations=number)
            else:
                raise BadStatement(f"{path}: neither revocations nor a rotation of a house")
    return OK
