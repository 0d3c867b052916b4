"""``sabot fairness``: shuffles, tests the order that the cards really have, prints the result."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, open_device
from sabot_cli.help_text import example
from sabot_cli.output import FAULT, NOT_VERIFIED, OK, Output, utc
from sabot_cli.people_keys import table_credentials
from sabot_cli.provenance import device_components, software
from sabot_cli.written_files import CannotWrite, check_folder, check_writable
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_simulators.fairness.seeded_biases import PLANTS
from sabot_simulators.fairness.source_components import source_components

if TYPE_CHECKING:
    from sabot_simulators.fairness.evidence import Evidence
    from sabot_simulators.fairness.order_tests import OrderReport
    from sabot_simulators.fairness.saved_progress import SavedProgress
    from sabot_simulators.fairness.simulated_shuffles import Orders, ShuffledBatch

CARDS = tuple(str(52 * decks) for decks in range(1, 9))


class EvidenceMissing(SabotError):
    """The statistics need packages that are not installed."""

    advice = "Install them: pip install 'sabot[fairness]'."


@click.command(epilog=example("sabot fairness --shuffles 100"))
@json_option
@click.option("--shuffles", type=click.IntRange(2), default=2000, show_default=True, metavar="N")
@click.option("--cards", type=click.Choice(CARDS), default="52", show_default=True)
@click.option("--plant", type=click.Choice(PLANTS), help="a bias that must be found")
@click.option("--until-flagged", is_flag=True, help="stop as soon as a bias is found")
@click.option("--device", metavar="URL", help="shuffle on this device instead; its reader sees the cards")
@click.option("--simulator", is_flag=True, help="with --device: it is one you emulate")
@click.option("--floor-key", type=click.Path(path_type=Path), help="with --device: the floor's key file")
@click.option("--timeout", type=click.FloatRange(0.1, 600), default=10.0, show_default=True, metavar="S")
@click.option("--orders", type=click.Path(path_type=Path, dir_okay=False), help="write each order as a line")
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="write a page with plots")
@click.option(
    "--progress",
    type=click.Path(path_type=Path, dir_okay=False),
    help="keep what was shuffled in this file; the same command goes on with it",
)
@click.option("--seed", type=int, default=1, show_default=True, help="of the simulated machines")
@click.option("--processes", type=click.IntRange(1), metavar="N", help="as many as there are cores")
@click.pass_obj
def fairness(
    state: CliContext,
    shuffles: int,
    cards: str,
    plant: str | None,
    until_flagged: bool,
    device: str | None,
    simulator: bool,
    floor_key: Path | None,
    timeout: float,
    orders: Path | None,
    report: Path | None,
    progress: Path | None,
    seed: int,
    processes: int | None,
) -> int:
    """Test the order that shuffled cards really have.

    Shuffled by firmware and mechanism here, or on a device. With --progress a run that was ended, by Ctrl-C
    or by a power cut, goes on where it was.

    Exit codes: 0 no bias was found, 1 a file cannot be written, 2 usage, 3 no device, 5 biased, or too few
    shuffles to judge (100 are the least), 7 the machine stopped, 130 ended with Ctrl-C.
    """
    try:
        from sabot_simulators.fairness.evidence import gather, judged
        from sabot_simulators.fairness.fairness_page import write_page
        from sabot_simulators.fairness.simulated_shuffles import ShuffleFailed
    except ImportError as error:
        raise EvidenceMissing(f"the evidence needs {error.name}, which is not installed") from error
    output, began = state.output, datetime.now(UTC)
    if orders is not None:
        check_writable(orders)
    if report is not None:
        check_folder(report)
    if device is not None and (plant is not None or cards != "52" or until_flagged):
        raise click.UsageError("--device goes with neither --plant, --cards nor --until-flagged")
    if progress is not None:
        check_writable(progress)
    components: dict[str, Any] = source_components()
    try:
        if device is None:
            output.simulator = True
            what = {"cards": int(cards), "seed": seed, "plant": plant, "components": components}
            with _kept(progress, what) as saved, _bar(output, cards, shuffles) as shuffled:
                begun = utc(began) if saved is None else saved.begun
                evidence = gather(
                    shuffles, int(cards), seed, plant, processes, until_flagged, shuffled, saved
                )
        else:
            chosen = DeviceOptions(device, None, None, timeout, simulator)
            stretches, components, begun = _on_device(state, chosen, floor_key, shuffles, progress)
            evidence = judged(stretches)
    except ShuffleFailed as failed:
        output.tell("stopped", f"[red]the machine stopped: {failed}[/red]", fault=str(failed))
        return FAULT
    except KeyboardInterrupt:
        if progress is not None:
            words = f"ended; the shuffles so far are in {progress}, and the same command goes on with them"
            output.tell("ended", words, progress=str(progress))
        raise
    if orders is not None:
        write_orders(orders, evidence.orders)
    title = plant or device or "the reference machine"
    if report is not None:
        about = {
            "shuffled by": "simulated machines" if device is None else device,
            "seed": str(seed) if device is None else "the device's own noise",
            "planted bias": plant or "none",
            "SHA-256 of the orders": orders_sha256(evidence.orders),
            **{f"component {name}": _component_words(each) for name, each in components.items()},
            "first shuffle begun": begun,
            **software(state.arguments, began),
        }
        seen = _would_have_seen(evidence.findings)
        page = write_page(report, title, evidence.findings, evidence.orders, about, seen)
        output.tell("report", f"wrote {page}", file=str(page))
    _tell(output, title, plant, evidence, components)
    return OK if evidence.findings.verdict == "uniform" else NOT_VERIFIED


def _component_words(each: Mapping[str, str]) -> str:
    return f"version {each['version']}, SHA-256 {each['sha256']}"


@contextmanager
def _kept(path: Path | None, about: Mapping[str, Any]) -> "Iterator[SavedProgress | None]":
    """The progress of a run on disk, if it is to be kept."""
    from sabot_simulators.fairness.saved_progress import SavedProgress

    if path is None:
        yield None
        return
    with SavedProgress(path, about) as saved:
        yield saved


@contextmanager
def _bar(output: Output, cards: str, total: int) -> Iterator[Callable[[int], None]]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=output.errors, disable=output.as_json, transient=True) as progress:
        task = progress.add_task(f"shuffling {cards} cards", total=total)
        yield lambda count: progress.advance(task, count)


def _on_device(
    state: CliContext,
    chosen: DeviceOptions,
    floor_key: Path | None,
    shuffles: int,
    progress: Path | None,
) -> "tuple[list[ShuffledBatch], dict[str, Any], str]":
    """Orders of a device's own deck, read at its exit, stretch by stretch.

    And the device's components, and when the first run began.
    """
    from sabot_simulators.fairness.device_shuffles import DeviceShuffles
    from sabot_simulators.fairness.saved_progress import SavedProgress

    with open_device(state, chosen, owner=True) as client, TemporaryDirectory() as folder:
        components = device_components(client, chosen.timeout)
        about = {"serial": format_serial(client.identity.serial), "components": components}
        with SavedProgress(progress or Path(folder) / "progress", about) as saved:
            left, stretch = shuffles - saved.shuffles, len(saved.batches)
            if left > 0:
                people = table_credentials(state, client, floor_key)
                lab = DeviceShuffles(client, state.output, people, chosen.timeout, goes_on=stretch > 0)
                with _bar(state.output, "52", shuffles) as shuffled:
                    shuffled(saved.shuffles)

                    def keep(one: "ShuffledBatch") -> None:
                        saved.add(stretch, one, more=True)
                        shuffled(1)

                    lab.shuffle(left, keep)
            return [saved.batches[number] for number in sorted(saved.batches)], components, saved.begun


def _order_lines(orders: "Orders") -> Iterator[str]:
    """One order a line: cards by their place in the tray, from 0, the top one first."""
    return (" ".join(map(str, order)) + "\n" for order in orders)


def write_orders(path: Path, orders: "Orders") -> None:
    """Write the orders to a file, one a line; CannotWrite if that fails."""
    try:
        with path.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(_order_lines(orders))
    except OSError as error:
        raise CannotWrite(f"{path}: {error.strerror}") from error


def orders_sha256(orders: "Orders") -> str:
    """The SHA-256 of the file that ``write_orders`` writes."""
    digest = hashlib.sha256()
    for line in _order_lines(orders):
        digest.update(line.encode("ascii"))
    return digest.hexdigest()


WORDS = {
    "uniform": "no bias found",
    "biased": "[red]biased[/red]",
    "too_few": "[yellow]too few shuffles to judge[/yellow]",
}
"""Every verdict, in words."""


def _would_have_seen(findings: "OrderReport") -> str:
    """The bias that the two broadest tests would have found, in words."""
    if findings.verdict != "uniform":
        return ""
    first = findings.tests[:2]
    seen = "; ".join(f"{findings.detectable(each):.2g} {each.unit} ({each.name})" for each in first)
    return f"\nThe tests would have seen, with 99 %: {seen}; the table has the others."


def _tell(
    output: Output, title: str, plant: str | None, evidence: "Evidence", components: Mapping[str, Any]
) -> None:
    """Print every test, then the verdict."""
    findings = evidence.findings
    table = Table("test", "seen", "expected", "p", "p corr.", "would have seen", box=None, pad_edge=False)
    for test in findings.tests:
        numbers = (test.statistic, test.expected, test.p, test.p_corrected, findings.detectable(test))
        *shown, seen = (f"{number:.4g}" for number in numbers)
        table.add_row(test.name, *shown, f"{seen} {test.unit}")
        names = ("statistic", "expected", "p", "p_corrected", "detectable")
        output.tell("test", test=test.name, **dict(zip(names, numbers, strict=True)), detectable_in=test.unit)
    if not output.as_json:
        output.console.print(table)
    stops = f", stopped and begun anew {evidence.stops} times" if evidence.stops else ""
    found = f"\nfound after {evidence.flagged_at} shuffles" if evidence.flagged_at is not None else ""
    output.tell(
        "fairness",
        f"{title}: {WORDS[findings.verdict]}, {findings.shuffles} shuffles of {findings.cards} cards, "
        f"{evidence.seconds_per_thousand:.1f} s a thousand{stops}{found}{_would_have_seen(findings)}",
        verdict=findings.verdict,
        shuffles=findings.shuffles,
        cards=findings.cards,
        level=findings.level,
        plant=plant,
        flagged_at=evidence.flagged_at,
        orders_sha256=orders_sha256(evidence.orders),
        components=components,
        stops=evidence.stops,
        seconds_per_thousand=round(evidence.seconds_per_thousand, 3),
    )
