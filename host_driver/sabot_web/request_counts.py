"""How many requests a service has answered, by the class of the answer."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class RequestCounts:
    """Counts of one service since it began. Paths and people are not counted."""

    def __init__(self) -> None:
        self.by_class = dict.fromkeys(CLASSES, 0)


class CountedRequests:
    """ASGI middleware that counts answers; put it around all others."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts.by_class[f"{message['status'] // 100}xx"] += 1
            await send(message)

        await self._app(scope, receive, counted)
