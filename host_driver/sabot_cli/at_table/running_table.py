"""One table while a command runs it: device, record, people and session."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sabot_cli.at_table.offered_table import offer_table
from sabot_cli.at_table.simulated_people import SimulatedPeople, simulated_people
from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, find_device, is_emulator, open_device
from sabot_cli.people_keys import newest_list
from sabot_cli.table_policies import policy_of
from sabot_cli.table_process import service_folder
from sabot_cli.table_records import checkpoint_lines, open_tables_record, wait_until_told
from sabot_driver import Client
from sabot_driver.serial_numbers import format_serial
from sabot_house.on_device import RevocationsKept
from sabot_serve.service_file import ServiceFile
from sabot_serve.table_people import ServedPeople
from sabot_session.acts import Act
from sabot_session.errors import NotAuthenticated
from sabot_session.needs import Need
from sabot_session.outcomes import ActDone
from sabot_session.people import PeopleRegister
from sabot_session.record import SqliteRecord
from sabot_session.round_history import Round, read_round
from sabot_session.rows import NumberedRow
from sabot_session.session import TableSession, random_nonce
from sabot_session.settlement_preview import with_preview
from sabot_session.threaded_session import ThreadedSession
from sabot_table.procedure import TableRole
from sabot_table.ruleset import RuleSet


def _nobody(role: TableRole) -> object:
    raise NotAuthenticated(f"there is no simulated {role} at this table yet")


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
    simulated_person: Callable[[TableRole], object] = _nobody
    """The simulated person of a role, with keys of the device, once there is one."""

    # -- as a terminal shows it: `TableFace` ----------------------------------------------------

    @property
    def own_client(self) -> Client:
        """The device's client: this program owns the device."""
        return self.client

    @property
    def boot_id(self) -> int:
        """The device's start at which this program came."""
        return 0 if self.client.peer is None else self.client.peer.boot_id

    @property
    def ends_with_us(self) -> bool:
        """Whether device and record exist only while this program runs."""
        return self.client.journal.path is None

    @property
    def failure(self) -> BaseException | None:
        """What ended the session, if anything did."""
        return self.run.failure

    def needs(self) -> list[Need]:
        """What must happen now."""
        return self.run.needs()

    def snapshot(self) -> Mapping[str, Any]:
        """The table as it stands."""
        found: Mapping[str, Any] = self.run.read(lambda session: session.snapshot())
        return found

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act."""
        return self.run.act(act_id, need_id, seen, credential, act)

    def rows(self, after: int, *kinds: str) -> Iterable[NumberedRow]:
        """Rows of the record after a number, of these kinds or all."""
        if not kinds:
            return self.record.rows(after)
        return [each for each in self.record.rows_of_kind(*kinds) if each.number > after]

    def round(self, round_id: int) -> Round:
        """A round, with what its wagers will pay if they are not settled."""
        found = read_round(self.record, round_id)
        shown: Round = self.run.read(lambda session: with_preview(session, found))
        return shown

    def commitment(self, shuffle_id: int) -> tuple[str, str] | None:
        """Commitment and nonce of a shuffle that has begun."""
        begun = self.run.read(lambda session: session.state.device.begun.get(shuffle_id))
        return None if begun is None else (begun.commitment, begun.nonce)

    def checkpoints(self) -> list[str]:
        """The newest signed checkpoints of record and journal."""
        return checkpoint_lines(self.client)


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
    offer: bool = False,
) -> Iterator[RunningTable]:
    """Connect to a table's device, open its record and run its session while the context lasts.

    ``rules`` gives the rule set, once the path of the record is known. ``place`` is another table than the
    device's own. At an emulated device simulated people act, unless ``real_people`` of the register are to.
    With ``offer`` other programs of this computer attach to the table meanwhile. `ServiceRunning` if another
    process runs it.
    """
    entry = find_device(state, options)
    with ExitStack() as stack:
        held = None
        if offer or not is_emulator(entry.url):  # an emulated device of this process is nobody else's
            held = stack.enter_context(ServiceFile(service_folder(state, entry)))
        client = stack.enter_context(open_device(state, options, owner=True, settings=settings))
        stack.enter_context(RevocationsKept(client, lambda: newest_list(state.user_files)))
        emulated = client.simulator and entry.simulator
        path = None
        if place is not None:
            path = place.record
        elif client.journal.path is not None:
            path = state.user_files.record_of(client.identity.serial, entry.simulator)
        chosen = rules(path)
        named = state.user_files.tables().get(place.name) if place is not None else None
        named = named or state.user_files.table_of(client.identity.serial, entry.simulator)
        policy = policy_of(state, named, chosen)
        if place is not None and place.takes_over:
            wait_until_told(client)
        takes_over = place is not None and place.takes_over
        record = open_tables_record(state, client, path, chosen, takes_over)
        stack.callback(record.close)
        simulated = simulated_people() if emulated and not real_people else None
        register = None if simulated else stack.enter_context(PeopleRegister(state.user_files.people))
        people = ServedPeople(register, None if simulated is None else simulated.register())
        name = entry.name or format_serial(client.identity.serial)
        if place is not None:
            name = place.name
        nonce = random_nonce if seed is None else seeded_nonce(seed)
        session = TableSession(chosen, record, people, table=name, nonce=nonce, policy=policy)
        people.dealer = lambda: session.state.dealer
        run = stack.enter_context(ThreadedSession(session, client, simulators_key=emulated))
        table = RunningTable(name, client, record, run, chosen, emulated, simulated, register)
        if offer and held is not None:
            offer_table(stack, held, table, people)
        yield table
