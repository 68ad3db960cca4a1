"""Requests are let in by turns: a thousand of one caller's at once keep others waiting for a few of them only."""

from holdfast.commands.request import current
from holdfast.server.asgi import App, Receive, Scope, Send
from holdfast.server.turns import Active, Rounds


class Fair:
    """Stands behind those who count requests and know who asks."""

    def __init__(self, app: App, active: Active) -> None:
        self._app = app
        self._rounds = Rounds(active)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._rounds.take(current.get().whose)
        await self._app(scope, receive, send)
