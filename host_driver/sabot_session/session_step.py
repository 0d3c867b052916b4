"""What handlers use within one step of a session: the state, the procedure, rows and requests.

A step takes in one input, such as an act or an event, and commits all that follows from it (`session`).
Handlers of acts, reports of the device and ways of dealing work on a `SessionStep`. They change its state,
run actions of the procedure, write rows, and queue requests. They never commit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sabot_protocol.host.message_base import Request
from sabot_session.dealing_way import DealingWays
from sabot_session.device_reports import DEVICE, DeviceReports
from sabot_session.device_side import OVER, DeviceSide
from sabot_session.needs import NeedKind
from sabot_session.row_kinds import BY_NAME
from sabot_session.rows import Actor, Authentication, DeviceEventId, Json, NumberedRow, Record, Row
from sabot_session.session_state import Announcement, OutboxCommand, restore
from sabot_session.snapshot import round_snapshot
from sabot_session.table_needs import TableNeeds
from sabot_session.table_rows import KINDS, UNWRITTEN, UNWRITTEN_OF, clause_of, row_data
from sabot_table.house_policy import HousePolicy
from sabot_table.procedure import Attribution, TableProcedure, TableRole
from sabot_table.ruleset import RuleSet

OUTSIDE_ROUNDS = frozenset(
    {
        "receive",
        "inspect",
        "verify",
        "spread",
        "spread_idle",
        "wash",
        "stack",
        "stack_unwashed",
        "accept_prepared",
        "decline_cut",
        "cut",
        "order_recut",
        "place_cover",
        "load",
        "burn",
        "open_table",
        "close_table",
        "idle",
        "player_arrives",
        "change_method",
        "play_one_pack",
        "repaired",
        "verify_shuffle",
        "deliver",
        "start_shuffle",
        "finish_shuffle",
        "remove",
        "identify",
    }
)
"""Actions whose rows belong to no round, even if a round is in play."""
VOIDING = ("face_up_card", "too_few_cards", "wrong_number", "shoe_failed", "determine")
"""Actions that may void the round. If one does, a row `void` follows its own row."""


class SessionStep:
    """The state of a session, and what one step adds to it before the commit.

    ``state`` and ``procedure`` are public for handlers. ``ways``, ``machine`` and ``reports`` work on the
    same two objects: how the table deals, the machine's side, and what events and answers mean.
    """

    def __init__(
        self,
        rules: RuleSet,
        record: Record,
        saved: str,
        *,
        table: str,
        policy: HousePolicy | None,
        nonce: Callable[[int], bytes],
    ) -> None:
        """Start from ``saved``, the state as JSON. Raises `BadSavedSession` if it cannot be continued."""
        self.rules = rules
        self.name = table
        self._record = record
        self._policy = policy
        self._nonce = nonce
        self._now_s = 0
        self._load(saved)

    def _load(self, saved: str) -> None:
        """Replace the state by a saved one, and forget everything of the step."""
        self.state = restore(self.rules, saved)
        self.procedure = TableProcedure.restore(self.rules, self.state.memory.save(), self._policy)
        self.state.memory = self.procedure.table.memory
        self._make_parts()
        self._new_journal_at: int | None = None  # set if this step changes to another machine's journal
        self._rows: list[Row] = []
        self._actors: dict[tuple[str, TableRole], Actor] = {}
        self._round_before_action = 0
        self.event: DeviceEventId | None = None
        """The event of the device that this step takes in; None for any other input."""

    def _make_parts(self) -> None:
        self.ways = DealingWays(self.state, self.procedure)
        self.machine = DeviceSide(self.state, self.procedure, self._nonce, self.ways)
        self.reports = DeviceReports(self)
        self._needs = TableNeeds(self.state, self.procedure, self.machine, self.ways)

    def needed(self) -> set[NeedKind]:
        """The kinds of needs that follow from the state as it is now, before the step ends."""
        return {each.kind for each in self._needs.forms()}

    @property
    def takes_notes(self) -> bool:
        """Whether the rule text and the house policy allow notes of the floor."""
        text = self.rules.fixed.floor
        return text.notes if self._policy is None else self._policy.floor_terms(text).notes

    # -- who acts -------------------------------------------------------------------------------

    def acting(self, actor: Actor) -> None:
        """Name the actor of this step's actions by that person in that role."""
        self._actors[actor.person, actor.role] = actor

    def actor(self, by: Attribution) -> Actor:
        """The actor that `acting` or `dealer_by` named for this person and role in this step."""
        return self._actors[by.who, by.role]

    def dealer_by(self, now_s: int) -> Attribution | None:
        """Attribute something that the machine sensed to the signed-in dealer; None if there is none."""
        dealer = self.state.dealer
        if dealer is None:
            return None
        how = dealer.how if dealer.how is Authentication.SIMULATED else Authentication.SIGNED_IN
        self._actors.setdefault(
            (dealer.person, TableRole.DEALER), Actor(dealer.person, TableRole.DEALER, how)
        )
        return Attribution(dealer.person, TableRole.DEALER, now_s)

    @staticmethod
    def device_by(now_s: int) -> Attribution:
        """Attribute something to the device: its events and answers."""
        return Attribution("device", TableRole.DEVICE, now_s)

    # -- requests to the device -----------------------------------------------------------------

    def queue(self, request: Request[Any], role: TableRole | None = None, act_id: str = "") -> None:
        """Append a request to the outbox.

        ``role``: the device executes it only with a credential of this role. ``act_id`` is then the act
        whose person gave that credential.
        """
        person = next((who for who, _ in self._actors), "") if role else ""
        self.state.outbox.append(
            OutboxCommand(
                self.state.next_command, request.NAME, request.pack().hex(), role or "", person, act_id
            )
        )
        self.state.next_command += 1

    def set_game(self, act_id: str) -> None:
        """Queue the requests that set the machine to this table's game, with the floor's credential.

        Queues nothing if the machine is set to it, has not told its game yet, or may not be used.
        """
        if self.ways.machine_serves():
            for request in self.machine.game_requests():
                self.queue(request, TableRole.FLOOR, act_id)

    def machine_changed(self, journal_at: int) -> None:
        """Continue with another machine, whose `DeviceState` the caller has put into the state.

        The commit of this step sets the place in the driver's journal to ``journal_at``.
        """
        self._make_parts()
        self._new_journal_at = journal_at

    # -- actions of the procedure and rows ------------------------------------------------------

    def do(
        self,
        action: Callable[..., Any],
        by: Attribution,
        *args: Any,
        told: Mapping[str, Json] | None = None,
        **details: Any,
    ) -> Any:
        """Run an action of the procedure, and write a row for each entry that it adds to the log.

        ``told`` has data for these rows that the procedure does not know, such as a bag's number. Raises
        what the action raises; the step then fails as a whole.
        """
        playing = self.procedure.table.memory.round
        self._round_before_action = 0 if playing is None else playing.round_id
        result = action(by, *args, **details)
        self._write_log(told or {})
        return result

    def finish_round(self, by: Attribution) -> None:
        """Settle the round if its cards are known and its wagers are not settled, then collect its cards.

        Does nothing if no round is at that point.
        """
        table = self.procedure.table
        if table.state == "settling":
            self.reports.settle_by(by)
        if table.state in OVER:
            self.collect_cards(by)

    def collect_cards(self, by: Attribution) -> None:
        """The cards of a round that is over are off the layout. The snapshot keeps it as the last round."""
        last = round_snapshot(self)
        self.do(self.procedure.round_end.collect, by)
        self.state.round = None
        if last is not None:
            self.state.last_round = last

    def row(
        self,
        kind: str,
        actor: Actor,
        data: Mapping[str, Json] | None = None,
        clause: str = "",
        round_id: int = 0,
    ) -> None:
        """Write a row that follows from no entry of the procedure's log."""
        self._rows.append(
            Row(kind, self._now_s, actor, data or {}, round_id, clause, follows=self._event_of(actor))
        )

    @property
    def next_row(self) -> int:
        """The number that the next row of this step gets."""
        return self.state.rows + len(self._rows) + 1

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """The committed rows of a round."""
        return self._record.round_rows(round_id)

    def round_of_row(self, number: int) -> int:
        """The round of a committed row; 0 if it belongs to no round, or there is no such row."""
        found = self._record.rows(number - 1, 1)
        return found[0].row.round_id if found and found[0].number == number else 0

    def _event_of(self, actor: Actor) -> DeviceEventId | None:
        """The event that a row of this actor follows from; None unless the actor's act was sensed.

        A dealer who exposed the hands with the machine's button is the actor of later rows too, such as
        `settle`. Those rows name the event of that press, not the event of the step that writes them.
        """
        if actor.how is not Authentication.SENSED:
            return None
        progress = self.state.round
        exposed = progress is not None and progress.exposed_by == actor
        return progress.exposed_event if exposed and progress is not None else self.event

    def _write_log(self, told: Mapping[str, Json]) -> None:
        """Empty the procedure's log into rows, and its orders into the state.

        Of the orders only ``announce`` is used. What the others ask for follows from the state.
        """
        table = self.procedure.table
        for order in table.take_orders():
            if order.do == "announce":
                self.state.announcement = Announcement(str(order.details["text"]), table.state)
        playing = table.memory.round
        for by, what in table.take_log():
            action, _, pack = what.partition(" ")
            if action == "remove" and "destination" not in told:
                self.state.leaving.append(int(pack))  # the row comes when the floor says where the pack goes
                continue
            if action in UNWRITTEN or (by.role, action) in UNWRITTEN_OF:
                continue
            actor = DEVICE if by.role is TableRole.DEVICE else self._actors[by.who, by.role]
            if action == "reveal" and actor is DEVICE:
                action = "cards_read"
            elif action == "reveal" and playing is not None and not playing.cards_known:
                continue  # the act that exposed the hands has written its row
            self._log_row(action, pack, actor, by.at_s, told)
            if action in VOIDING and playing is not None and playing.void_clause:
                rule = table.rule(action)
                signed = rule is not None and rule.countersign and by.role is TableRole.DEALER
                self._log_row("void", "", actor, by.at_s, {**told, "countersign": signed})

    def _log_row(self, action: str, what: str, actor: Actor, at_s: int, told: Mapping[str, Json]) -> None:
        """Write the row of an action. ``what`` is the log's second word: a pack's id, or a half."""
        pack_id = int(what) if what.isdigit() else 0
        table = self.procedure.table
        playing, kind = table.memory.round, KINDS.get(action, action)
        fields = BY_NAME[kind].data.model_fields
        known = {name: value for name, value in told.items() if name in fields}
        data = row_data(table, action, pack_id, playing, known)
        # An action that ends the round leaves none: its row still belongs to the round before.
        round_id = self._round_before_action if playing is None else playing.round_id
        round_id = 0 if action in OUTSIDE_ROUNDS else round_id
        clause = clause_of(table, action, playing)
        self._rows.append(Row(kind, at_s, actor, data, round_id, clause, follows=self._event_of(actor)))
