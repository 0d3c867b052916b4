"""``sabot people``: who may act at the tables of this computer, and how they prove it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.markup import escape

from sabot_cli.at_table.one_act import ActingPerson, read_new_pin, read_pin, show_credential
from sabot_cli.cli_context import CliContext, json_option, verbose_option
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK
from sabot_cli.people_keys import KEY_FILE
from sabot_driver import Credential
from sabot_house.proof import show_file
from sabot_house.trust import HouseTrust
from sabot_protocol.host.messages import Role
from sabot_session.errors import NotAuthenticated
from sabot_session.people import PeopleRegister, Person
from sabot_table.procedure import TableRole

F = TypeVar("F", bound=Callable[..., Any])
ROLES = ("dealer", "floor", "service")
SETUP = "setup"
"""Who made the first entry: there was nobody to authorise it."""
HOUSE = "house "
"""What the name of a house as the author of a change begins with; no person's id has a space."""
pass_state = click.make_pass_decorator(CliContext)


class NotAuthorised(NotAuthenticated):
    """The register is changed by the floor or service."""

    advice = "The floor or service shows a key file or badge: --by-key FILE or --by-badge CODE, and the PIN."


@click.group(cls=Group)
@verbose_option
def people() -> None:
    """The people who may act at tables of this computer.

    The first person of a register needs nobody's leave. Every later change is authorised by the floor or
    service with a key file or badge and the PIN. docs/security.md says what a PIN on this computer stops.
    """


def by_options(command: F) -> F:
    """Who authorises a change, and ``--json``."""
    return json_option(authority_options(command))


def authority_options(command: F) -> F:
    """``--by-key``, ``--by-role``, ``--by-badge`` and ``--pin-stdin``: who authorises a change."""
    command = click.option("--pin-stdin", is_flag=True, help="read PINs from standard input, a line each")(
        command
    )
    command = click.option("--by-badge", metavar="CODE", help="the badge of who authorises it")(command)
    command = click.option("--by-role", type=click.Choice(["floor", "service"]), default="floor")(command)
    return click.option("--by-key", type=KEY_FILE, help="the key file of who authorises it")(command)


def authorise(
    register: PeopleRegister, by_key: Path | None, by_role: str, by_badge: str | None, pin_stdin: bool
) -> str:
    """Who makes a change; `NotAuthorised` unless it is the floor or service, or the register is empty."""
    if not any({TableRole.FLOOR, TableRole.SERVICE} & each.roles for each in register.people()):
        return SETUP
    if by_key is None and by_badge is None:
        raise NotAuthorised("the register has a floor or service, and nobody authorises this change")
    keys = {"floor_key": by_key} if by_role == "floor" else {"service_key": by_key}
    acting = ActingPerson(badge=by_badge, pin_stdin=pin_stdin, **keys)  # type: ignore[arg-type]
    shown = show_credential(acting, (TableRole(by_role),))
    who = register.authenticate(shown, int(time.time()))
    if not {TableRole.FLOOR, TableRole.SERVICE} & who.roles:
        raise NotAuthorised(f"{who.person} is neither floor nor service")
    return who.person


def _open(state: CliContext) -> PeopleRegister:
    return PeopleRegister(state.user_files.people)


def _line(each: Person) -> str:
    held = [*(f"{role} key" for role in each.keys), *(["badge"] if each.has_badge else [])]
    gone = "  removed" if each.removed else ""
    roles = ", ".join(role for role in ROLES if role in each.roles)
    return f"{each.person:<12} {each.name:<24} {roles:<24} {', '.join(held)}{gone}".rstrip()


@people.command("list", epilog=example("sabot people list"))
@json_option
@click.option("--all", "everything", is_flag=True, help="also people who were removed")
@pass_state
def people_list(state: CliContext, /, everything: bool) -> int:
    """Everybody in the register, with roles and what each holds.

    Exit codes: 0 done, 1 the register cannot be read.
    """
    with _open(state) as register:
        found = register.people(everything)
    for each in found:
        state.output.tell(
            "person",
            escape(_line(each)),
            person=each.person,
            name=each.name,
            roles=sorted(each.roles),
            badge=each.has_badge,
            keys=list(each.keys),
            removed=each.removed,
        )
    if not found:
        state.output.tell("people", "nobody is enrolled; 'sabot people add ID --name NAME' begins", people=0)
    return OK


