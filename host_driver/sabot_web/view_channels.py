"""Views of one thing for all its pages: each kind of page's view is made once, and its changes are kept.

Changes are coalesced to 20 a second where they are made, not for each reader. A reader has no queue: it asks
for what changed since its cursor, and a slow one gets several changes as one.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

from sabot_session.snapshot import Changes, ChangeStream
from sabot_web.errors import Refused

View = Mapping[str, Any]
Render = Callable[[Mapping[str, Any]], View]
LEAST_S = 0.05  # between two changes: 20 a second
BEAT_S = 0.5  # a reader hears at least so often that the service follows its source
LATE_S = 1.0  # a source that has not answered for so long has no beats
STALL_S = 10.0  # a reader that takes nothing for so long is dropped
MOST_READERS = 64  # of one channel: players cannot keep the dealer's page out


@dataclass
class _Channel:
    render: Render
    stream: ChangeStream = field(default_factory=ChangeStream)
    sent: tuple[str | None, str, bytes] | None = None  # the newest change as bytes, for every reader of it
    readers: int = 0


class ViewChannels:
    """The views of one snapshot. Use it in one event loop; who owns the snapshot gives every new one."""

    def __init__(self) -> None:
        self._channels: dict[str, _Channel] = {}
        self._snapshot: dict[str, Any] = {}
        self._changed = asyncio.Event()
        self._alive_s = 0.0
        self._closing = False

    def channel(self, name: str, render: Render) -> None:
        """Offer a kind of view; a channel that is there stays."""
        if name not in self._channels:
            self._channels[name] = _Channel(render)

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """The newest snapshot that was read."""
        return self._snapshot

    @property
    def alive(self) -> bool:
        """Whether the source answered lately."""
        return not self._closing and time.monotonic() - self._alive_s < LATE_S

    def heard(self) -> None:
        """The source has answered just now."""
        self._alive_s = time.monotonic()

    def publish(self, snapshot: Mapping[str, Any]) -> None:
        """Take the newest snapshot. A view that somebody reads is made now, others when a reader comes."""
        self._snapshot = dict(snapshot)
        for each in self._channels.values():
            if each.readers:
                each.stream.publish(dict(each.render(self._snapshot)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End every reader."""
        self._closing = True
        self._wake()

    async def read(self, name: str, after: str | None) -> AsyncIterator[bytes]:
        """Server-sent events of a channel: all of it or what changed since a cursor, then changes and beats.

        No beat comes while the source does not answer; the page shows then that its data are old.
        """
        channel = self._channels[name]
        if self._snapshot:
            channel.stream.publish(dict(channel.render(self._snapshot)))
        told_s = time.monotonic()
        while not self._closing:
            found = channel.stream.changes(after)
            if found is not None and self._snapshot:
                yield _event(channel, after, found)
                after, told_s = found.cursor, time.monotonic()
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), BEAT_S)
            # Changes of other channels wake this reader too: what counts is what it heard.
            if self.alive and time.monotonic() - told_s >= BEAT_S:
                yield b"event: beat\ndata: %d\n\n" % int(time.time())
                told_s = time.monotonic()

    def response(self, name: str, after: str | None, allowed: Callable[[], bool]) -> "EventResponse":
        """An answer that sends a channel's events while the reader is ``allowed`` to have them."""
        if self._channels[name].readers >= MOST_READERS:
            raise Refused(503, "too_many_readers", f"{MOST_READERS} pages are open", "Close a page.")
        return EventResponse(self, name, after, allowed)

    def has(self, name: str) -> bool:
        """Whether there is such a channel."""
        return name in self._channels

    def readers(self, name: str) -> int:
        """How many readers a channel has."""
        return self._channels[name].readers

    @property
    def all_readers(self) -> int:
        """How many readers all channels have."""
        return sum(each.readers for each in list(self._channels.values()))

    def _opened(self, name: str, by: int) -> None:
        self._channels[name].readers += by


def _event(channel: _Channel, after: str | None, found: Changes) -> bytes:
    if channel.sent is None or channel.sent[:2] != (after, found.cursor):
        data = json.dumps({"full": found.full, "parts": found.parts}, separators=(",", ":"))
        channel.sent = after, found.cursor, f"id: {found.cursor}\nevent: change\ndata: {data}\n\n".encode()
    return channel.sent[2]


class EventResponse:
    """An ASGI answer of server-sent events. It ends with its reader, its stream, or a send that stalls."""

    def __init__(
        self, views: ViewChannels, name: str, after: str | None, allowed: Callable[[], bool]
    ) -> None:
        self._views = views
        self._name = name
        self._after = after
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until something ends it."""
        gone = asyncio.create_task(_disconnected(receive))
        self._views._opened(self._name, 1)
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")],
                }
            )
            async for each in self._views.read(self._name, self._after):
                if gone.done() or not self._allowed():
                    break
                await asyncio.wait_for(
                    send({"type": "http.response.body", "body": each, "more_body": True}), STALL_S
                )
            if not gone.done():
                await asyncio.wait_for(send({"type": "http.response.body", "body": b""}), STALL_S)
        except TimeoutError:
            pass  # it takes nothing: it asks again with its cursor, or never
        finally:
            self._views._opened(self._name, -1)
            gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
