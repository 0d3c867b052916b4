"""The program ends at every single request of a round, before and after it, and another one goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.driver.leading import Led, led
from tests.sweeps import Amount

from sabot_cli.playing.recorded_table import RecordedTable
from sabot_cli.playing.round_play import RoundPlay
from sabot_cli.playing.shuffle_proofs import ShuffleProofs
from sabot_cli.playing.table_record import TableRecord
from sabot_driver import Client

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The program is gone from here on."""


def another(table: Led, record: TableRecord) -> RoundPlay:
    """A new program at the same table: it knows what is on record, and the journal."""
    old = table.table
    return type(old)(
        table.client,
        RecordedTable(old.desk.rules, table.told, record),
        ShuffleProofs(table.client, table.told, record, old.timeout, 1),
        old.timeout,
        old.credential,
        old.book,
        old.card_entry,
        table.played.append,
        patience_s=15.0,
    )


def play_on(rounds: RoundPlay) -> None:
    """Open the table and play one round, the one in play if there is one."""
    rounds.open_table()
    rounds.sit()
    if rounds.table_state == "between":
        rounds.prepare()
    rounds.play_round()


@pytest.mark.parametrize("rules", ["md-three-card-baccarat", "md-mini-baccarat"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_round_goes_on_wherever_the_program_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, after: bool, amount: Amount
) -> None:
    record = TableRecord(tmp_path / "table.db")
    ask = Client.ask
    with led(tmp_path, rules, "seed=9", seats=1, record=record) as table:
        play_on(table.table)
        for number in range(1, 60, amount(6, full=1)):
            rounds = another(table, record)
            rounds.open_table()
            rounds.prepare()
            left = [number]

            def dying(self: Client, *arguments: Any, left: list[int] = left) -> Any:
                left[0] -= 1
                if left[0] == 0 and not after:
                    raise Killed
                answer = ask(self, *arguments)
                if left[0] == 0:
                    raise Killed
                return answer

            monkeypatch.setattr(Client, "ask", dying)
            try:
                rounds.play_round()
                break  # so many requests a round does not have
            except Killed:
                monkeypatch.setattr(Client, "ask", ask)
            saved = record.load()
            assert saved is not None
            in_play = json.loads(saved.state)["round"]
            play_on(another(table, record))
            if in_play is not None:
                assert table.played[-1].round_id == in_play["round_id"]
        monkeypatch.setattr(Client, "ask", ask)
        assert number > 10, "a round has more requests than these"
        assert [each.void_reason for each in table.played] == [None] * len(table.played)
        ids = [each.round_id for each in table.played]
        assert sorted(set(ids)) == list(range(1, max(ids) + 1)), "no round is left out"
    steps = ("open_bets", "settle", "collect", "return_bets")
    course = [what for _, _, _, what in record.log() if what in steps]
    record.close()
    assert course == ["open_bets", "settle", "collect"] * max(ids), "and none is settled twice"
