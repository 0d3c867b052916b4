"""Which process of this computer runs a table: the lock and the file that it leaves in the table's folder."""

from pathlib import Path

from sabot_cli.cli_context import CliContext
from sabot_driver.user_files import TableEntry
from sabot_serve.errors import ServiceRunning
from sabot_serve.service_file import find_service


def service_folder(state: CliContext, entry: TableEntry) -> Path:
    """Where the process that runs a table leaves its lock: by the table's name, or by its device's URL."""
    named = [each.name for each in state.user_files.tables().values() if each.url == entry.url]
    return state.user_files.table_folder(entry.name or (named[0] if named else entry.url))


def refuse_while_running(state: CliContext, entry: TableEntry, advice: str | None = None) -> None:
    """`ServiceRunning` if a process runs the table, with its number."""
    found = find_service(service_folder(state, entry))
    if found is not None:
        raise ServiceRunning(f"process {found.pid} runs this table", advice)
