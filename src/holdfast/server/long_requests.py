"""Long requests: each ends with its work, its client or the server."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from holdfast.server.asgi import Receive, Scope, leave_slots
from holdfast.server.auth.callers import Caller, caller_of
from holdfast.server.namespaces.admission import Tenants
from holdfast.stores.http.problems import WireError

R = TypeVar("R")

MOST: Final = 10_000
MOST_EACH: Final = 5_000
_RETRY = ((b"retry-after", b"5"),)


class Lasting:
    """The requests of one server that wait for something: so many in all, and of each caller."""

    def __init__(self, most: int = MOST, most_each: int = MOST_EACH) -> None:
        self._most = most
        self._most_each = most_each
        self._tasks: dict[asyncio.Task[Any], Caller] = {}
        self._counts: Counter[str] = Counter()
        self._of_namespaces: Counter[str] = Counter()
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, scope: Scope, receive: Receive, work: Coroutine[Any, Any, R], tenants: Tenants) -> R | None:
        """What the work returns; None if it was cancelled: the client hung up, is no longer welcome, or the server ends."""
        caller = caller_of(scope)
        try:
            most_waits = await tenants.waits(caller.namespace)
            self._check_room(caller, most_waits)
        except BaseException:
            work.close()
            raise
        if self._is_ending:
            work.close()
            return None
        task = asyncio.create_task(work)
        watch = asyncio.create_task(cancel_when_gone(receive, task))
        self._tasks[task] = caller
        self._counts[caller.name] += 1
        self._of_namespaces[caller.namespace.name] += 1
        leave_slots(scope)
        try:
            await asyncio.wait([task])
        finally:
            watch.cancel()
            task.cancel()
            self._leave(task, caller)
        try:
            return None if task.cancelled() else task.result()
        finally:
            del task, watch  # An error keeps this frame, which would keep the error: only the collector would free what the request had.

    def callers(self) -> list[Caller]:
        """Those who wait, each once."""
        return list({caller.name: caller for caller in self._tasks.values()}.values())

    def dismiss(self, name: str) -> None:
        """Cancel the work of all requests of this caller."""
        for task in [task for task, caller in self._tasks.items() if caller.name == name]:
            task.cancel()

    def end(self) -> None:
        """Cancel the work of all of them; from now on none lasts."""
        self._is_ending = True
        for task in list(self._tasks):
            task.cancel()

    def _check_room(self, caller: Caller, most_waits: int | None) -> None:
        if len(self._tasks) >= self._most:
            raise WireError("too_many_requests", 503, f"{self._most:,} requests are already waiting here: try again later", _RETRY)
        if self._counts[caller.name] >= self._most_each:
            raise WireError("too_many_requests", 429, f"{self._most_each:,} requests of {caller.name} are already waiting here", _RETRY)
        name = caller.namespace.name
        if most_waits is not None and self._of_namespaces[name] >= most_waits:
            detail = f"namespace {name} may have {most_waits:,} waits per server and uses them all: end some, or ask the operator for more"
            raise WireError("too_many_requests", 429, f"{detail} (holdfast namespace quota {name} --waits …)", _RETRY)

    def _leave(self, task: "asyncio.Task[Any]", caller: Caller) -> None:
        self._tasks.pop(task, None)
        for counts, name in ((self._counts, caller.name), (self._of_namespaces, caller.namespace.name)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]


async def cancel_when_gone(receive: Receive, task: "asyncio.Task[Any]") -> None:
    """Cancel the task if the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
