"""The table closes, or its dealer signs out, while the machine takes a pack out of the tray.

The machine shuffles that pack, and the record has it elsewhere: in the discard rack, or in a round that is
over. After the opening people must be asked for what is missing, and every round must find its way.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.session.acted_table import ActedTable
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_driver.errors import SabotError
from sabot_protocol.host import messages as m
from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_session.session import TableSession
from sabot_simulators.simulated_staff import FLOOR, SimulatedPerson
from sabot_table.errors import RuleViolation
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

FEEDING, STORED, IDLE = m.ShufflerState.FEEDING, m.ShufflerState.STORED, m.ShufflerState.IDLE
HOUR_S = 3600


# -- a scripted machine -------------------------------------------------------------------------


def played() -> tuple[ActedTable, int]:
    """A round is over, and its pack lies beside the tray; the pack."""
    table = ActedTable()
    table.ready()
    table.machine.lay_in = False
    table.round()
    return table, table.session.procedure.table.round.pack_id


def take_in(table: ActedTable, pack_id: int, *, counted: bool = True) -> None:
    """The machine takes the pack that it was asked to shuffle; then the tray is watched again."""
    ((shuffle_id, _),) = table.machine.committed.items()
    table.machine.tell(m.ShufflerChanged(FEEDING, pack_id))
    table.machine.lay_in = True
    if counted:
        count(table, pack_id, shuffle_id)


def count(table: ActedTable, pack_id: int, shuffle_id: int) -> None:
    """The machine has shuffled the pack."""
    table.machine.tell(m.DeckCounted(pack_id, shuffle_id, 52, 52))
    table.machine.tell(m.ShufflerChanged(STORED, pack_id))
    table.machine.stored = pack_id


def play_on(table: ActedTable, rounds: int = 3) -> None:
    """Rounds with both packs; nothing that the machine tells is against the rules."""
    for _ in range(rounds):
        table.tick()
        table.prepare()
        table.tick()
        table.round(None)
    assert table.rows("unexplained") == []


@pytest.mark.rule("MD3 3.B")
def test_a_pack_that_was_shuffled_at_a_closed_table_comes_out_before_the_next_round() -> None:
    """The next round's pack was fed while the record had this one in the rack: no round could begin then."""
    table, first = played()
    table.give(acts.CloseTable())
    take_in(table, first)
    assert table.session.procedure.table.pack(first).state == "discards"
    before = len(table.rows("start_shuffle"))
    table.give(acts.OpenTable())
    begun = table.rows("start_shuffle")[before:]
    assert [(each.data["pack_id"], each.data["shuffle_id"]) for each in begun] == [(first, 3)]
    assert table.kinds()[0] is NeedKind.EMPTY_MACHINE
    play_on(table)


@pytest.mark.rule("MD3 3.B")
def test_people_who_play_first_empty_the_machine_after_the_round() -> None:
    table, first = played()
    table.give(acts.CloseTable())
    take_in(table, first)
    table.give(acts.OpenTable())
    table.tick()
    table.round(None)
    assert table.machine.in_shoe == first
    assert table.machine.stored == 0  # the round's pack is not fed: it would come out again
    assert table.need(NeedKind.BETS) is None
    assert table.need(NeedKind.FEED) is None
    assert table.need(NeedKind.EMPTY_MACHINE) is not None
    play_on(table)


def test_a_pack_that_is_counted_after_the_opening_is_played_without_another_shuffle() -> None:
    table, first = played()
    table.give(acts.CloseTable())
    take_in(table, first, counted=False)
    table.give(acts.OpenTable())
    assert table.session.procedure.table.pack(first).state == "shuffling"
    count(table, first, 3)
    assert table.session.procedure.table.pack(first).state == "shuffled"
    assert table.kinds() == [NeedKind.BETS]
    play_on(table)
    assert "empty_machine" not in table.machine.asked


def test_a_table_that_opens_before_the_machine_tells_of_the_feeding() -> None:
    """The answer to `shuffle_with` comes to the closed table, and the events to the open one."""
    table, first = played()
    table.machine.lay_in = True
    table.session.tick(table.now_s)
    looks = table.session.take_command()  # at the tray
    assert looks is not None
    table.machine._answer(looks)
    command = table.session.take_command()
    assert command is not None
    assert command.message.NAME == m.ShuffleWith.NAME
    table.session.act("close", None, table.session.cursor, "anna", acts.CloseTable(), table.now_s)
    table.session.act("open", None, table.session.cursor, "anna", acts.OpenTable(), table.now_s)
    table.machine._answer(command)
    table.machine.run()
    assert table.session.procedure.table.pack(first).state == "shuffled"
    play_on(table)


def test_nobody_feeds_a_rounds_pack_while_no_dealer_is_signed_in() -> None:
    """The machine took the pack, and the rules refused it: nobody was there who had collected the cards."""
    table, first = played()
    table.give(acts.SignOut())
    table.machine.lay_in = True
    table.tick()
    table.tick()
    assert table.machine.stored == 0
    assert table.need(NeedKind.FEED) is None
    table.give(acts.SignIn(), "cleo")
    table.tick()
    assert table.machine.stored == first
    assert table.rows("collect")[-1].actor.person == "cleo"
    play_on(table)


