"""Lets other programs of this computer attach to a table that is played at a terminal."""

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sabot_serve.service_file import ServiceFile
from sabot_serve.table_people import ServedPeople
from sabot_session.asyncio_session import AsyncSession
from sabot_web.errors import NotServed

if TYPE_CHECKING:
    from sabot_cli.at_table.running_table import RunningTable

log = logging.getLogger("sabot")


def offer_table(stack: ExitStack, held: ServiceFile, table: "RunningTable", people: ServedPeople) -> None:
    """Serve the table's API on a Unix socket while the stack is open.

    Without the extra ``serve``, or where the socket cannot be made, nobody attaches; the table runs all the
    same, and the log says why.
    """
    try:
        from sabot_serve.local_api import Owned
        from sabot_serve.local_service import LocalService
    except ImportError as error:
        log.info("no program can attach to this table: %s is not installed (pip extra serve)", error.name)
        return
    simulated = None if table.simulated is None else lambda role: table.simulated_person(role)
    owned = Owned(table.client, simulated is not None, False, table.checkpoints)
    try:
        made = LocalService(AsyncSession(table.run), people, table.record, held.path.parent, owned, simulated)
    except NotServed as error:
        log.warning("no program can attach to this table: %s", error)
        return
    service = stack.enter_context(made)
    held.publish(service.address, service.app.access.local_token)
