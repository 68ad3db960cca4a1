"""Requests are let in by turns: a thousand of one caller's at once keep others waiting for a few of them only."""

from collections.abc import Awaitable

from holdfast.commands.request import current
from holdfast.server.asgi import App, Receive, Scope, Send
from holdfast.server.turns import Active, Rounds


class Fair:
    """Stands behind those who count requests and know who asks."""

    def __init__(self, app: App, active: Active) -> None:
        self._app = app
        self._rounds = Rounds(active)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        whose = current.get().whose
        return self._app(scope, receive, send) if self._rounds.may_enter(whose) else self._wait(whose, scope, receive, send)

    async def _wait(self, whose: str, scope: Scope, receive: Receive, send: Send) -> None:
        await self._rounds.wait(whose)
        await self._app(scope, receive, send)