@pytest.mark.parametrize("counted", [False, True])
def test_a_dealer_signs_out_while_the_machine_takes_the_pack(counted: bool) -> None:
    table, first = played()
    table.give(acts.SignOut())
    take_in(table, first, counted=counted)
    assert table.kinds() == [NeedKind.SIGN_IN]
    table.give(acts.SignIn(), "cleo")
    assert table.session.procedure.table.pack(first).state == "shuffling"
    if counted:
        assert table.need(NeedKind.EMPTY_MACHINE) is not None
    else:
        count(table, first, 3)
    play_on(table)


@pytest.mark.rule("MD3 3.C")
def test_hours_that_end_while_a_pack_is_fed_do_not_keep_the_other_pack_out_of_the_rack() -> None:
    """The record had the pack in the rack until it left the table, and the other pack was fed meanwhile."""
    table = ActedTable()
    table.ready()
    for pack in table.session.procedure.table.packs():
        pack.opened_s += 0 if pack.pack_id == table.machine.in_shoe else HOUR_S
    table.machine.lay_in = False
    table.round()
    first = table.session.procedure.table.round.pack_id
    table.now_s += 8 * HOUR_S
    take_in(table, first)
    table.tick()
    assert table.need(NeedKind.EMPTY_MACHINE) is not None
    table.round(None)
    table.tick()
    assert table.need(NeedKind.EMPTY_MACHINE) is not None
    table.prepare()
    assert [each.data["pack_id"] for each in table.rows("remove")] == [first]
    play_on(table)


# -- an emulated machine ------------------------------------------------------------------------


class Interruption:
    """Closes the table in the session's own thread at a request or an event, or as soon as it may later."""

    def __init__(self, session: TableSession, at: str, number: int) -> None:
        """``at``: the shuffle is `asked` for, `feeding` or `counted`. ``number``: the n-th shuffle."""
        self._session, self._at, self._number = session, at, number
        self._shuffles = 0
        self._due = self.done = False
        self._take, self._hear = session.take_command, session.device_event
        session.take_command = self._take_command  # type: ignore[method-assign]
        session.device_event = self._device_event  # type: ignore[method-assign]

    def _take_command(self) -> Any:
        command = self._take()
        if command is not None and command.message.NAME == m.ShuffleWith.NAME:
            self._shuffles += 1
            self._reached("asked")
        return command

    def _device_event(self, at: int, message: Any, boot: int, number: int, now_s: int) -> None:
        self._hear(at, message, boot, number, now_s)
        if isinstance(message, m.ShufflerChanged):
            self._reached(message.state.name.lower())
        elif isinstance(message, m.DeckCounted):
            self._reached("counted")

    def _reached(self, what: str) -> None:
        self._due = self._due or (self._shuffles, what) == (self._number, self._at)
        if not self._due or self.done:
            return
        who, session = SimulatedPerson(FLOOR), self._session
        try:
            session.act("interruption", None, session.cursor, who, acts.CloseTable(), session._now_s)
        except (SabotError, RuleViolation):
            return  # not in a round
        self.done = True


def at_rest(table: SimulatedTable) -> bool:
    """Whether the machine has finished what it was asked for."""
    device = table.run.read(lambda session: session.state.device)
    waits = table.run.read(lambda session: session.state.outbox)
    return not waits and not device.fed and device.shuffler in (STORED, IDLE)


ONE_PACK = 'extends = "md-three-card-baccarat"\nname = "one-pack"\n[cards]\nalternating = false\n'
SETTINGS = {
    "md-three-card-baccarat": ("seed=1", 3),
    "one-pack": ("seed=1", 3),
    "md-mini-baccarat": ("seed=1&capacity=batch", 6),
}
"""The emulated device by the rule set, and how many rounds follow."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number", "at", "rests"),
    [
        ("md-three-card-baccarat", 2, "asked", True),
        ("md-three-card-baccarat", 3, "asked", True),
        ("md-three-card-baccarat", 3, "asked", False),
        ("md-three-card-baccarat", 3, "feeding", True),
        ("md-three-card-baccarat", 3, "counted", True),
        ("one-pack", 2, "asked", True),
        ("one-pack", 2, "feeding", False),
        ("md-mini-baccarat", 2, "asked", True),  # the first batch comes out of the machine meanwhile
        ("md-mini-baccarat", 3, "feeding", True),
    ],
)
def test_play_goes_on_after_the_opening(tmp_path: Path, name: str, number: int, at: str, rests: bool) -> None:
    """``rests``: the table opens again only when the machine has finished."""
    operator = tmp_path / "one-pack.toml"
    operator.write_text(ONE_PACK)
    rules, (query, rounds) = load(operator if name == "one-pack" else name), SETTINGS[name]
    with simulated_table(tmp_path, query, rules=rules, method=DealingMethod.AUTOMATED_SHOE) as table:
        table.staff.cover_above = 400 if name == "md-mini-baccarat" else None
        hook = table.run.read(lambda session: Interruption(session, at, number))
        if name != "md-mini-baccarat":  # each shuffle after the first ones follows a round
            played = number - (2 if rules.cards.alternating else 1)
            table.play(lambda table: len(table.rows("open_bets")) >= played)
            table.play(lambda table: hook.done, frozenset({NeedKind.BETS}))
        table.play(lambda table: hook.done)
        if rests:
            table.play(at_rest, frozenset(NeedKind))
        table.rounds(len(table.rows("collect")) + rounds)
        assert [each.row.data for each in table.rows("unexplained")] == []
