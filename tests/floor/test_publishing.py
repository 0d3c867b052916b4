"""Publisher and archive over a real server: each row once, whatever comes between."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_driver.pruning import prune
from sabot_floor.archive import Patience
from sabot_floor.archive_store import ArchiveStore, Delivered, Taken
from sabot_floor.claim import release
from sabot_floor.connection import Servers, TableSettings, connect, newest
from sabot_floor.errors import ArchiveFailed, BadPayload, NothingMayLeave
from sabot_floor.names import SiteNames, bucket_stream
from sabot_floor.payloads import Alarm, Archived, Heartbeat, RowMessage
from sabot_floor.publisher import PublishedTable, TablePublisher
from sabot_floor.streams import StreamSettings
from sabot_session.row_kinds import BY_NAME
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable
from sabot_table.rule_texts import FloorLevel

pytestmark = pytest.mark.slow

Make = Callable[[str], WrittenTable]
FAR_US = 2**53


def _same(floor: RunningFloor, table: WrittenTable) -> None:
    """Journal and record are in the archive, row by row: compared with nothing but SQLite."""
    with sqlite3.connect(table.record_path) as db:
        record = db.execute("SELECT number, lower(hex(hash)), body FROM rows ORDER BY number").fetchall()
    with sqlite3.connect(table.journal_path) as db:
        links = db.execute("SELECT link, lower(hex(hash)) FROM chain ORDER BY link").fetchall()
    query = (
        "SELECT rows.n, rows.hash, body FROM rows JOIN sources ON sources.id = source_id "
        "WHERE table_name = ? AND chain = ? ORDER BY rows.n"
    )
    assert floor.sql(query, table.name, "record") == record
    assert [row[:2] for row in floor.sql(query, table.name, "device")] == links


async def _alarm(floor: RunningFloor, table: str, kind: str) -> Alarm | None:
    names = SiteNames(floor.site)
    client = await connect(floor.servers, "test", lambda: None)
    try:
        found = await newest(client, bucket_stream(names.alarm_bucket), names.alarm_subject(table, kind), 10)
    finally:
        await client.close()
    return None if found is None else Alarm.read(found.data)


async def _until_alarm(floor: RunningFloor, table: str, kind: str, ended: bool = False) -> Alarm:
    for _ in range(600):
        found = await _alarm(floor, table, kind)
        if found is not None and (found.ended_us is not None) == ended:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"no alarm {kind}")


def test_rows_of_three_tables_reach_the_archive(floor: RunningFloor, written: Make) -> None:
    tables = [written(f"t0{n}") for n in range(1, 4)]

    async def scenario() -> None:
        async with floor:
            for each in tables:
                each.write(300)
                floor.publish(each)
            await floor.archived(*tables)
            for each in tables:
                each.write(20)
            await floor.archived(*tables)
            await eventually(lambda: len(floor.archive.matching) == 6, lambda: str(floor.archive.matching))
            assert set(floor.archive.matching.values()) == {True}

    run(scenario())
    for each in tables:
        _same(floor, each)
    assert floor.sql("SELECT * FROM conflicts") == floor.sql("SELECT * FROM quarantine") == []


def test_publisher_and_archive_go_on_where_they_were(floor: RunningFloor, written: Make) -> None:
    table = written("t01")

    async def scenario() -> None:
        async with floor:
            first = floor.publish(table)
            table.write(200)
            await floor.archived(table)
            await floor.end(first)
            await floor.end("archive")
            table.write(100)
            second = floor.publish(table)
            await eventually(lambda: all(each.published for each in second.chains))
            floor.start_archive()
            await floor.archived(table)
            assert floor.archive.again == 0
            assert sum(each.messages for each in second.chains) < 10

    run(scenario())
    _same(floor, table)


def test_rows_that_the_stream_lost_are_published_again(floor: RunningFloor, written: Make) -> None:
    table = written("t01")

    async def scenario() -> None:
        async with floor:
            floor.publish(table)
            table.write(100)
            await floor.archived(table)
            await floor.end("archive")
            table.write(50)
            client = await connect(floor.servers, "test", lambda: None)
            js, stream = client.jetstream(), SiteNames(floor.site).stream
            for _ in range(600):  # the rows are in the stream, and nowhere else
                if (await js.stream_info(stream)).state.messages > 2:
                    break
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            await js.delete_stream(stream)
            await client.close()
            floor.start_archive()
            table.write(10)
            await floor.archived(table)

    run(scenario())
    _same(floor, table)


def test_an_archive_that_was_put_back_asks_for_what_it_misses(floor: RunningFloor, written: Make) -> None:
    table = written("t01")

    async def scenario() -> None:
        async with floor:
            floor.publish(table)
            table.write(100)
            await floor.archived(table)
            await floor.end("archive")  # an older state of the database; every message is acknowledged
            with sqlite3.connect(floor.database) as db:
                db.execute("DELETE FROM rows WHERE n > 60")
                db.execute("UPDATE sources SET n = 60, count = 60, hash = (SELECT hash FROM rows "
                           "WHERE source_id = sources.id AND n = 60)")  # fmt: skip
            floor.start_archive()
            await floor.archived(table)

    run(scenario())
    _same(floor, table)


def test_a_second_publisher_is_refused_with_an_alarm(floor: RunningFloor, written: Make) -> None:
    table, other = written("t01"), written("t01")

    async def scenario() -> None:
        async with floor:
            first = floor.publish(table)
            table.write(30)
            await floor.archived(table)
            other.write(30)
            second = floor.publish(other, pc="ab" * 32)
            await eventually(lambda: second.refused is not None)
            third = floor.publish(other, pc=table.journal.chain.chain.public, listen_s=10.0)  # a cloned PC
            await eventually(lambda: third.refused is not None)
            table.write(30)
            await floor.archived(table)
            found = await _until_alarm(floor, "t01", "second_publisher")
            assert "belongs to another table PC" in found.words
            assert first.refused is None
            assert [each.published for each in (*second.chains, *third.chains)] == [0] * 4

    run(scenario())
    _same(floor, table)
    assert floor.sql("SELECT COUNT(*) FROM sources") == [(2,)]


def test_a_released_claim_goes_to_the_new_table_pc(floor: RunningFloor, written: Make) -> None:
    old, new = written("t01"), written("t01")

    async def scenario() -> None:
        async with floor:
            first = floor.publish(old)
            old.write(30)
            await floor.archived(old)
            client = await connect(floor.servers, "test", lambda: None)
            await release(client, SiteNames(floor.site), "t01")
            await client.close()
            new.write(20)
            floor.publish(new)
            await floor.archived(new)
            old.write(5)
            await eventually(lambda: first.refused is not None)

    run(scenario())
    assert floor.sql("SELECT COUNT(*) FROM sources") == [(4,)]


def test_the_archived_position_lets_the_journal_be_pruned(floor: RunningFloor, written: Make) -> None:
    table = written("t01")

    async def scenario() -> None:
        async with floor:
            table.write(50)
            table.journal.set_reader_position("floor", 0)
            assert prune(table.journal, FAR_US, dry_run=True).events == 0
            first = floor.publish(table)
            await floor.archived(table)
            await eventually(lambda: table.journal.reader_position("floor") > 40)
            await floor.end(first)
            assert prune(table.journal, FAR_US).events > 30
            table.write(20)
            floor.publish(table)
            await floor.archived(table)

    run(scenario())
    ((head, count),) = floor.sql("SELECT n, count FROM sources WHERE chain = 'device'")
    assert head == count == floor.sql("SELECT COUNT(*) FROM rows JOIN sources ON id = source_id "
                                      "WHERE chain = 'device'")[0][0]  # fmt: skip


def test_heartbeat_and_report_say_how_far_the_table_is(floor: RunningFloor, written: Make) -> None:
    table = written("t01")
    table.write(25)
    names = SiteNames(floor.site)

    async def scenario() -> None:
        heard: list[bytes] = []

        async def listen(message: object) -> None:
            heard.append(message.data)  # type: ignore[attr-defined]

        async with floor:
            client = await connect(floor.servers, "test", lambda: None)
            await client.subscribe(names.beat("t01"), cb=listen)
            floor.publish(table)
            await floor.archived(table)
            await eventually(lambda: len(heard) >= 2)
            beat = Heartbeat.read(heard[-1])
            head = table.journal.chain.head
            assert head is not None
            told = beat.chains["device"]
            assert (told.n, told.hash) == (head.row, head.hash.hex())
            assert told.count == told.published == head.row
            assert beat.chains["record"].n == 25
            bucket = bucket_stream(names.state_bucket)
            for _ in range(600):
                entry = await newest(client, bucket, names.key_subject("archived.t01"), 10)
                if entry is not None and Archived.read(entry.data).chains["record"].n == 25:
                    break
                await asyncio.sleep(0.1)
            else:
                raise AssertionError("no report")
            await client.close()

    run(scenario())


def test_a_row_that_came_with_another_hash_is_an_alarm(floor: RunningFloor, written: Make) -> None:
    table = written("t01")
    names = SiteNames(floor.site)

    async def scenario() -> None:
        async with floor:
            table.write(5)
            floor.publish(table)
            await floor.archived(table)
            client = await connect(floor.servers, "test", lambda: None)
            subject = names.rows("t01", "record")
            entry = await newest(client, names.stream, subject, 10)
            assert entry is not None
            told = json.loads(entry.data)
            told["rows"][-1]["hash"] = "ab" * 32
            await client.jetstream().publish(subject, json.dumps(told).encode())
            await client.jetstream().publish(subject, b"not a message")
            assert (await _until_alarm(floor, "t01", "row_differs")).by == "archive"
            assert "not a JSON object" in (await _until_alarm(floor, "t01", "unreadable")).words
            table.write(5)  # the publisher goes on behind a message that it cannot read
            await floor.archived(table)
            await client.close()

    run(scenario())
    _same(floor, table)


def test_rows_that_no_table_gives_are_an_alarm_until_they_come(floor: RunningFloor, written: Make) -> None:
    table = written("t01")
    names = SiteNames(floor.site)

    async def scenario() -> None:
        async with floor:
            table.write(10)
            first = floor.publish(table)
            await floor.archived(table)
            await floor.end(first)
            client = await connect(floor.servers, "test", lambda: None)
            head = table.sources()[1].head()
            chain = {**head.model_dump(), "n": 12, "count": 12, "published": 12, "waiting_s": 0}
            beat = {"v": 1, "table": "t01", "claim": 1, "run": "x", "at_us": 1, "level": "all", "state": 0}
            data = json.dumps({**beat, "chains": {"record": chain}}).encode()
            await client.publish(names.beat("t01"), data)
            found = await _until_alarm(floor, "t01", "rows_missing")
            assert "record rows after 10" in found.words
            table.write(2)
            floor.publish(table)
            await floor.archived(table)
            await _until_alarm(floor, "t01", "rows_missing", ended=True)
            await client.close()

    run(scenario())


def test_an_archive_that_is_late_by_a_quarter_of_the_streams_age_is_an_alarm_until_it_is_done(
    server: Site, site_name: str, written: Make, tmp_path: Path
) -> None:
    """The archive was off while a table published."""
    settings = StreamSettings(replicas=1, max_bytes=2**26, max_age_s=6, duplicate_window_s=1.0)
    floor = RunningFloor(tmp_path, site_name, Servers(server.urls), settings)
    table = written("t01")

    async def scenario() -> None:
        async with floor:
            publisher = floor.publish(table)
            table.write(5)
            await floor.archived(table)
            assert await _alarm(floor, "floor", "archive_behind") is None
            await floor.end("archive")
            table.write(5)
            waits = [(each, each.source.head().n) for each in publisher.chains]
            await eventually(lambda: all(chain.published == n for chain, n in waits))
            await asyncio.sleep(settings.max_age_s / 4 + 0.5)
            floor.start_archive()
            await floor.archived(table)
            found = await _until_alarm(floor, "floor", "archive_behind", ended=True)
            assert "the stream keeps 6 s" in found.words

    run(scenario())


def test_where_nothing_may_leave_there_is_no_publisher(floor: RunningFloor) -> None:
    settings = TableSettings(floor.site, "t01", "1", floor.servers)
    nothing = PublishedTable(FloorLevel.NONE, "ab", [], None, lambda _: {})
    with pytest.raises(NothingMayLeave):
        TablePublisher(settings, nothing)
    floor.store.close()


def test_messages_hold_at_most_256_rows_of_one_source(floor: RunningFloor, written: Make) -> None:
    table = written("t01")
    table.write(600)
    names = SiteNames(floor.site)

    async def scenario() -> None:
        async with floor:
            floor.publish(table)
            await floor.archived(table)
            client = await connect(floor.servers, "test", lambda: None)
            js = client.jetstream()
            last = (await js.stream_info(names.stream)).state.last_seq
            sizes = []
            for seq in range(1, last + 1):
                message = await js.get_msg(names.stream, seq)
                if message.subject == names.rows("t01", "record"):
                    sizes.append(len(RowMessage.read(message.data or b"").rows))
            assert sizes == [256, 256, 88]
            await client.close()

    run(scenario())


def test_a_payload_of_another_version_is_not_read() -> None:
    with pytest.raises(BadPayload, match="version 2"):
        RowMessage.read(b'{"v": 2, "rows": []}')
    with pytest.raises(BadPayload, match="more than"):
        RowMessage.read(b" " * (256 * 1024 + 1))


def test_a_claim_that_the_servers_lost_is_taken_again(floor: RunningFloor, written: Make) -> None:
    """Its number is above that of the rows: after a power cut no table is refused for its earlier rows."""
    table = written("t01")
    names = SiteNames(floor.site)

    async def scenario() -> None:
        async with floor:
            table.write(10)
            first = floor.publish(table)
            await floor.archived(table)
            await floor.end(first)
            client = await connect(floor.servers, "test", lambda: None)
            await client.jetstream().purge_stream(
                bucket_stream(names.state_bucket), subject=names.key_subject("claim.t01")
            )
            subject = names.rows("t01", "record")
            before = await newest(client, names.stream, subject, 10)
            table.write(10)
            second = floor.publish(table)
            await floor.archived(table)
            after = await newest(client, names.stream, subject, 10)
            assert before is not None
            assert after is not None
            assert RowMessage.read(after.data).claim > RowMessage.read(before.data).claim
            assert second.refused is None
            await client.close()

    run(scenario())


def test_rows_of_a_newer_table_are_kept_beside_those_of_an_older_one(
    floor: RunningFloor, written: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer, older = written("t01"), written("t02")

    async def scenario() -> None:
        async with floor:
            for each in (newer, older):
                each.write(3)
                floor.publish(each)
            with monkeypatch.context() as newer_version:
                newer_version.setitem(BY_NAME, "card_scanned", BY_NAME["interruption"])
                newer.write_unknown(message=250, kind="card_scanned")
            newer.write(3)
            await floor.archived(newer, older)
            kinds = "SELECT DISTINCT table_name, kind FROM rows JOIN sources ON sources.id = source_id"
            found = {tuple(each) for each in floor.sql(kinds)}
            assert found >= {("t01", "event_250"), ("t01", "card_scanned")}
            assert not found & {("t02", "event_250"), ("t02", "card_scanned")}
            for each in (newer, older):
                _same(floor, each)
            assert floor.sql("SELECT kind FROM alarms") == []

    run(scenario())


def test_rows_whose_commit_failed_come_again_out_of_the_stream(
    server: Site, site_name: str, tmp_path: Path, written: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message is acknowledged after COMMIT: here the archive asks for nothing, so no row is repeated."""
    never = Patience(ask_after_s=1e6, reconcile_s=1e6)
    floor = RunningFloor(tmp_path, site_name, Servers(server.urls), patience=never)
    table, take = written("t01"), ArchiveStore.take
    failed: list[int] = []

    def fail_once(store: ArchiveStore, delivered: Sequence[Delivered]) -> Taken:
        if not failed:
            failed.append(len(delivered))
            raise ArchiveFailed("the disk is full")
        return take(store, delivered)

    monkeypatch.setattr("sabot_floor.archive.ACK_WAIT_S", 1.0)
    monkeypatch.setattr(ArchiveStore, "take", fail_once)

    async def scenario() -> None:
        async with floor:
            table.write(5)
            floor.publish(table)
            await floor.archived(table)
            assert failed
            _same(floor, table)

    run(scenario())
