"""Sends notes of people at the wall to tables' screens, and waits for each table's answer.

Nothing is kept on the way: the table has a note, or the sender hears that it does not. The table answers on a
subject of its own, so no other table can answer for it. Where no table listens, the server says so at once.
"""

import asyncio
import logging
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from sabot_floor.connection import LOST
from sabot_floor.errors import BadPayload, FloorError
from sabot_floor.names import SiteNames
from sabot_floor.payloads import NoteAnswer, NoteSent
from sabot_floor.tasks import end_tasks
from sabot_session.notes import Note, check_note

log = logging.getLogger("sabot.floor.wall")
ANSWER_S = 5.0
MOST_OPEN = 32
"""Notes of this wall that wait for an answer."""


class NoteNotShown(FloorError):
    """A note that is not known to be on the table's screen."""


class NoteNotDelivered(NoteNotShown):
    """No table listens there."""

    advice = "Nothing was sent. Go to the table, or send it again when the table is heard."


class NoteUnanswered(NoteNotShown, TimeoutError):
    """The table did not answer: the note may be on its screen or not."""

    advice = "Send the same note again: the table takes it once."


class NoteNotTaken(NoteNotShown):
    """The table has refused the note."""

    advice = ""


class NotesOpen(NoteNotShown):
    """Too many notes wait for an answer."""

    advice = "Wait some seconds, then send it again."


class NoteDesk:
    """The notes of one wall that wait for an answer."""

    def __init__(self, names: SiteNames) -> None:
        self._names = names
        self._open: dict[tuple[str, str], asyncio.Future[NoteAnswer]] = {}
        self.unreadable = 0
        """Answers that cannot be read, or that speak for another table."""

    async def follow(self, client: Client) -> None:
        """Hear answers on a new connection."""
        await client.subscribe(self._names.noted(), cb=self._answered)

    async def _answered(self, message: Msg) -> None:
        try:
            answer = NoteAnswer.read(message.data)
            if self._names.noted(answer.table) != message.subject:
                raise BadPayload(f"it speaks for table {answer.table}")
        except BadPayload as error:
            self.unreadable += 1
            log.warning("unreadable: %s: %s", message.subject, error)
            return
        waits = self._open.get((answer.table, answer.note_id))
        if waits is not None and not waits.done():
            waits.set_result(answer)

    async def send(self, client: Client, table: str, note: Note) -> None:
        """Send a note and wait until the table has it. `NoteNotShown` or `NoteUnfit` says why it does not."""
        check_note(note)
        key = table, note.note_id
        if key in self._open or len(self._open) >= MOST_OPEN:
            raise NotesOpen("this note, or too many others, wait for an answer")
        answered: asyncio.Future[NoteAnswer] = asyncio.get_running_loop().create_future()
        self._open[key] = answered
        # The table never replies to the request itself: its end is the server's word that no table listens.
        asked = asyncio.ensure_future(self._ask(client, table, note))
        try:
            waited: list[asyncio.Future[Any]] = [answered, asked]
            await asyncio.wait(waited, timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                answer = answered.result()
                if not answer.taken:
                    raise NoteNotTaken(answer.words or "the table has refused the note")
                return
            if asked.done():
                asked.result()
            raise NoteUnanswered(f"table {table} did not answer within {ANSWER_S:.0f} s")
        finally:
            del self._open[key]
            answered.cancel()
            await end_tasks([asked])

    async def _ask(self, client: Client, table: str, note: Note) -> None:
        sent_us = note.sent_s * 1_000_000
        sent = NoteSent(note_id=note.note_id, sender=note.sender, text=note.text, sent_us=sent_us)
        try:
            await client.request(self._names.note(table), sent.to_bytes(), timeout=2 * ANSWER_S)
        except NoRespondersError as error:
            raise NoteNotDelivered(f"table {table} is off, or takes no notes") from error
        except LOST as error:
            raise NoteUnanswered(f"the floor did not answer: {error or type(error).__name__}") from error
