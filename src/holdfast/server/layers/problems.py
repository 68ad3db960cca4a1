"""Converts errors to problem+json; unexpected ones are logged and reported without details."""

import logging
from secrets import token_hex
from typing import Final

from msgspec import DecodeError, ValidationError
from msgspec.structs import replace

from holdfast.errors import Closed
from holdfast.server.asgi import LEFT, STATUS, App, ClientLeft, Receive, Scope, Send, answer, cut_off
from holdfast.server.layers.telemetry import CODE
from holdfast.stores.http.problems import CONTENT_TYPE, Problem, WireError, encode_problem, problem_of

_log = logging.getLogger(__name__)
OURS: Final = 500
"""From this status on it is the server that failed, or its store."""

DETAIL: Final = 2_000
"""How many characters of an error are told: it may repeat what was sent."""

TOLD: Final = {
    "store_unavailable": "the server cannot reach its store, and nothing was written: try again later",
    "outcome_unknown": "the server lost its store before it replied, and the command may have been applied: repeat it under the same id",
    "store_full": "the server's store is full: make room there, then try again",
}
"""What callers are told of what may happen to any store."""

RETRY: Final = ((b"retry-after", b"1"),)
_TYPE = (b"content-type", CONTENT_TYPE.encode())


class Problems:
    """Answers what the layers inside raise."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except ClientLeft:
            scope[STATUS] = LEFT
        except Exception as error:
            problem, headers = problem_for(error)
            scope[CODE] = problem.code
            if STATUS in scope:
                # Too late for a problem, in the middle of a watch: its client sees the stream end, and goes on after its last event.
                if await cut_off(scope):
                    return
                raise
            if len(problem.detail) > DETAIL:
                problem = replace(problem, detail=f"{problem.detail[:DETAIL]}…")
            await answer(scope, send, problem.status, encode_problem(problem), _TYPE, *headers)


def problem_for(error: Exception) -> tuple[Problem, tuple[tuple[bytes, bytes], ...]]:
    """What to tell of the error, and the headers that go with it."""
    if isinstance(error, WireError):
        return error.problem, error.headers
    if isinstance(error, DecodeError) and not isinstance(error, ValidationError):
        return Problem("not_json", 400, str(error), "Not JSON"), ()
    if isinstance(error, RecursionError):
        return Problem("too_deep", 422, "the body is nested too deeply", "Too deep"), ()
    if isinstance(error, Closed):
        # The server's store, not the client's: it may well be there again in a moment.
        return Problem("store_unavailable", 503, "the server is shutting down: try again", "Store unavailable"), RETRY
    problem = problem_of(error)
    if problem is None or problem.status >= OURS:
        problem = _without_insides(problem or Problem("internal", 500, "", "Internal"), error)
    return problem, RETRY if problem.status in (429, 503) else ()


def _without_insides(problem: Problem, error: Exception) -> Problem:
    """The problem without what the error says, such as where the store is: that is in the log, under a number that both have."""
    incident = token_hex(8)
    if problem.code in TOLD:
        _log.warning("incident %s: %s", incident, error)
    else:
        _log.error("incident %s: a request failed", incident, exc_info=error)
    detail = TOLD.get(problem.code, "the server failed")
    return replace(problem, detail=f"{detail}; its log has incident {incident}", fields={})
