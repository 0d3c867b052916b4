"""One table while a command runs it: device, record, people and session."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sabot_cli.at_table.simulated_people import SimulatedPeople, simulated_people
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, find_device, open_device
from sabot_driver import Client
from sabot_driver.serial_numbers import format_serial
from sabot_session.people import PeopleRegister
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import open_record
from sabot_session.session import People, TableSession, random_nonce
from sabot_session.threaded_session import ThreadedSession
from sabot_table.ruleset import RuleSet

QUIET_S = 0.5  # a device that has told nothing for so long has told everything


@dataclass
class RunningTable:
    """What a face of a table needs."""

    name: str
    client: Client
    record: SqliteRecord
    run: ThreadedSession
    rules: RuleSet
    emulated: bool
    """Whether the device proved that it is emulated, and its key comes from the simulators' store."""
    simulated: SimulatedPeople | None
    """The simulated people, if only those act here."""
    people: PeopleRegister | None


@dataclass(frozen=True)
class TablePlace:
    """A table by its name and record, where the device does not tell them: a machine that is swapped in."""

    name: str
    record: Path | None
    takes_over: bool = False
    """Another computer ran the table: what the device still tells of that time is not this record's."""


def seeded_nonce(seed: int) -> Callable[[int], bytes]:
    """Our part in a shuffle's chance, the same in every run with this seed; for emulated devices."""
    return lambda shuffle_id: hashlib.sha256(b"sabot nonce %d %d" % (seed, shuffle_id)).digest()


@contextmanager
def run_table(
    state: CliContext,
    options: DeviceOptions,
    rules: Callable[[Path | None], RuleSet],
    *,
    real_people: bool,
    settings: list[tuple[str, str]] | None = None,
    seed: int | None = None,
    place: TablePlace | None = None,
) -> Iterator[RunningTable]:
    """Connect to a table's device, open its record and run its session while the context lasts.

    ``rules`` gives the rule set, once the path of the record is known. ``place`` is another table than the
    device's own. At an emulated device simulated people act, unless ``real_people`` of the register are to.
    """
    entry = find_device(state, options)
    with ExitStack() as stack:
        client = stack.enter_context(open_device(state, options, owner=True, settings=settings))
        emulated = client.simulator and entry.simulator
        path = None
        if place is not None:
            path = place.record
        elif client.journal.path is not None:
            path = state.user_files.record_of(client.identity.serial, entry.simulator)
        chosen = rules(path)
        if place is not None and place.takes_over:
            for _ in client.events(0, timeout=QUIET_S):
                pass  # until the device has told everything
        own = client.journal.path is None or path is None or path.stem == f"{client.journal.path.stem}.table"
        record, migrated = open_record(
            path,
            chosen,
            client.journal,
            int(time.time()),
            used_before=not own or (place is not None and place.takes_over),
        )
        stack.callback(record.close)
        if migrated is not None:
            words = f"the record of an older program was taken over: {migrated.rows} rows; its file is kept"
            state.output.tell("migrated", f"{words} as {migrated.kept.name}", kept=str(migrated.kept))
        simulated = simulated_people() if emulated and not real_people else None
        register = None if simulated else stack.enter_context(PeopleRegister(state.user_files.people))
        people: People
        if simulated is not None:
            people = simulated.register()
        else:
            assert register is not None
            people = register
        name = entry.name or format_serial(client.identity.serial)
        if place is not None:
            name = place.name
        nonce = random_nonce if seed is None else seeded_nonce(seed)
        session = TableSession(chosen, record, people, table=name, nonce=nonce)
        run = stack.enter_context(ThreadedSession(session, client, simulators_key=emulated))
        yield RunningTable(name, client, record, run, chosen, emulated, simulated, register)
