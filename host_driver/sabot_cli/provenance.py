"""Where the data of a laboratory's file comes from: device, components, versions, command, dates."""

import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sabot_cli.output import utc
from sabot_driver import Client
from sabot_driver.device_values import name_of
from sabot_driver.serial_numbers import format_serial
from sabot_protocol.host.messages import Component, ComponentQuery, IdentityFlag
from sabot_protocol.schema_hash import SCHEMA_HASH


def software(arguments: Sequence[str], began: datetime) -> dict[str, Any]:
    """The program, its version and commit, how it was called, and when it ran (UTC)."""
    return {
        "program": f"sabot {version('sabot')}",
        "commit": commit(),
        "schema": SCHEMA_HASH.hex(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "command": shlex.join(["sabot", *arguments]),
        "began": utc(began),
        "ended": utc(datetime.now(UTC)),
    }


def commit() -> str | None:
    """The commit of the checkout that this program runs from, with ``+`` if files differ from it.

    None for an installed package, which has a version instead.
    """
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True, timeout=30
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def device_components(client: Client, timeout: float) -> dict[str, Any]:
    """Version and SHA-256 of each component of a device."""
    told = [client.ask(ComponentQuery(each), timeout) for each in Component]
    return {
        name_of(Component(each.component)): {"version": each.version, "sha256": each.sha256.hex()}
        for each in told
    }


def provenance(client: Client, timeout: float, arguments: Sequence[str], began: datetime) -> dict[str, Any]:
    """All of it, for data that came from a device."""
    about = client.identity
    return {
        "device": {
            "serial": format_serial(about.serial),
            "model": about.model,
            "version": about.version,
            "simulator": client.simulator,
            "test_rng": bool(about.flags & IdentityFlag.TEST_RNG),
            "components": device_components(client, timeout),
        },
        **software(arguments, began),
    }
