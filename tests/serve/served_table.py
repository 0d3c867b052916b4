"""A table on an emulated device of this process, served as ``sabot serve`` serves it, in a thread."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Client, connect
from sabot_driver.keyring import read_key
from sabot_driver.user_files import UserFiles
from sabot_serve.demonstration import Demonstration, demonstration
from sabot_serve.local_api import Owned
from sabot_serve.running import TableService
from sabot_serve.table_people import ServedPeople
from sabot_session.asyncio_session import AsyncSession
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_session.record import SqliteRecord
from sabot_session.rows import NumberedRow
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.attending_staff import AttendingStaff
from sabot_simulators.simulated_staff import SimulatedRegister
from sabot_table.procedure import TableRole
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

TIMEOUT_S = 120.0
PATIENCE_S = 120.0  # a limit for what fails, not a measure
PACE_S = 0.02
OTHERS = (TableRole.FLOOR, TableRole.SERVICE)
EVERYBODY = (TableRole.DEALER, *OTHERS)


class ServedTable:
    """A served table, as a test uses it."""

    def __init__(
        self,
        client: Client,
        run: ThreadedSession,
        serve: Callable[[int], TableService],
        shown: Demonstration,
        record: SqliteRecord,
    ) -> None:
        self.client = client
        self.run = run
        self._serve = serve
        self.service = serve(0)
        self.shown = shown
        self.record = record
        self.staff: AttendingStaff | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen."""
        self._thread = threading.Thread(target=self.service.run, daemon=True)
        self._thread.start()
        while not self.service.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """End the service; the table's session goes on."""
        self.service.stop()
        if self._thread is not None:
            self._thread.join()

    def restart(self) -> None:
        """Serve again at the same address."""
        self.service = self._serve(int(self.address.rpartition(":")[2]))
        self.start()

    def needs(self) -> list[Need]:
        return self.run.needs()

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Any) -> ActDone:
        return self.run.act(act_id, need_id, seen, credential, act)

    def dealer(self) -> str | None:
        found = self.run.read(lambda session: session.state.dealer)
        return None if found is None else str(found.person)

    @property
    def address(self) -> str:
        """Where it is served."""
        return self.service.address

    def enter_url(self) -> str:
        """An address by which one browser is let in."""
        return f"{self.address}/enter#{self.token()}"

    def token(self) -> str:
        return self.service.app.access.invite(time.time())

    def pin(self, person: str) -> str:
        return self.shown.shown[person][1]

    def badge(self, person: str) -> str:
        return self.shown.shown[person][0]

    def rows(self, *kinds: str) -> Sequence[NumberedRow]:
        return list(self.record.rows_of_kind(*kinds) if kinds else self.record.all_rows())

    def snapshot(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run.read(lambda session: session.snapshot())
        return found

    def wait(self, done: Callable[["ServedTable"], bool]) -> None:
        """Wait until something is so; AssertionError with the needs if it is not in a good while."""
        ends = time.monotonic() + PATIENCE_S
        while not done(self):
            if time.monotonic() > ends:
                raise AssertionError(f"needs {[each.words for each in self.needs()]}")
            time.sleep(0.02)

    def wait_need(self, kind: NeedKind) -> Need:
        """The need of this kind, once it is there."""
        found: list[Need] = []

        def there(table: "ServedTable") -> bool:
            found[:] = [each for each in table.needs() if each.kind is kind]
            return bool(found)

        self.wait(there)
        return found[0]

    def pull_cable(self, out: bool = True) -> None:
        """Pull the device's cable, or plug it in again."""
        port: Any = self.client.loop.transport
        port.port.bench.unplugged = out
        if out:
            port.port.close()

    def lamp(self) -> int:
        """What the lamp of the emulated machine shows (`sabot_firmware.hardware`)."""
        port: Any = self.client.loop.transport
        served = port.port.bench.served
        return int(served.call(lambda: served.device.machine.lamp))

    def cut_power(self) -> None:
        """Cut the emulated device's power and give it back."""
        port: Any = self.client.loop.transport
        port.port.bench.served.reboot()


@contextmanager
def served_table(
    tmp_path: Path,
    query: str = "seed=1",
    *,
    simulated: Sequence[TableRole] = OTHERS,
    pace_s: float = PACE_S,
    leave: Sequence[NeedKind] = (),
    record: SqliteRecord | None = None,
    seats: int = 2,
    game: str = "md-three-card-baccarat",
) -> Iterator[ServedTable]:
    """A served table on ``sim://?query``; simulated people leave some kinds of needs to the test."""
    rules = load(game)
    files = UserFiles(tmp_path)
    with ExitStack() as stack:
        record = record or stack.enter_context(SqliteRecord(None))
        client = stack.enter_context(connect(f"sim://?{query}", timeout=TIMEOUT_S))
        provision_simulator_keys(files, client, TIMEOUT_S)
        key = read_key(files.floor_key(client.identity.serial))
        shown = demonstration(key, int(time.time()))
        stack.callback(shown.register.close)
        people = ServedPeople(shown.register, SimulatedRegister(), shown.keys)
        session = TableSession(rules, record, people, table="T1")
        people.dealer = lambda: session.state.dealer
        run = stack.enter_context(ThreadedSession(session, client, simulators_key=True))

        def serve(port: int) -> TableService:
            kept = tmp_path / "browsers.json"
            owned = Owned(client, simulated_people=False, pages=True)
            return TableService(
                AsyncSession(run), people, record, port=port, browsers=kept, players_port=0, owned=owned
            )

        table = ServedTable(client, run, serve, shown, record)
        if simulated:
            wagers = {seat: made for seat, made in every_wager(rules).items() if seat <= seats}
            table.staff = AttendingStaff(table, client.url, key, wagers, simulated, pace_s)
            table.staff.leave = frozenset(leave)
            stack.callback(table.staff.close)
        stack.callback(table.stop)
        table.start()
        yield table
