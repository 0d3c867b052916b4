"""``sabot flash``: put an application onto a board, and see that it is what answers afterwards."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, open_device, timeout_option
from sabot_cli.help_text import example
from sabot_cli.output import OK, Output
from sabot_driver import Client, Credential
from sabot_driver.discovery import DiscoveredDevice, identify
from sabot_driver.errors import NoAnswer
from sabot_driver.serial_numbers import format_serial
from sabot_flash import install, running_device
from sabot_flash.application import Application
from sabot_flash.bootloader_drive import find_drive
from sabot_flash.image_components import ImageComponent
from sabot_flash.install import InstallProgress
from sabot_flash.raw_repl import RawRepl
from sabot_flash.uf2_image import Uf2Image, read_image
from sabot_protocol.host.messages import Role

IMAGE = Path("build/firmware/sabot-rp2040.romfs")
IMAGES = {".uf2": "--uf2", ".romfs": "--image"}
"""By which option an image is given, by its ending."""
PROMPT_S = 15.0  # for a board to come to its prompt or to become a drive
START_S = 20.0
ASK_S = 2.0


@click.command(epilog=example("sabot flash /dev/ttyACM0"))
@json_option
@click.argument("port", required=False)
@click.option("--uf2", type=click.Path(path_type=Path), help="write this image by the boot loader's drive")
@click.option("--image", type=click.Path(path_type=Path), help=f"the application, for a PORT ({IMAGE})")
@click.option("--drive", type=click.Path(path_type=Path), help="where the boot loader's drive is mounted")
@click.option("--service-key", type=click.Path(path_type=Path), help="service's key, if Sabot runs there")
@timeout_option
@click.pass_obj
def flash(
    state: CliContext,
    port: str | None,
    uf2: Path | None,
    image: Path | None,
    drive: Path | None,
    service_key: Path | None,
    timeout: float,
) -> int:
    """Put an application onto a board (RP2040).

    By its PORT or, with --uf2, by its boot loader.

    A board that plays, or has cards inside, is left alone. What is written is read back before it counts.

    Exit codes: 0 done, 2 usage or no image, 3 no board, 5 image or written data are wrong, 6 it plays.
    """
    if uf2 is not None and image is not None:
        raise click.UsageError("--uf2 and --image exclude each other")
    if uf2 is None and port is None:
        raise click.UsageError("name the board's PORT, or an image: --uf2 FILE")
    if port is not None and Path(port).suffix in IMAGES:
        option = IMAGES[Path(port).suffix]
        raise click.UsageError(f"{port} is an image, not a board's PORT; an image is given by {option} FILE")
    if uf2 is None and drive is not None:
        raise click.UsageError("--drive is for --uf2")
    key = None if service_key is None else Credential.read(Role.SERVICE, service_key)
    work = Flashing(state, port, key, timeout)
    if uf2 is not None:
        return work.by_drive(read_image(uf2), drive)
    return work.by_prompt(Application.read(image or IMAGE))


class Flashing:
    """One board that is flashed."""

    def __init__(self, state: CliContext, port: str | None, key: Credential | None, timeout: float) -> None:
        self._state = state
        self._output = state.output
        self._port = port
        self._key = key
        self._timeout = timeout

    def by_prompt(self, application: Application) -> int:
        """Write an application at MicroPython's prompt."""
        port = self._port
        assert port is not None
        self._stop(port)
        with RawRepl(port, PROMPT_S) as prompt, _bar(self._output, "flashing") as step:
            done = install.install(prompt, application, step)
            prompt.restart()
        told = "was there already" if not done.written else "was written and read back"
        self._output.tell(
            "flashed",
            f"the application ({len(application.data):,} bytes) {told}, in place {done.pointer.slot}",
            place=done.pointer.slot,
            sha256=done.pointer.sha256.hex(),
            before=None if done.before is None else done.before.sha256.hex(),
            written=done.written,
        )
        return self._finish(port, application.components)

    def by_drive(self, image: Uf2Image, folder: Path | None) -> int:
        """Copy an image to the boot loader's drive."""
        self._output.tell(
            "image",
            f"the image is whole: {len(image.program):,} bytes, version {image.version}",
            sha256=image.sha256.hex(),
            version=image.version,
            bytes=len(image.program),
        )
        if self._port is not None:
            self._stop(self._port)
        drive = find_drive(folder, PROMPT_S if self._port is not None else 1.0)
        with _bar(self._output, "flashing") as step:
            done = 0

            def more(written: int) -> None:
                nonlocal done
                done += written
                step(InstallProgress("copying", done, len(image.data)))

            drive.write(image.data, more)
        drive.wait_gone(START_S)
        self._output.tell(
            "flashed",
            f"the image was copied to {drive.folder}, and the board has started it",
            drive=str(drive.folder),
            written=len(image.data),
        )
        return self._finish(self._port, image.components)

    def _stop(self, port: str) -> None:
        """If Sabot runs on the board, have it start its loader; if nothing answers, it is at its prompt."""
        found = identify(port, ASK_S)
        if found.identity is None:
            if not isinstance(found.error, NoAnswer):
                assert found.error is not None
                raise found.error
            return
        running_device.check_model(found.identity)
        running_device.stop_application(lambda: self._open(port), self._key, self._timeout)
        self._output.tell("stopped", "the application that ran has been stopped")

    def _open(self, port: str) -> AbstractContextManager[Client]:
        return open_device(self._state, DeviceOptions(port, None, None, self._timeout), owner=True)

    def _finish(self, port: str | None, wanted: tuple[ImageComponent, ...]) -> int:
        """What answers must be what was flashed."""
        found = running_device.wait_for_device(port, START_S)
        assert found.identity is not None
        running_device.check_model(found.identity)
        running_device.compare_version(found.identity, wanted)
        proved = self._compare(found, wanted)
        about, serial = found.identity, format_serial(found.identity.serial)
        how = "its components are those flashed" if proved else "components not asked: no key for it here"
        self._output.tell(
            "identity",
            f"[green]{escape(f'{about.model} {about.version}')}[/green], {serial}, at {found.url}; {how}",
            url=found.url,
            model=about.model,
            version=about.version,
            serial=serial,
            components={each.name: [each.version, each.sha256.hex()] for each in wanted} if proved else None,
        )
        return OK

    def _compare(self, found: DiscoveredDevice, wanted: tuple[ImageComponent, ...]) -> bool:
        try:
            with self._open(found.url) as client:
                running_device.compare_components(client, wanted, self._timeout)
        except running_device.NO_KEY:
            return False
        return True


@contextmanager
def _bar(output: Output, what: str) -> Iterator[Callable[[InstallProgress], None]]:
    """A bar for a person; for a program one object for each file."""
    if output.as_json:
        last = ""

        def say(step: InstallProgress) -> None:
            nonlocal last
            if step.what != last:
                last = step.what
                output.tell("progress", None, step=step.what, done=step.done, total=step.total)

        yield say
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn())
    with Progress(*columns, console=output.console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda step: progress.update(
            task, description=f"{step.what:<40.40}", completed=step.done, total=step.total
        )
