"""``sabot doctor``: what could be wrong between this computer and a device."""

import os
import platform
import stat
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from serial.tools import list_ports

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.help_text import example
from sabot_cli.output import NOT_VERIFIED, OK, Output
from sabot_driver import usb
from sabot_driver.discovery import candidates, identify
from sabot_driver.serial_numbers import format_serial
from sabot_driver.usb_ids import PRODUCT, VENDOR
from sabot_protocol.codec import CODEC
from sabot_protocol.schema_hash import SCHEMA_HASH

GOOD, WARN, BAD = "ok", "warning", "problem"
_COLOURS = {GOOD: "green", WARN: "yellow", BAD: "red"}


class DoctorFindings:
    """What was looked at."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.worst = GOOD
        self.all: list[dict[str, Any]] = []

    def add(self, result: str, check: str, text: str, advice: str = "") -> None:
        """One finding."""
        if result == BAD or (result == WARN and self.worst == GOOD):
            self.worst = result
        self.all.append({"check": check, "result": result, "text": text, "advice": advice})
        colour = _COLOURS[result]
        said = escape(f"{check}: {text}" + (f"\n         {advice}" if advice else ""))
        words = f"[{colour}]{result:<8}[/{colour}] {said}"
        self._output.tell("check", words, check=check, result=result, text=text, advice=advice)


def software(findings: DoctorFindings) -> None:
    """Versions of what the driver stands on."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("sabot", "pyserial", "pyusb"))
    protocol = "%d.%d" % CODEC.version
    findings.add(GOOD, "software", f"Python {platform.python_version()} on {platform.system()}; {parts}")
    findings.add(GOOD, "protocol", f"version {protocol}, schema {SCHEMA_HASH.hex()}")


def libusb(findings: DoctorFindings) -> None:
    """Whether pyusb finds a library to work with."""
    try:
        from usb.backend import libusb1

        there = libusb1.get_backend() is not None
    except (ImportError, OSError):
        there = False
    if there:
        findings.add(GOOD, "libusb", "found")
    else:
        findings.add(
            WARN, "libusb", "not found: usb:// will not work", "Install libusb 1.0; serial ports work."
        )


def keys(findings: DoctorFindings, state: CliContext) -> None:
    """Whether others can read a key, or write what says which device a table has."""
    folder = state.user_files.keyring.folder
    files = sorted(folder.rglob("*.key")) if folder.is_dir() else []
    exposed = [
        path.name
        for path in files
        if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ]
    if exposed:
        findings.add(BAD, "keys", f"others can read {', '.join(exposed)}", f"chmod 600 the files in {folder}")
    else:
        findings.add(GOOD, "keys", f"{len(files)} in {folder}")
    tables = state.user_files.tables_file
    loose = [
        str(path)
        for path in (tables.parent, tables, folder)
        if os.name == "posix" and path.exists() and path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ]
    if loose:
        findings.add(BAD, "files", f"others can write {', '.join(loose)}", f"chmod go-w {' '.join(loose)}")


def who_has(path: str) -> str | None:
    """The processes that have a file open, where the system tells (Linux); None if nobody has."""
    proc = Path("/proc")
    if not proc.is_dir():
        return None
    real = os.path.realpath(path)
    holders = []
    for folder in proc.glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            if any(os.path.realpath(each) == real for each in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
                holders.append(f"{name} (process {folder.name})")
        except OSError:
            continue
    return ", ".join(holders) or None


def ports(findings: DoctorFindings, urls: list[str]) -> None:
    """Each port: may it be opened, who has it, who answers."""
    for url in urls:
        path = Path(url)
        holder = None
        if "://" not in url and path.exists():
            if not os.access(path, os.R_OK | os.W_OK):
                group = path.stat().st_gid
                findings.add(
                    BAD,
                    url,
                    f"this user may not open it (group {_group(group)})",
                    f"Add the user to the group {_group(group)} and log in again.",
                )
                continue
            holder = who_has(url)
        found = identify(url)
        if found.identity is None:
            assert found.error is not None
            if holder is not None:
                findings.add(WARN, url, f"in use by {holder}", "Close that program, or use it to watch.")
                continue
            findings.add(BAD, url, str(found.error), found.error.advice)
            continue
        about = found.identity
        label = "SIMULATOR " if found.simulator else ""
        text = f"{label}{format_serial(about.serial)}, {about.model} {about.version}"
        if (about.major, about.minor) != CODEC.version:
            findings.add(
                WARN,
                url,
                f"{text}; it speaks {about.major}.{about.minor}, we speak {'%d.%d' % CODEC.version}",
                "Update the side with the lower version.",
            )
        elif about.schema != SCHEMA_HASH:
            findings.add(WARN, url, f"{text}; same version, another schema", "Update one of the two.")
        else:
            findings.add(GOOD, url, text)


def _group(number: int) -> str:
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)


def examine(state: CliContext, urls: list[str]) -> DoctorFindings:
    """Look at everything."""
    findings = DoctorFindings(state.output)
    software(findings)
    libusb(findings)
    keys(findings, state)
    others = [port for port in list_ports.comports() if (port.vid, port.pid) != (VENDOR, PRODUCT)]
    if others:
        text = ", ".join(f"{port.device} ({port.description})" for port in others)
        findings.add(GOOD, "other ports", text)
    if "?" in usb.serials():
        findings.add(
            BAD,
            "usb",
            "a device is on USB that this user may not open",
            "Install the udev rule of docs/driver.md.",
        )
    asked = list(
        dict.fromkeys([*urls, *candidates(), *(each.url for each in state.user_files.tables().values())])
    )
    if asked:
        ports(findings, asked)
    else:
        findings.add(WARN, "devices", "none found", "Check cable and power.")
    return findings


@click.command(epilog=example("sabot doctor"))
@json_option
@click.option("--device", "urls", metavar="URL", multiple=True, help="look here too (repeatable)")
@click.pass_obj
def doctor(state: CliContext, urls: tuple[str, ...]) -> int:
    """Look for what could be wrong on this computer.

    Permissions, who has a port open, versions, keys that others can read.

    Exit codes: 0 all is well, 2 usage, 5 something is wrong.
    """
    return NOT_VERIFIED if examine(state, list(urls)).worst == BAD else OK
