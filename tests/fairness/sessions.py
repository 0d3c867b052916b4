"""A small session on an emulated device, for the commands that judge one afterwards."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import provision_simulator_keys
from sabot_cli.output import Output
from sabot_cli.people_keys import table_credentials
from sabot_driver import connect
from sabot_driver.journal import Journal
from sabot_driver.user_files import UserFiles
from sabot_simulators.fairness.device_shuffles import DeviceShuffles

Lines = list[dict[str, Any]]
Sabot = Callable[..., tuple[int, Lines]]


class Session:
    """A small session on an emulated device: its journal, and the lines that were told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal.db"
        told = StringIO()
        with (
            redirect_stdout(told),
            connect("sim://?seed=5", journal=Journal(self.journal, b"SIM00001")) as client,
        ):
            output = Output(as_json=True)
            places = UserFiles(folder / "home")
            provision_simulator_keys(places, client, 10.0)
            people = table_credentials(CliContext(output, places), client, None)
            DeviceShuffles(client, output, people, 10.0).shuffle(3, lambda order: None)
        self.lines: Lines = [json.loads(line) for line in told.getvalue().splitlines()]

    def written(self, name: str = "told.jsonl", **changes: Any) -> Path:
        """The lines as a file; ``changes`` are made to every reveal of shuffle 2."""
        path = self.folder / name
        lines = [dict(line) for line in self.lines]
        for line in lines:
            if line["event"] == "shuffle_revealed" and line["shuffle_id"] == 2:
                line.update(changes)
        path.write_text("\n".join(map(json.dumps, lines)))
        return path
