"""``sabot rng``: what a laboratory needs to judge the device's randomness by its own means."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.progress import Progress

from sabot_cli.cli_context import CliContext, verbose_option
from sabot_cli.device_access import DeviceOptions, device_options, open_device
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK
from sabot_cli.people_keys import person_credential
from sabot_cli.provenance import provenance
from sabot_cli.written_files import CannotWrite, check_writable, write_text
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import RngSamples, RngSource, Role

AT_ONCE = 128  # bytes of one answer
ONE_A_BYTE = [bytes(byte >> shift & 1 for shift in range(7, -1, -1)) for byte in range(256)]


@click.group(cls=Group)
@verbose_option
def rng() -> None:
    """The device's randomness, for a laboratory."""


@rng.command(epilog=example("sabot rng export --bytes 1250 --out noise.bin --device sim://"))
@device_options
@click.option(
    "--source",
    type=click.Choice(["noise", "generator"]),
    default="noise",
    show_default=True,
    help="raw bits of the noise source, or bytes of the generator that is seeded from it",
)
@click.option("--bytes", "size", type=click.IntRange(1, 1 << 30), default=125_000, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="the file")
@click.option("--one-a-byte", is_flag=True, help="each bit as a byte, as NIST's SP 800-90B tool reads them")
@click.option("--lab-key", type=click.Path(path_type=Path), help="the laboratory's key file")
@click.pass_obj
def export(
    state: CliContext,
    /,
    source: str,
    size: int,
    out: Path,
    one_a_byte: bool,
    lab_key: Path | None,
    options: DeviceOptions,
) -> int:
    """Write samples of the device's randomness to a file; none of them is ever used for a shuffle.

    Eight samples are a byte, the first in its highest bit. FILE.json beside it says where the samples come
    from: device, components, versions, command, dates, SHA-256.

    Exit codes: 0 done, 1 a file cannot be written, 2 usage, 3 no device, 5 not verified, 6 in use.
    """
    output, timeout = state.output, options.timeout
    sidecar = out.with_name(out.name + ".json")
    check_writable(out)
    check_writable(sidecar)
    began = datetime.now(UTC)
    digest, written = hashlib.sha256(), 0
    with open_device(state, options, owner=True) as client:
        lab = person_credential(state, client, Role.LAB, lab_key)
        try:
            with (
                out.open("wb") as file,
                Progress(console=output.errors, disable=output.as_json, transient=True) as progress,
            ):
                task = progress.add_task(f"reading {source}", total=size)
                while written < size:
                    count = min(AT_ONCE, size - written)
                    question = RngSamples(RngSource[source.upper()], count)
                    samples = client.ask(question, timeout, lab).samples
                    data = b"".join(ONE_A_BYTE[byte] for byte in samples) if one_a_byte else samples
                    digest.update(data)
                    file.write(data)
                    written += len(samples)
                    progress.update(task, completed=written)
        except SabotError:  # some of ours are errors of the system too
            raise
        except OSError as error:
            raise CannotWrite(f"{out}: {error.strerror}") from error
        serial = format_serial(client.identity.serial)
        about = {
            "file": out.name,
            "source": source,
            "bytes_read": written,
            "samples": 8 * written,
            "bits_per_byte_of_file": 1 if one_a_byte else 8,
            "sha256": digest.hexdigest(),
            **provenance(client, timeout, state.arguments, began),
        }
    write_text(sidecar, json.dumps(about, indent=1) + "\n")
    output.tell(
        "exported",
        f"{written} bytes of {source} in {out}, described in {sidecar.name}",
        serial=serial,
        source=source,
        file=str(out),
        sidecar=str(sidecar),
        bytes=written,
        samples=8 * written,
        one_a_byte=one_a_byte,
        sha256=digest.hexdigest(),
    )
    return OK
