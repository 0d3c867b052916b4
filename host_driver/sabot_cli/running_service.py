"""Which process of this computer runs a table, for commands that attach to it."""

from pathlib import Path

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, find_device
from sabot_cli.table_process import service_folder
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import ServiceAddress, find_service


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
