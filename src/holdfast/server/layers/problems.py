"""Errors become problem+json; what nobody foresaw is logged, and told without its insides."""

import logging
from secrets import token_hex

from msgspec import DecodeError, ValidationError

from holdfast.errors import Closed, StoreUnavailable
from holdfast.server.asgi import LEFT, STATUS, App, ClientLeft, Receive, Scope, Send, answer
from holdfast.server.layers.telemetry import CODE
from holdfast.stores.http.problems import CONTENT_TYPE, Problem, WireError, encode_problem, problem_of

_log = logging.getLogger(__name__)
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
                raise
            await answer(scope, send, problem.status, encode_problem(problem), _TYPE, *headers)


def problem_for(error: Exception) -> tuple[Problem, tuple[tuple[bytes, bytes], ...]]:
    """What to tell of the error, and the headers that go with it."""
    if isinstance(error, WireError):
        return error.problem, error.headers
    if isinstance(error, DecodeError) and not isinstance(error, ValidationError):
        return Problem("not_json", 400, str(error), "Not JSON"), ()
    if isinstance(error, RecursionError):
        return Problem("too_deep", 422, "the body is nested too deep", "Too deep"), ()
    if isinstance(error, Closed):
        # The server's store, not the client's: it may well be there again in a moment.
        error = StoreUnavailable("the server is shutting down: try again")
    problem = problem_of(error)
    if problem is None or problem.status == 500:  # noqa: PLR2004 - the status of our own failures
        incident = token_hex(8)
        _log.error("incident %s: a request failed", incident, exc_info=error)
        if problem is None:
            problem = Problem(
                "internal", 500, f"the server failed, and nothing more is said here: its log has incident {incident}", "Internal"
            )
    retry_after = ((b"retry-after", b"1"),) if problem.status in (429, 503) else ()
    return problem, retry_after
