"""A table of people with badges at a scripted machine: fast tests of acts, without threads and ports."""

from collections.abc import Callable, Mapping

from tests.session.scripted_machine import ScriptedMachine

from sabot_driver import Credential
from sabot_protocol.host.messages import Role
from sabot_session import acts
from sabot_session.acts import Act
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_session.people import Authenticated
from sabot_session.record import SqliteRecord
from sabot_session.rows import Authentication, Row
from sabot_session.session import TableSession
from sabot_table.house_policy import parse_policy
from sabot_table.procedure import TableRole
from sabot_table.ruleset import load

NOW_S = 1_790_000_000
ROLES = {
    "anna": frozenset({TableRole.FLOOR}),
    "ben": frozenset({TableRole.DEALER}),
    "cleo": frozenset({TableRole.DEALER, TableRole.FLOOR}),
    "sven": frozenset({TableRole.SERVICE}),
}
BEN = {TableRole.DEALER: "ben", TableRole.FLOOR: "anna", TableRole.SERVICE: "sven"}
ANTES: Mapping[int, Mapping[str, int]] = {1: {"ante": 2000, "tie": 500}, 3: {"ante": 4000}}
HANDS = ["KS 9H 2D", "4S 4H TD", "QS 7H AC"]  # 1, 8 and 8 points


class Register:
    """People by name, all with badge and PIN; a name that begins with "simulated" is a simulated person's."""

    def authenticate(self, shown: object, at_s: int) -> Authenticated:
        """The person of this name."""
        name = str(shown)
        if name.startswith("simulated"):
            return Authenticated(name, frozenset(TableRole), Authentication.SIMULATED)
        return Authenticated(
            name, ROLES[name], Authentication.BADGE_AND_PIN, key=Credential(Role.FLOOR, bytes(32))
        )


class ActedTable:
    """A session with a scripted machine; dealer, floor and service do what they are told."""

    def __init__(
        self, rules: str = "md-three-card-baccarat", policy: str = "", record: SqliteRecord | None = None
    ) -> None:
        self.now_s = NOW_S
        ruleset = load(rules)
        self.record = record or SqliteRecord(None)
        self.house = parse_policy(policy, ruleset) if policy else None
        self._session: Callable[[], TableSession] = lambda: TableSession(
            ruleset, self.record, Register(), policy=self.house, nonce=lambda _: bytes(32)
        )
        self.session = self._session()
        self.machine = ScriptedMachine(self.session, lambda: self.now_s)
        self.machine.hands = list(HANDS)
        self._number = 0

    def restart(self) -> None:
        """The program is killed and started again."""
        before, self.session = self.machine, self._session()
        before.session = self.session
        left = self.session.open_command()
        assert left is None

    def give(self, act: Act, by: str = "", need: Need | None = None) -> ActDone:
        """Give an act as the first role that may, or as somebody; the machine goes on as far as it can."""
        self._number += 1
        who = by or BEN[(act.ROLES if need is None else need.roles)[0]]
        need_id, seen = (None, self.session.cursor) if need is None else (need.id, need.seen)
        done = self.session.act(f"act {self._number}", need_id, seen, who, act, self.now_s)
        self.machine.run()
        return done

    def tick(self, seconds: int = 0) -> None:
        """Time passes."""
        self.now_s += seconds
        self.session.tick(self.now_s)
        self.machine.run()

    def need(self, kind: NeedKind) -> Need | None:
        """The need of this kind; None if there is none."""
        return next((each for each in self.session.needs() if each.kind is kind), None)

    def kinds(self) -> list[NeedKind]:
        """The kinds of all needs."""
        return [each.kind for each in self.session.needs()]

    def ready(self) -> None:
        """Open the table, sign the dealer in, bring and prepare the packs, until bets can be closed."""
        self.machine.link()
        for act, by in ((acts.OpenTable(), "anna"), (acts.SignIn(), "ben")):
            self.give(act, by)
        self.prepare()
        assert self.need(NeedKind.BETS) is not None, [each.words for each in self.session.needs()]

    def prepare(self) -> None:
        """Bring and prepare packs, as long as the table asks for it."""
        bags = 0
        while True:
            need = next((each for each in self.session.needs() if each.kind in PACKS), None)
            if need is None:
                return
            bags += 1
            assert bags < 40, need
            if need.kind is NeedKind.RECEIVE_PACK:
                self.give(acts.ReceivePack(str(need.details["back"]), f"B{bags}"), need=need)
            elif need.kind is NeedKind.REMOVE_PACK:
                data = {"pack_id": need.details["pack_id"], "reason": need.details["reason"]}
                self.give(acts.parse_act("remove_pack", data), need=need)
            elif need.kind is NeedKind.PREPARE_PACK:
                step = acts.parse_act(need.acts[0], {"pack_id": need.details["pack_id"]})
                self.give(step, need=need)
            else:
                data = {"pack_id": need.details["pack_id"]} if "pack_id" in need.details else {}
                self.give(acts.parse_act(need.acts[0], data), need=need)

    def bet(self, wagers: Mapping[int, Mapping[str, int]] | None = ANTES) -> None:
        """No more bets."""
        self.give(acts.NoMoreBets(wagers))

    def round(self, wagers: Mapping[int, Mapping[str, int]] | None = ANTES) -> None:
        """Play a round until its wagers are settled."""
        self.bet(wagers)
        self.give(acts.Expose())

    def rows(self, *kinds: str) -> list[Row]:
        """Rows of these kinds; all without one."""
        found = self.record.rows_of_kind(*kinds) if kinds else self.record.all_rows()
        return [each.row for each in found]


PACKS = (
    NeedKind.RECEIVE_PACK,
    NeedKind.REGISTER_PACK,
    NeedKind.PREPARE_PACK,
    NeedKind.SET_GAME,
    NeedKind.REMOVE_PACK,
    NeedKind.ORDER_SHUFFLE,
    NeedKind.EMPTY_MACHINE,
)
