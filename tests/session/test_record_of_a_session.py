"""What a session wrote to disk tells every round that it played, and where its packs are."""

import json
from pathlib import Path

import pytest
from tests.session.simulated_table import simulated_table

from sabot_driver.serial_numbers import parse_serial
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit
from sabot_session import row_data as d
from sabot_session.custody import Where, custody_of
from sabot_session.record import RecordReader, SqliteRecord
from sabot_session.round_history import RoundEnd, list_rounds
from sabot_table.cards import card
from sabot_table.ruleset import load
from sabot_table.settlement import DealtHands, settle

pytestmark = pytest.mark.slow


@pytest.mark.rule("MD3 11.C")
def test_the_record_alone_tells_every_round(tmp_path: Path) -> None:
    """One round jams and is void. All others settle again to the same cents from what is on disk."""
    path = tmp_path / "T1.table.db"
    with (
        SqliteRecord(path) as record,
        simulated_table(tmp_path, "seed=1&fault=stuck@exit:120", record=record) as table,
    ):
        table.rounds(4)
    rules = load("md-three-card-baccarat")
    with RecordReader(path) as reader:
        found = [each for each in list_rounds(reader) if each.end is not RoundEnd.OPEN][:4]
        custody = custody_of(reader.all_rows())
    assert [each.round_id for each in found] == [1, 2, 3, 4]
    assert all(each.complete for each in found), [each.missing for each in found]
    assert sorted({str(each.end) for each in found}) == ["settled", "void"]
    for each in found:
        assert each.facts.bets is not None
        wagers: dict[int, dict[str, int]] = {}
        for made in each.facts.bets.wagers or ():
            wagers.setdefault(made.seat, {})[made.wager] = made.cents
        if each.void is not None:
            assert (each.void.clause, each.void.give_back) == ("MD3 13.D", each.facts.bets.wagers)
            continue
        hands = {hand.seat: tuple(card(it) for it in hand.cards or ()) for hand in each.hands}
        dealers = hands.pop(0)
        again = settle(rules, wagers, DealtHands(dealers, hands))
        told = [(it.seat, it.wager, it.outcome, it.pays_cents, it.vig_cents, it.clause) for it in each.lines]
        assert told == [
            (it.seat, it.wager, it.outcome, it.pays_cents, it.vig_cents, it.clause) for it in again.lines
        ]
        assert each.verdict == "correct"
    assert [(each.pack_id, bool(each.bag), each.verified_by) for each in custody.here()] == [
        (1, True, custody.packs[1].verified_by), (2, True, custody.packs[2].verified_by),
    ]  # fmt: skip
    assert all(each.verified_by and each.where is not Where.GONE for each in custody.here())


def test_the_record_alone_proves_every_shuffle(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.play(lambda table: len(table.rows("shuffle_revealed")) >= 3)
        committed = {each.row.data["shuffle_id"]: each.row.data for each in table.rows("shuffle_committed")}
        for each in table.rows("shuffle_revealed"):
            shown = d.ShuffleRevealed.model_validate_json(json.dumps(dict(each.row.data)))
            assert (shown.wrong, len(shown.slots)) == ("", 52)
            assert committed[shown.shuffle_id]["commitment"] == shown.commitment
            serial = parse_serial(table.run.read(lambda session: session.state.device.serial))
            commitment, nonce, seed = map(bytes.fromhex, (shown.commitment, shown.nonce, shown.seed))
            pack_id = shown.pack_id or 0
            shuffle = RevealedShuffle(
                serial, pack_id, shown.shuffle_id, 52, commitment, nonce, seed, shown.slots
            )
            assert audit(shuffle) == []
