"""Whether the wall shows each row of tables' files once: from what its pages are told, against the files.

The files are read by SQLite alone. The wall computes every hash of the archive again and counts rows.
"""

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from sabot_floor.names import DEVICE, RECORD
from sabot_serve.service_client import ServiceClient
from sabot_simulators.floor.table_files import EVERY_ROW, TableFiles

CHECK_S = 1800.0
OPENED = "SELECT round_id FROM rows WHERE kind = 'open_bets' ORDER BY round_id DESC"
Chains = dict[tuple[str, str], list[tuple[int, str]]]
"""Of each table and chain: for each source the number of rows, and the hash of the newest one."""


def wrong_on_wall(client: ServiceClient, tables: Sequence[TableFiles], up_to: int = EVERY_ROW) -> list[str]:
    """What the wall shows otherwise than the tables' files have it: rows or rounds that are lost, or twice.

    ``up_to`` is the newest row of each file that counts.
    """
    checked = _checked(client)
    found = [] if not checked["wrong"] else [f"the wall finds {checked['wrong']} chains wrong"]
    apart = checked["conflicts"], checked["quarantined"]
    if any(apart):
        found.append(f"the wall tells {apart[0]} rows kept apart, {apart[1]} messages in quarantine")
    shown: Chains = {}
    for each in checked["sources"]:
        shown.setdefault((each["table"], each["chain"]), []).append((each["rows"], each["hash"]))
    for table in tables:
        for chain, there in _in_files(table, up_to).items():
            on_wall = shown.get((table.name, chain), [])
            if on_wall != [there]:
                rows = " and ".join(str(count) for count, _ in on_wall) or "no"
                found.append(f"{table.name}: the wall shows {rows} rows of {chain}, the file has {there[0]}")
        found += _wrong_rounds(client, table)
    return found


def _checked(client: ServiceClient) -> dict[str, Any]:
    """The wall's own check of every chain, as its page of evidence shows it."""
    client.post("/api/evidence/check", {})
    ends = time.monotonic() + CHECK_S
    while (told := client.get("/api/evidence"))["running"]:
        if time.monotonic() > ends:
            raise RuntimeError("the wall's check of the evidence does not end")
        time.sleep(0.2)
    if told["failed"]:
        raise RuntimeError(f"the wall cannot check the evidence: {told['failed']}")
    checked: dict[str, Any] = told["checked"]
    return checked


def _in_files(table: TableFiles, up_to: int) -> dict[str, tuple[int, str]]:
    with contextlib.closing(sqlite3.connect(table.record_path)) as db:
        query = "SELECT COUNT(*), lower(hex(hash)), MAX(number) FROM rows WHERE number <= ?"
        record = db.execute(query, (up_to,)).fetchone()
    with contextlib.closing(sqlite3.connect(table.journal_path)) as db:
        query = "SELECT COUNT(*), lower(hex(hash)), MAX(link) FROM chain WHERE link <= ?"
        device = db.execute(query, (up_to,)).fetchone()
    return {DEVICE: device[:2], RECORD: record[:2]}


def _wrong_rounds(client: ServiceClient, table: TableFiles) -> list[str]:
    """The wall's newest rounds of a table against the record's: the same ones, each once."""
    told = client.get("/api/rounds", table=table.name)
    shown = [each["round_id"] for each in told["rounds"]]
    with contextlib.closing(sqlite3.connect(table.record_path)) as db:
        played = [round_id for (round_id,) in db.execute(OPENED)]
    if told["more"]:
        played = played[: len(shown)]
    if sorted(shown, reverse=True) == played:
        return []
    return [f"{table.name}: the wall shows {len(shown)} rounds, the record has {len(played)}"]
