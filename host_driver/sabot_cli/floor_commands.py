"""``sabot floor``: the archive of a site's tables, its export, and the keys of its servers' users."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.floor_serve_command import serve
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK
from sabot_driver.errors import SabotError

if TYPE_CHECKING:
    from sabot_floor.streams import StreamSettings

NOT_VERIFIED = 5
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
F = TypeVar("F", bound=Callable[..., Any])


class FloorExtraMissing(SabotError):
    """The libraries of the floor are not installed."""

    advice = "Install them: pip install 'sabot[floor]'."


@click.group(cls=Group)
def floor() -> None:
    """Many tables of a site: their archive, keys, export."""
    try:
        import nats
        import sqlalchemy  # noqa: F401
    except ImportError as error:
        raise FloorExtraMissing(f"'sabot floor' needs {error.name}") from error
    assert nats


floor.add_command(serve)


def _site(command: F) -> F:
    """Which site, and how to reach its servers."""
    for option in (
        click.option("--ca", type=FILE, help="the authority of the servers' certificates"),
        click.option("--key", "seed", type=FILE, help="the file with this user's seed"),
        click.option(
            "--server", "urls", multiple=True, metavar="URL", default=("nats://127.0.0.1:4222",),
            show_default=True, help="a server of the site (repeatable); tls:// for TLS",
        ),
        click.option("--site", required=True, metavar="NAME", help="the site's name"),
    ):  # fmt: skip
        command = option(command)
    return command


def _stream(command: F) -> F:
    """How large the stream of rows may become."""
    for option in (
        click.option("--days", type=click.IntRange(1), default=14, show_default=True, help="rows stay"),
        click.option(
            "--gigabytes", type=click.FloatRange(0.1), default=64, show_default=True, help="of the stream"
        ),
        click.option(
            "--replicas", type=click.IntRange(1, 5), default=3, show_default=True,
            help="copies of each message; 1 on a single server",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def _settings(replicas: int, gigabytes: float, days: int) -> "StreamSettings":
    from sabot_floor.streams import DAY_S, StreamSettings

    return StreamSettings(replicas, max_age_s=days * DAY_S, max_bytes=int(gigabytes * 1024**3))


@floor.command("setup", epilog=example("sabot floor setup --site harbour --replicas 1"))
@json_option
@_site
@_stream
@click.pass_obj
def setup_(
    state: CliContext,
    /,
    site: str,
    urls: tuple[str, ...],
    seed: Path | None,
    ca: Path | None,
    replicas: int,
    gigabytes: float,
    days: int,
) -> int:
    """Create the stream and the buckets of a site, where they are missing.

    Exit codes: 0 they are there, 1 refused, 2 usage.
    """
    from sabot_floor.connection import Servers, connect
    from sabot_floor.names import SiteNames
    from sabot_floor.streams import set_up

    settings = _settings(replicas, gigabytes, days)

    async def create() -> list[str]:
        client = await connect(Servers(urls, seed, ca, "_INBOX_admin"), "setup", lambda: None)
        try:
            return await set_up(client.jetstream(), SiteNames(site), settings)
        finally:
            await client.close()

    created = asyncio.run(create())
    words = f"Created {', '.join(created)}." if created else "Everything is there."
    state.output.tell("set_up", words, created=created)
    return OK


@floor.command("headquarters", epilog=example("sabot floor headquarters --site harbour --also hill"))
@json_option
@_site
@click.option("--also", multiple=True, metavar="NAME", help="another site (repeatable)")
@_stream
@click.pass_obj
def headquarters(
    state: CliContext,
    /,
    site: str,
    also: tuple[str, ...],
    urls: tuple[str, ...],
    seed: Path | None,
    ca: Path | None,
    replicas: int,
    gigabytes: float,
    days: int,
) -> int:
    """Create the stream of headquarters, which has the rows of several sites, or add sites to it.

    Each site is a JetStream domain of the same name, and its servers are connected to those of headquarters.
    '--server' is a server of headquarters.

    Exit codes: 0 it is there, 1 refused, 2 usage.
    """
    from sabot_floor.connection import Servers, connect
    from sabot_floor.streams import HEADQUARTERS_STREAM, set_up_headquarters

    settings = _settings(replicas, gigabytes, days)

    async def create() -> list[str]:
        client = await connect(Servers(urls, seed, ca, "_INBOX_admin"), "headquarters", lambda: None)
        try:
            return await set_up_headquarters(client.jetstream(), [site, *also], settings)
        finally:
            await client.close()

    added = asyncio.run(create())
    words = f"{HEADQUARTERS_STREAM} sources {', '.join(added)}." if added else "Everything is there."
    state.output.tell("set_up", words, added=added)
    return OK


@floor.command("archive", epilog=example("sabot floor archive --site harbour --to archive.db --replicas 1"))
@json_option
@_site
@_stream
@click.option("--to", "url", required=True, metavar="URL", help="a file, or postgresql://…")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="offer metrics on this computer's port")
@click.pass_obj
def archive(
    state: CliContext,
    /,
    site: str,
    urls: tuple[str, ...],
    seed: Path | None,
    ca: Path | None,
    replicas: int,
    gigabytes: float,
    days: int,
    url: str,
    metrics_port: int | None,
) -> int:
    """Take the rows of a site's tables into a database, until it is ended.

    Exit codes: 0 ended, 1 refused, 2 usage.
    """
    from sabot_floor.archive import Archive
    from sabot_floor.archive_store import ArchiveStore
    from sabot_floor.connection import Servers
    from sabot_floor.metrics import serve_archive_metrics

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    store = ArchiveStore(url, site)
    try:
        servers = Servers(urls, seed, ca, "_INBOX_archive")
        made = Archive(store, site, servers, _settings(replicas, gigabytes, days))
        if metrics_port is not None:
            serve_archive_metrics(made, metrics_port)
        words = f"Archiving {site}. End with Ctrl-C."
        asyncio.run(_until_ended(made.run(), lambda: state.output.tell("archiving", words, site=site)))
    finally:
        store.close()
    return OK


async def _until_ended(running: Coroutine[Any, Any, None], tell: Callable[[], None]) -> None:
    """Run until SIGTERM, Ctrl-C, or an error; ``tell`` says that it runs."""
    from sabot_floor.tasks import run_until_closed

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    tell()
    await run_until_closed(ended, running)


@floor.command("release", epilog=example("sabot floor release t07 --site harbour"))
@json_option
@click.argument("table")
@_site
@click.pass_obj
def release(
    state: CliContext, /, table: str, site: str, urls: tuple[str, ...], seed: Path | None, ca: Path | None
) -> int:
    """Let another table PC publish a table, after its PC was replaced.

    The program that published the table until now is refused as soon as the other one has the table.

    Exit codes: 0 released, 1 refused, 2 usage.
    """
    from sabot_floor.claim import release as give_free
    from sabot_floor.connection import Servers, connect
    from sabot_floor.names import SiteNames, check_table

    check_table(table)

    async def free() -> None:
        client = await connect(Servers(urls, seed, ca, "_INBOX_admin"), "release", lambda: None)
        try:
            await give_free(client, SiteNames(site), table)
        finally:
            await client.close()

    asyncio.run(free())
    state.output.tell("released", f"The next publisher of {table} has the table.", table=table)
    return OK


@floor.command("keys", epilog=example("sabot floor keys servers --site harbour --add archive --add t07"))
@json_option
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--site", required=True, metavar="NAME", help="the site's name")
@click.option("--add", multiple=True, metavar="NAME", help="a table, or archive, wall, admin (repeatable)")
@click.option("--revoke", multiple=True, metavar="NAME", help="who may not connect any more (repeatable)")
@click.pass_obj
def keys(state: CliContext, /, folder: Path, site: str, add: tuple[str, ...], revoke: tuple[str, ...]) -> int:
    """Give keys to tables, or revoke them: writes the file of users that the servers include.

    Then give 'users.conf' to each server and have it read it ('nats-server --signal reload'). A revoked user
    loses its connection at that moment. A server that is down must get the file before it starts.

    Exit codes: 0 written, 1 refused, 2 usage.
    """
    from sabot_floor.site_users import SiteUsers

    seeds = SiteUsers(folder, site).change(add, revoke)
    words = [f"{folder / 'users.conf'} is written."]
    words += [f"Move {each} to the computer of its user." for each in seeds]
    state.output.tell("keys", "\n".join(words), seeds=[str(each) for each in seeds], revoked=list(revoke))
    return OK


@floor.command("export", epilog=example("sabot floor export --from archive.db --csv rows.csv"))
@json_option
@click.option("--from", "url", required=True, metavar="URL", help="the archive: a file, or postgresql://…")
@click.option("--csv", "out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="the file")
@click.option("--table", metavar="NAME", help="only this table")
@click.pass_obj
def export(state: CliContext, /, url: str, out: Path, table: str | None) -> int:
    """Write the rows of an archive as CSV.

    Exit codes: 0 written, 1 refused, 2 usage.
    """
    from sabot_floor.archive_files import open_existing, write_csv

    engine = open_existing(url)
    with out.open("w", encoding="utf-8", newline="") as file:
        count = write_csv(engine, file, table)
    engine.dispose()
    state.output.tell("exported", f"{count} rows are in {out}.", rows=count, file=str(out))
    return OK


@floor.command("check", epilog=example("sabot floor check --from archive.db"))
@json_option
@click.option("--from", "url", required=True, metavar="URL", help="the archive: a file, or postgresql://…")
@click.pass_obj
def check(state: CliContext, /, url: str) -> int:
    """Compute every chain of an archive anew, and name what is missing or changed.

    Exit codes: 0 all chains hold, 1 refused, 2 usage, 5 a chain does not hold.
    """
    from sabot_floor.archive_files import check_chains, open_existing

    engine = open_existing(url)
    found = check_chains(engine)
    engine.dispose()
    for each in found:
        said = each.wrong or f"holds up to row {each.n}"
        state.output.tell(
            "chain", f"{each.table} {each.chain} {each.source}: {said}", table=each.table, chain=each.chain,
            source=each.source, n=each.n, hash=each.hash, wrong=each.wrong,
        )  # fmt: skip
    return NOT_VERIFIED if any(each.wrong for each in found) else OK


@floor.command("backup", epilog=example("sabot floor backup --from archive.db --out copy.db"))
@json_option
@click.option("--from", "path", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="the copy")
@click.pass_obj
def backup(state: CliContext, /, path: Path, out: Path) -> int:
    """Copy a SQLite archive while it is written. To restore, stop the archive and put the copy in its place.

    The archive asks the tables for the rows that came after the copy. PostgreSQL has 'pg_dump' for this.

    Exit codes: 0 written, 1 refused, 2 usage.
    """
    from sabot_floor.archive_files import back_up

    back_up(path, out)
    state.output.tell("backed_up", f"The copy is {out}.", file=str(out))
    return OK