@people.command("add", epilog=example("sabot people add dana --name Dana --role dealer --pin-stdin"))
@by_options
@click.argument("person")
@click.option("--name", required=True, help="the person's name")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, required=True, help="repeatable")
@pass_state
def people_add(
    state: CliContext,
    /,
    person: str,
    name: str,
    roles: tuple[str, ...],
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Enrol somebody; the PIN is asked for, or read from standard input after the authorising one.

    Exit codes: 0 done, 1 an id, name or PIN that cannot be, 2 usage, 5 not authorised.
    """
    with _open(state) as register:
        by = authorise(register, by_key, by_role, by_badge, pin_stdin)
        pin = read_new_pin(ActingPerson(pin_stdin=pin_stdin), person)
        register.enrol(person, name, [TableRole(each) for each in roles], pin, by, int(time.time()))
    words = f"{person} is enrolled as {', '.join(roles)}"
    state.output.tell("enrolled", words, person=person, roles=list(roles), by=by)
    return OK


@people.command("enrol", epilog=example("sabot people enrol dana.cert --name Dana --pin-stdin"))
@json_option
@click.argument("file", type=KEY_FILE)
@click.option("--name", required=True, help="the person's name")
@click.option("--pin-stdin", is_flag=True, help="read the PIN from standard input")
@pass_state
def people_enrol(state: CliContext, /, file: Path, name: str, pin_stdin: bool) -> int:
    """Enrol the person of a certificate: the house's signature authorises it.

    The key file lies beside the certificate (dana.cert, dana.pem) on the person's medium. Roles are those of
    the certificate. Afterwards the person shows the certificate where a key file is asked for.

    Exit codes: 0 done, 1 the certificate is refused, or an id, name or PIN that cannot be; 2 usage.
    """
    now_s = int(time.time())
    shown = show_file(file, now_s)
    with HouseTrust(state.user_files.house) as house:
        house.prove(shown, now_s)
        by = f"{HOUSE}{house.key[:16]}"
    roles = [TableRole(each) for each in shown.certificate.told["roles"]]
    pin = read_new_pin(ActingPerson(pin_stdin=pin_stdin), shown.person)
    with _open(state) as register:
        register.enrol(shown.person, name, roles, pin, by, now_s)
    words = f"{shown.person} is enrolled as {', '.join(roles)} by the house's certificate"
    state.output.tell("enrolled", words, person=shown.person, roles=list(roles), by=by)
    return OK


@people.command("key", epilog=example("sabot people key flo floor flo.key"))
@by_options
@click.argument("person")
@click.argument("role", type=click.Choice(ROLES))
@click.argument("file", type=KEY_FILE)
@pass_state
def people_key(
    state: CliContext,
    /,
    person: str,
    role: str,
    file: Path,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Note which key file a person holds; an older key of the role is no longer good.

    'sabot key give' puts the key onto the device. The register keeps only its SHA-256.

    Exit codes: 0 done, 1 refused, 2 usage, 5 not authorised, or the file holds no key.
    """
    key = Credential.read(Role[role.upper()], file)
    with _open(state) as register:
        by = _first_or(register, by_key, by_role, by_badge, pin_stdin)
        register.give_key(person, key, by, int(time.time()))
    state.output.tell("key_noted", f"{person} holds a {role} key", person=person, role=role, by=by)
    return OK


def _first_or(
    register: PeopleRegister, by_key: Path | None, by_role: str, by_badge: str | None, pin_stdin: bool
) -> str:
    """As `authorise`; before anybody holds a key or badge nobody can be asked, so the set-up goes on.

    Somebody whom the house's certificate enrolled holds that certificate, and can be asked.
    """
    certified = {each.person for each in register.changes() if each.by.startswith(HOUSE)}
    if not any(each.keys or each.has_badge or each.person in certified for each in register.people()):
        return SETUP
    return authorise(register, by_key, by_role, by_badge, pin_stdin)


@people.command("badge", epilog=example("sabot people badge dana 0012345678"))
@by_options
@click.argument("person")
@click.argument("code", required=False)
@click.option("--take", is_flag=True, help="the badge is no longer good")
@pass_state
def people_badge(
    state: CliContext,
    /,
    person: str,
    code: str | None,
    take: bool,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Give a person a badge, or take it (--take).

    Exit codes: 0 done, 1 refused, 2 usage, 5 not authorised.
    """
    if (code is None) != take:
        raise click.UsageError("give the badge's code, or --take")
    with _open(state) as register:
        by = _first_or(register, by_key, by_role, by_badge, pin_stdin)
        if code is None:
            register.take_badge(person, by, int(time.time()))
        else:
            register.give_badge(person, code, by, int(time.time()))
    words = f"{person} holds {'no' if take else 'a'} badge"
    state.output.tell("badge", words, person=person, badge=not take, by=by)
    return OK


@people.command("pin", epilog=example("sabot people pin dana --pin-stdin"))
@by_options
@click.argument("person")
@click.option("--forgotten", is_flag=True, help="the floor or service sets a new one")
@pass_state
def people_pin(
    state: CliContext,
    /,
    person: str,
    forgotten: bool,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Change a PIN: the person proves the old one, or the floor or service sets it anew (--forgotten).

    Exit codes: 0 done, 1 a PIN that cannot be, 2 usage, 5 wrong PIN or not authorised.
    """
    asked = ActingPerson(pin_stdin=pin_stdin)
    with _open(state) as register:
        if forgotten:
            by = authorise(register, by_key, by_role, by_badge, pin_stdin)
            register.set_pin(person, read_new_pin(asked, f"{person}, new"), by, int(time.time()))
        else:
            old = read_pin(asked, f"{person}, old")
            register.change_pin(person, old, read_new_pin(asked, f"{person}, new"), int(time.time()))
    state.output.tell("pin", f"{person} has a new PIN", person=person)
    return OK


@people.command("remove", epilog=example("sabot people remove dana"))
@by_options
@click.argument("person")
@pass_state
def people_remove(
    state: CliContext,
    /,
    person: str,
    by_key: Path | None,
    by_role: str,
    by_badge: str | None,
    pin_stdin: bool,
) -> int:
    """Somebody leaves: PIN, badge and keys are no longer good; records keep the id.

    Exit codes: 0 done, 1 nobody has the id, 2 usage, 5 not authorised.
    """
    with _open(state) as register:
        by = authorise(register, by_key, by_role, by_badge, pin_stdin)
        register.remove(person, by, int(time.time()))
    state.output.tell("person_removed", f"{person} is removed", person=person, by=by)
    return OK


@people.command("changes", epilog=example("sabot people changes"))
@json_option
@pass_state
def people_changes(state: CliContext) -> int:
    """Every change of the register: when, by whom, whose entry, what.

    Exit codes: 0 done, 1 the register cannot be read.
    """
    with _open(state) as register:
        found = register.changes()
    for each in found:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at_s))
        state.output.tell(
            "change",
            escape(f"{at}  {each.by}: {each.person} {each.what}"),
            at_s=each.at_s,
            by=each.by,
            person=each.person,
            what=each.what,
        )
    return OK
