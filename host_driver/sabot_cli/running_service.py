"""Which process of this computer runs a table, for commands that attach to it."""

from pathlib import Path

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, find_device
from sabot_driver.user_files import TableEntry
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress, find_service


def service_folder(state: CliContext, entry: TableEntry) -> Path:
    """Where the process that runs a table leaves its lock: by the table's name, or by its device's URL."""
    named = [each.name for each in state.user_files.tables().values() if each.url == entry.url]
    return state.user_files.table_folder(entry.name or (named[0] if named else entry.url))


def running_service(state: CliContext, options: DeviceOptions) -> tuple[Path, ServiceAddress] | None:
    """The process that runs the table of these options, and the folder of its file; None if none does."""
    folder = service_folder(state, find_device(state, options))
    found = find_service(folder)
    return None if found is None else (folder, found)


def attached_client(state: CliContext, options: DeviceOptions) -> ServiceClient | None:
    """Asks the process that runs the table, which has answered; None if none runs it."""
    found = running_service(state, options)
    if found is None:
        return None
    client = ServiceClient(found[1], options.timeout)
    client.check()
    return client
