"""``sabot floor serve``: the wall of a site, for browsers."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.help_text import example
from sabot_cli.output import IN_PROGRESS
from sabot_serve.errors import ServiceRunning
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress, ServiceFile, find_service
from sabot_session.people import PeopleRegister
from sabot_web.errors import ExtraMissing

if TYPE_CHECKING:
    from sabot_floor.wall.serving import WallService

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PORTS = click.IntRange(0, 65535)
SHOWN = ("floor", "service")
"""People of a demonstration who may take alarms."""


@click.command("serve", epilog=example("sabot floor serve --site harbour --archive archive.db --port 0"))
@json_option
@click.option("--site", required=True, metavar="NAME", help="the site's name")
@click.option(
    "--server",
    "urls",
    multiple=True,
    metavar="URL",
    default=("nats://127.0.0.1:4222",),
    show_default=True,
    help="a server of the site (repeatable); tls:// for TLS",
)
@click.option("--key", "seed", type=FILE, help="the file with this user's seed")
@click.option("--ca", type=FILE, help="the authority of the servers' certificates")
@click.option("--archive", "archive_url", metavar="URL", help="the archive: a file, or postgresql://…")
@click.option("--port", type=PORTS, default=8480, show_default=True, help="0 takes any")
@click.option("--host", default="127.0.0.1", show_default=True, help="the address to listen on")
@click.option("--certificate", type=FILE, help="TLS certificate; needed beyond this computer")
@click.option("--private-key", type=FILE, help="the certificate's private key")
@click.option("--metrics-port", type=PORTS, help="offer metrics on this computer's port")
@click.option("--demonstration", is_flag=True, help="people of this run only, with PINs that it prints")
@click.pass_obj
def serve(
    state: CliContext,
    /,
    site: str,
    urls: tuple[str, ...],
    seed: Path | None,
    ca: Path | None,
    archive_url: str | None,
    port: int,
    host: str,
    certificate: Path | None,
    private_key: Path | None,
    metrics_port: int | None,
    demonstration: bool,
) -> int:
    """Serve the wall of a site to browsers: which table needs a person, and since when.

    The wall reads. It commands no machine. A second 'sabot floor serve' for the same site prints a new
    address to enter by. Floor and service of the register of people take alarms, with badge or key file and
    PIN.

    Exit codes: 0 ended, 1 refused, 2 usage, 6 served by another process.
    """
    _need_extra()
    from sabot_floor.connection import Servers, inbox_of
    from sabot_floor.names import check_name
    from sabot_floor.wall.archive_reader import ArchiveReader
    from sabot_floor.wall.serving import WallService
    from sabot_floor.wall.wall_metrics import serve_wall_metrics

    folder = state.user_files.table_folder(f"floor-{check_name(site, 'site')}")
    with ExitStack() as stack:
        try:
            held = stack.enter_context(ServiceFile(folder))
        except ServiceRunning:
            running = find_service(folder)
            if running is None:
                raise
            return _attach(state, running)
        archive = None
        if archive_url is not None:
            archive = ArchiveReader(archive_url)
            stack.callback(archive.close)
        people, shown = _people(state, demonstration)
        stack.callback(people.close)
        service = WallService(
            Servers(urls, seed, ca, inbox_of("wall")),
            site,
            people,
            archive,
            host=host,
            port=port,
            certificate=certificate,
            private_key=private_key,
            browsers=held.path.with_name("browsers.json"),
        )
        metrics = ""
        if metrics_port is not None:
            server = serve_wall_metrics(service, metrics_port)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            metrics = f"http://127.0.0.1:{server.server_port}/metrics"
        held.publish(service.address, service.app.access.local_token, certificate)
        _tell(state, service, shown, metrics)
        with _ending(service):
            service.run()
    return 0


def _need_extra() -> None:
    try:
        import jinja2  # noqa: F401
        import nats  # noqa: F401
        import prometheus_client  # noqa: F401
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        advice = "Install them: pip install 'sabot[serve,floor]'."
        raise ExtraMissing(f"'sabot floor serve' needs {error.name}", advice) from error


def _people(state: CliContext, demonstration: bool) -> tuple[PeopleRegister, dict[str, tuple[str, str]]]:
    """The register, and what people of a demonstration show."""
    if not demonstration:
        return PeopleRegister(state.user_files.people), {}
    from sabot_protocol.wire_constants import KEY_SIZE
    from sabot_serve.demonstration import demonstration as enrolled

    found = enrolled(bytes(KEY_SIZE), int(time.time()))  # the wall has no device: the key opens nothing
    return found.register, {who: found.shown[who] for who in SHOWN}


@contextmanager
def _ending(service: "WallService") -> Iterator[None]:
    """A request to terminate ends the service in order."""
    before = signal.signal(signal.SIGTERM, lambda *_: service.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(state: CliContext, service: "WallService", shown: dict[str, tuple[str, str]], metrics: str) -> None:
    enter = f"{service.address}/enter#{service.app.access.invite(time.time())}"
    words = [f"Open in a browser, once and within 15 minutes: [bold]{escape(enter)}[/bold]"]
    words += [
        f"{who.capitalize()} of this demonstration: badge {badge}, PIN {pin}"
        for who, (badge, pin) in shown.items()
    ]
    if metrics:
        words.append(f"Metrics: {metrics}")
    people = {who: {"badge": badge, "pin": pin} for who, (badge, pin) in shown.items()}
    state.output.tell(
        "serving", "\n".join(words), address=service.address, enter=enter, people=people, metrics=metrics
    )


def _attach(state: CliContext, running: ServiceAddress) -> int:
    """Another process serves this wall: ask it for a new token."""
    enter = f"{running.address}/enter#{ServiceClient(running).invite()}"
    state.output.tell(
        "served",
        f"Process {running.pid} serves this wall. Open in a browser, once: [bold]{escape(enter)}[/bold]",
        address=running.address,
        enter=enter,
        pid=running.pid,
    )
    return IN_PROGRESS
