"""A note from the wall reaches a table's screen with the table's own rights, or its sender hears why not."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.floor.secured_site import SITE
from tests.wall.noted_table import TABLE, NotedTable, noted_table
from tests.wall.served_wall import WallClient

from sabot_floor.connection import Servers, connect
from sabot_floor.names import SiteNames
from sabot_floor.payloads import NoteAnswer, NoteSent
from sabot_floor.streams import StreamSettings, set_up
from sabot_floor.tasks import end_tasks
from sabot_floor.wall import note_desk
from sabot_floor.wall.note_desk import NoteDesk, NoteNotDelivered, NoteNotTaken, NotesOpen, NoteUnanswered
from sabot_session.errors import RecordFull
from sabot_session.note_acts import ReadNote
from sabot_session.notes import MOST_WAITING, Note, NoteUnfit
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable
from sabot_simulators.simulated_staff import SimulatedPerson

NO_NOTES = 'name = "pit-2"\n[floor]\nnotes = false\n'
NAMES = SiteNames("notes")
TEXT = "<b>Break</b> at six"


def note(number: int = 1) -> Note:
    return Note(f"{number:032x}", "anna", TEXT, 5)


def body(number: int = 1, text: str = TEXT, table: str = TABLE) -> dict[str, str]:
    return {"table": table, "note_id": f"{number:032x}", "text": text}


def read(noted: NotedTable, number: int) -> None:
    shown = SimulatedPerson("simulated floor")
    noted.table.run.act(f"read {number}", None, 0, shown, ReadNote(f"{number:032x}"))


@pytest.mark.slow
def test_a_note_goes_from_the_wall_to_the_table_and_a_person_reads_it(tmp_path: Path) -> None:
    with noted_table(tmp_path) as noted, WallClient(noted.wall) as anna:
        wall = noted.wall
        wall.wait(lambda: noted.table.client.peer is not None and bool(noted.table.run.needs()))
        anna.enter()
        assert noted.detail()["takes_notes"]
        assert anna.post("/api/notes", body()).json()["error"] == "not_signed_in"
        assert noted.notes() == []
        anna.sign_in("anna")
        assert anna.http.post("/api/notes", json=body()).json()["error"] == "csrf"
        assert anna.post("/api/notes", body()).json() == {"shown": True}
        (shown,) = noted.notes()
        assert (shown["sender"], shown["text"]) == ("anna", TEXT)
        wall.wait(lambda: noted.detail()["notes"] == 1)
        assert anna.post("/api/notes", body()).status_code == 200  # the same note again
        assert len(noted.notes()) == 1
        assert anna.post("/api/notes", body(2, "two\nlines")).json()["error"] == "note_unfit"
        assert anna.post("/api/notes", body(2, "x" * 201)).status_code == 400
        assert anna.post("/api/notes", body(2, table="t99")).json()["error"] == "no_such_table"
        for number in range(2, MOST_WAITING + 1):
            assert anna.post("/api/notes", body(number)).status_code == 200
        full = anna.post("/api/notes", body(9))
        assert (full.status_code, full.json()["error"]) == (409, "note_not_shown")
        assert "4 notes wait" in full.json()["message"]
        read(noted, 1)
        wall.wait(lambda: noted.detail()["notes"] == MOST_WAITING - 1)
        rows = noted.table.rows("note_received", "note_read")
        assert [each.row.kind for each in rows] == ["note_received"] * MOST_WAITING + ["note_read"]
        assert rows[-1].row.actor.person
        noted.published.close()
        wall.wait(lambda: anna.post("/api/notes", body(10)).status_code == 409)
        off = anna.post("/api/notes", body(10)).json()
        assert (off["error"], off["message"]) == ("note_not_shown", "table t01 is off, or takes no notes")
        assert len(noted.notes()) == MOST_WAITING - 1


@pytest.mark.slow
def test_nothing_comes_in_where_the_house_lets_no_note_in(tmp_path: Path) -> None:
    with noted_table(tmp_path, NO_NOTES) as noted, WallClient(noted.wall) as anna:
        anna.enter().sign_in("anna")
        assert not noted.detail()["takes_notes"]
        assert anna.post("/api/notes", body()).json()["error"] == "not_allowed"

        async def past_the_walls_own_check() -> None:
            client = await connect(noted.secured.servers("wall"), "another wall", lambda: None)
            desk = NoteDesk(SiteNames(SITE))
            await desk.follow(client)
            with pytest.raises(NoteNotDelivered):
                await desk.send(client, TABLE, note())
            await client.close()

        asyncio.run(past_the_walls_own_check())
        assert noted.notes() == []
        assert noted.table.rows("note_received") == []


def run(server: Site, scenario: Callable[[Client, NoteDesk], Awaitable[None]]) -> None:
    """Run a scenario with a desk on a server without users."""

    async def with_desk() -> None:
        client = await connect(Servers(server.urls), "wall", lambda: None)
        desk = NoteDesk(NAMES)
        await desk.follow(client)
        try:
            await scenario(client, desk)
        finally:
            await client.close()

    asyncio.run(with_desk())


def answer(note_id: str, taken: bool = True, table: str = TABLE, words: str = "") -> bytes:
    return NoteAnswer(table=table, note_id=note_id, taken=taken, reason="", words=words).to_bytes()


def test_where_no_table_listens_the_sender_hears_it_at_once(server: Site) -> None:
    async def scenario(client: Client, desk: NoteDesk) -> None:
        with pytest.raises(NoteNotDelivered, match=f"table {TABLE} is off"):
            await desk.send(client, TABLE, note())

    run(server, scenario)


def test_a_table_that_does_not_answer_leaves_it_open_whether_the_note_is_there(
    server: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_desk, "ANSWER_S", 0.5)

    async def scenario(client: Client, desk: NoteDesk) -> None:
        await client.subscribe(NAMES.note(TABLE))
        with pytest.raises(NoteUnanswered, match="did not answer"):
            await desk.send(client, TABLE, note())

    run(server, scenario)


def test_only_the_table_itself_answers_and_only_for_its_note(server: Site) -> None:
    async def scenario(client: Client, desk: NoteDesk) -> None:
        heard = asyncio.Event()
        sent: list[NoteSent] = []

        async def table(message: Msg) -> None:
            sent.append(NoteSent.read(message.data))
            await client.publish(NAMES.noted("t02"), answer(note().note_id))  # says that it is t01
            await client.publish(NAMES.noted("t02"), answer(note().note_id, table="t02"))
            await client.publish(NAMES.noted(TABLE), answer(note(2).note_id))  # another note
            await client.publish(NAMES.noted(TABLE), b"{}")
            heard.set()

        await client.subscribe(NAMES.note(TABLE), cb=table)
        sending = asyncio.create_task(desk.send(client, TABLE, note()))
        await heard.wait()
        with pytest.raises(NotesOpen):
            await desk.send(client, TABLE, note())  # while it waits
        while desk.unreadable < 2:  # the last of the wrong answers was heard
            await asyncio.sleep(0.02)
        assert not sending.done()
        await client.publish(NAMES.noted(TABLE), answer(note().note_id))
        await sending
        assert desk.unreadable == 2
        assert (sent[0].sender, sent[0].text, sent[0].sent_us) == ("anna", TEXT, 5_000_000)

    run(server, scenario)


def test_a_refusal_is_told_in_the_tables_words_and_an_unfit_note_is_not_sent(server: Site) -> None:
    async def scenario(client: Client, desk: NoteDesk) -> None:
        heard = 0

        async def table(message: Msg) -> None:
            nonlocal heard
            heard += 1
            await client.publish(NAMES.noted(TABLE), answer(note().note_id, False, words="not now"))

        await client.subscribe(NAMES.note(TABLE), cb=table)
        with pytest.raises(NoteNotTaken, match="not now"):
            await desk.send(client, TABLE, note())
        with pytest.raises(NoteUnfit):
            await desk.send(client, TABLE, Note("0" * 16, "anna", "two\nlines", 0))
        await client.flush()
        assert heard == 1

    run(server, scenario)


def test_what_is_no_note_is_ignored_and_a_record_that_fails_is_told(
    server: Site, tmp_path: Path
) -> None:
    """The table's side without a session: no note, a note that is taken, one that cannot be kept."""
    table = WrittenTable(tmp_path, TABLE)
    taken: list[str] = []

    def take(each: Note) -> None:
        if each.text == "fails":
            raise RecordFull("the disk is full")
        taken.append(each.text)

    async def scenario(client: Client, desk: NoteDesk) -> None:
        settings = StreamSettings(replicas=1, max_bytes=2**26, bucket_bytes=2**24)
        await set_up(client.jetstream(timeout=30), NAMES, settings)
        publisher = table.publisher(NAMES.site, Servers(server.urls), notes=take)
        running = asyncio.create_task(publisher.run())
        while publisher.beats == 0:
            await asyncio.sleep(0.02)
        await client.publish(NAMES.note(TABLE), b"no note")
        await desk.send(client, TABLE, note())
        with pytest.raises(NoteNotTaken, match="could not record"):
            await desk.send(client, TABLE, Note("0" * 16, "anna", "fails", 0))
        assert taken == [TEXT]
        await end_tasks([running])
        publisher.close()

    run(server, scenario)
    table.close()
