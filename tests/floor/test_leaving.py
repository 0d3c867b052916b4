"""What leaves a table at each level: judged on rows of rounds that were really played."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_driver.pruning import prune
from sabot_floor.errors import NothingMayLeave
from sabot_floor.leaving import ROUND_FIELDS, device_body, record_body
from sabot_floor.payloads import FloorRow
from sabot_floor.row_sources import RowSource, device_source, record_source
from sabot_floor.state_entry import state_entry
from sabot_floor.table_service import publish_table
from sabot_protocol.host import messages
from sabot_session.row_kinds import KINDS
from sabot_simulators.floor.written_table import WrittenTable
from sabot_table.errors import HousePolicyError
from sabot_table.house_policy import parse_policy
from sabot_table.rule_text_files import FloorTerms, packaged, rule_text
from sabot_table.rule_texts import FloorLevel
from sabot_table.ruleset import load

pytestmark = pytest.mark.slow

Played = tuple[Path, Path]
STRICT = 'name = "pit-2"\n[floor]\nleaves = "none"\n'
CARD = re.compile(r'"(?:[2-9TJQKA]|10)[CDHScdhs♣♦♥♠]"')
LOWER = (FloorLevel.MACHINE, FloorLevel.ROUNDS)


def _rows(source: RowSource) -> list[FloorRow]:
    found: list[FloorRow] = []
    while page := source.rows(found[-1].n if found else 0, 7):
        found += page
    source.close()
    return found


def _device(played: Played, level: FloorLevel) -> list[FloorRow]:
    return _rows(device_source(played[0], level, lambda _: None))


def _record(played: Played, level: FloorLevel) -> list[FloorRow]:
    return _rows(record_source(played[1], level))


def _cards_told(played: Played) -> bool:
    return any(CARD.search(row.body) for row in _record(played, FloorLevel.ALL))


def test_at_all_every_row_leaves_with_its_evidence_hash(played: Played) -> None:
    with sqlite3.connect(played[1]) as db:
        there = db.execute("SELECT number, number - 1, lower(hex(hash)), body FROM rows").fetchall()
    assert [(row.n, row.prev, row.hash, row.body) for row in _record(played, FloorLevel.ALL)] == there
    with sqlite3.connect(played[0]) as db:
        links = db.execute("SELECT link, lower(hex(hash)) FROM chain").fetchall()
    assert [(row.n, row.hash) for row in _device(played, FloorLevel.ALL)] == links


@pytest.mark.parametrize("level", FloorLevel)
@pytest.mark.parametrize("chain", ["device", "record"])
def test_hashes_follow_from_the_bodies_that_leave(played: Played, level: FloorLevel, chain: str) -> None:
    if level is FloorLevel.NONE:
        return
    if chain == "device":
        source = device_source(played[0], level, lambda _: None)
    else:
        source = record_source(played[1], level)
    begins, head = source.begins(), source.head()
    hash, n = bytes.fromhex(begins.hash), begins.prev
    rows = _rows(source)
    for row in rows:
        hash = hashlib.sha256(hash + row.body.encode()).digest()
        assert (row.prev, row.hash) == (n, hash.hex())
        n = row.n
    assert (head.n, head.hash, head.count) == (n, hash.hex(), len(rows))
    assert rows


def test_below_all_no_card_no_seed_and_no_evidence_hash_leaves(played: Played) -> None:
    assert _cards_told(played)
    with sqlite3.connect(played[1]) as db:
        seed = "SELECT json_extract(body, '$.data.seed') FROM rows WHERE kind = 'shuffle_revealed'"
        seeds = [told for (told,) in db.execute(seed) if told]
        hashes = {hash.hex() for (hash,) in db.execute("SELECT hash FROM rows")}
    with sqlite3.connect(played[0]) as db:
        hashes |= {hash.hex() for (hash,) in db.execute("SELECT hash FROM chain")}
    assert seeds
    for level in LOWER:
        for row in (*_device(played, level), *_record(played, level)):
            assert not CARD.search(row.body), row.body
            assert not any(seed in row.body for seed in seeds)
            assert row.hash not in hashes
            assert not re.search('"(points|rank|line|slots|player|banker|why|note)"|"hands":.[{]', row.body)


def test_at_machine_no_person_and_no_round_leaves(played: Played) -> None:
    record = [json.loads(row.body) for row in _record(played, FloorLevel.MACHINE)]
    assert {each["kind"] for each in record} >= {"identify"}
    assert all(set(each) == {"at_s", "data", "kind", "number"} for each in record)
    device = [json.loads(row.body) for row in _device(played, FloorLevel.MACHINE)]
    assert {each["event"] for each in device} >= {"booted", "shoe_changed", "shuffler_changed"}
    text = json.dumps([record, device])
    assert not any(word in text for word in ('"person"', '"round_id"', '"dealer"', '"wager"', '"host_id"'))


def test_at_rounds_wagers_and_settlements_leave(played: Played) -> None:
    kinds = {json.loads(row.body)["kind"]: json.loads(row.body) for row in _record(played, FloorLevel.ROUNDS)}
    assert {"open_bets", "no_more_bets", "settle", "collect"} <= set(kinds)
    (line, *_) = kinds["settle"]["data"]["lines"]
    assert {"seat", "wager", "outcome", "stake_cents", "pays_cents"} <= set(line)
    assert not {"line", "odds"} & set(line)
    assert not {"shuffle_revealed", "command_sent", "command_answered"} & set(kinds)


@pytest.mark.parametrize("level", LOWER)
def test_what_this_version_does_not_know_stays(level: FloorLevel) -> None:
    row = {"act": "", "actor": {}, "at_s": 1, "clause": "", "follows": None, "number": 1, "round": 1}
    assert record_body(json.dumps({**row, "data": {}, "kind": "card_scanned"}), level) is None
    head = "E 1 AA 1 1 0 5 - 0"
    assert device_body("E", f"{head} 4095 00 - - - 7".encode(), level) is None
    assert device_body("E", f"{head} {messages.Booted.ID} FFFFFFFF - - - 7".encode(), level) is None
    assert device_body("C", b"C 1 2 00 AA 5", level) is None
    assert device_body("O", b"O 1 done", level) is None


def test_a_field_that_is_new_in_a_row_stays() -> None:
    data = {"seat": 1, "scanned": "KS", "cards": ["KS"], "why": "the king of spades"}
    row = {"act": "", "actor": {}, "at_s": 1, "clause": "", "follows": None, "number": 1, "round": 1}
    body = record_body(json.dumps({**row, "kind": "sit", "data": data}), FloorLevel.ROUNDS)
    assert body is not None
    assert json.loads(body)["data"] == {"seat": 1}


def test_every_kind_with_a_card_in_its_data_was_thought_of() -> None:
    """Cards are in these fields; none of them is on the list of what leaves."""
    fields = {name for kind in KINDS for name in kind.data.model_fields}
    assert {"hands", "first", "card", "exposed", "seed", "slots"} <= fields
    assert not {"hands", "first", "card", "exposed", "seed", "slots", "player", "banker"} & ROUND_FIELDS


def test_a_pruned_journal_is_another_source_below_all(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path, "t01")
    table.write(60)
    before = device_source(table.journal_path, FloorLevel.ROUNDS, lambda _: None)
    assert prune(table.journal, 2**53).events > 10
    after = device_source(table.journal_path, FloorLevel.ROUNDS, lambda _: None)
    whole = device_source(table.journal_path, FloorLevel.ALL, lambda _: None)
    assert after.source.startswith(f"{before.source}/")
    assert whole.begins().prev > 0
    first = whole.rows(whole.begins().prev, 1)[0]
    assert first.follows(whole.begins().hash)
    for each in (before, after, whole):
        each.close()
    table.close()


def test_the_texts_say_what_leaves() -> None:
    levels = {key: rule_text(key).floor.leaves for key in packaged()}
    assert levels == {
        "MD3": FloorLevel.ALL, "MDM": FloorLevel.ALL, "BAC": FloorLevel.ALL, "WA3": FloorLevel.NONE,
    }  # fmt: skip
    assert not rule_text("WA3").floor.notes
    assert FloorTerms() == FloorTerms(leaves=FloorLevel.NONE, notes=False)


def test_a_house_policy_may_only_be_stricter() -> None:
    rules = load("md-three-card-baccarat")
    policy = parse_policy('name = "x"\n[floor]\nleaves = "machine"\nnotes = false\n', rules)
    assert policy.floor_terms(rules.fixed.floor) == FloorTerms(leaves=FloorLevel.MACHINE, notes=False)
    assert policy.floor_terms(FloorTerms()) == FloorTerms()
    washington = load("wa-three-card-baccarat")
    with pytest.raises(HousePolicyError, match="allows no more"):
        parse_policy('name = "x"\n[floor]\nleaves = "machine"\n', washington)
    with pytest.raises(HousePolicyError, match="lets no note in"):
        parse_policy('name = "x"\n[floor]\nnotes = true\n', washington)


@pytest.mark.parametrize("level", FloorLevel)
def test_the_state_entry_has_no_card(snapshots_of_play: list[dict[str, Any]], level: FloorLevel) -> None:
    rules = load("md-three-card-baccarat")
    text = json.dumps(snapshots_of_play)
    assert CARD.search(text)
    for each in snapshots_of_play:
        entry = state_entry(each, rules, level)
        assert not CARD.search(json.dumps(entry))
        assert bool(entry) == (level is not FloorLevel.NONE)
        assert ("needs" in entry) == (level in (FloorLevel.ROUNDS, FloorLevel.ALL))
        assert level is not FloorLevel.ROUNDS or all("words" not in need for need in entry["needs"])


@pytest.mark.parametrize("level", LOWER)
def test_the_archive_takes_what_leaves(
    floor: RunningFloor, written: Callable[[str], WrittenTable], level: FloorLevel
) -> None:
    table = written("t01")
    table.write(40)

    async def scenario() -> None:
        async with floor:
            floor.publish(table, level=level)
            expected = {each.chain: each.head() for each in table.sources(level)}
            wanted = {chain: head for chain, head in expected.items() if head.count}
            await eventually(lambda: floor.store.heads().get("t01", {}) == wanted)
            await eventually(lambda: floor.archive.matching.get(("t01", "device")) is True)

    run(scenario())


def test_a_house_policy_keeps_a_tables_rows_at_the_table(mocker: MockerFixture, tmp_path: Path) -> None:
    rules = load("md-three-card-baccarat")
    settings, client, state = mocker.Mock(), mocker.Mock(), mocker.Mock()  # nothing is asked of them
    with pytest.raises(NothingMayLeave, match="the house policy 'pit-2' lets nothing leave the table"):
        publish_table(settings, client, tmp_path / "r.db", rules, parse_policy(STRICT, rules), state)
    assert not client.mock_calls


@pytest.mark.parametrize("level", [FloorLevel.ALL, FloorLevel.MACHINE])
def test_a_source_tells_whether_its_file_was_written(
    written: Callable[[str], WrittenTable], level: FloorLevel
) -> None:
    table = written("t01")
    table.write(3)
    for source in table.sources(level):
        source.rows(0, 256)
        assert (source.changed(), source.changed()) == (True, False)
        table.write(1)
        assert (source.changed(), source.changed()) == (True, False)
        with source._lock:
            assert source.changed()  # another thread reads: it may be so
        source.head()
        assert not source.changed()
        source.close()
