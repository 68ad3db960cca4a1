"""The children of a durable job: put in a step of their own, awaited, found when they died unnoticed."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, json

from holdfast.codec import Codec, encode_key
from holdfast.commands import Browse, Change, Item, Move, Put, Read, Together, Write
from holdfast.records import Message
from holdfast.workers.names import failure_key, results_of
from holdfast.workers.steps.rows import CANCELS, CHILDREN, Key, Report, Row, digest
from holdfast.workers.steps.waits import Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.workers.steps._async.steps import AsyncSteps

FIRST_LOOK_S: Final = 5.0
LAST_LOOK_S: Final = 300.0
"""How long a parent sleeps before it looks at its children although none of them reported: as long as it has waited, within these."""

LOOK_MOST: Final = 500
"""How many children one look is about."""

LONGEST_ID: Final = 100
"""A child has its parent's id in its own while that is no longer."""


class AsyncFamily:
    """The children of the job of one run."""

    def __init__(self, steps: "AsyncSteps") -> None:
        self._steps = steps
        self._found: dict[str, Report] = {}
        """How children ended that could not say so themselves."""
        self._has_looked = False

    async def start(self, branch: str, name: str, hashed: str, queue: str, make: "Callable[[str], Item]") -> Key:
        """Put a child, once; the key names its result."""
        steps, history = self._steps, self._steps.history
        with steps.turns.active():
            await steps.load()
            key = history.identify(branch, f"~call {name}", hashed)
            if await steps.ask(key) is None:
                item = make(self.id_of(key))
                row = Row("called", child=(queue, item.id), at=time.time())
                await steps.record(key, row, also=[Put(queue, [item])])
            return key

    def id_of(self, key: Key) -> str:
        """The id of a child."""
        history = self._steps.history
        own = digest(json.encode((history.message.id, history.head.run, history.head.redriven, key)))
        parent = history.message.id
        return f"{parent if len(parent) <= LONGEST_ID else digest(parent.encode())}.{own}"

    def named(self, key: Key) -> tuple[str, str]:
        """The queue and id of a child."""
        return self._steps.history.rows[key].child or ("", "")

    async def result(self, key: Key, codec: Codec) -> Any:
        """The result of a child; raises `ChildFailed` if it has none."""
        steps, history = self._steps, self._steps.history
        with steps.turns.active():
            await steps.load()
            await self._check_cancelled(key)
            while (row := history.rows[key]).state == "called":
                await self._await(key, row)
            if row.state == "failed":
                raise row.error(key[1])
            return None if row.result is None else codec.decode(row.result)

    async def _check_cancelled(self, key: Key) -> Key:
        """Raise if the job was cancelled while it waited for this child; the record of the child itself stays."""
        own = self._cancel_key(key)
        if own in self._steps.history.rows:
            await self._steps.ask(own)
        return own

    def _cancel_key(self, key: Key) -> Key:
        return (key[0], f"~result {key[1].removeprefix('~call ')}", key[2], key[3])

    async def _await(self, key: Key, row: Row) -> None:
        """Record how a child ended, or wait until it is worth another look."""
        steps, history = self._steps, self._steps.history
        queue, child_id = row.child or ("", "")
        if not history.inbox.is_known:
            await steps.refresh()
        report = history.inbox.report(child_id)
        if report is None:
            await self.look()
        report = self.report_of(child_id)
        if report is not None:
            ended = self.row_of(report, queue, child_id)
            forget = Write(history.inbox.dict(history.message.queue), [history.inbox.forget_report(child_id)])
            await steps.record(key, ended, also=[forget])
            return
        waited_s = max(0.0, time.time() - (row.at or 0.0))
        due = history.setting.now() + min(max(waited_s, FIRST_LOOK_S), LAST_LOOK_S)
        await steps.rest(self._cancel_key(key), Wait(f"job {child_id} of queue {queue}", due, (CHILDREN,), looks=True))
        self.look_again()

    def report_of(self, child_id: str) -> Report | None:
        """How a child ended, as far as is known."""
        return self._steps.history.inbox.report(child_id) or self._found.get(child_id)

    async def look(self) -> None:
        """Look at the children, once until `look_again`."""
        if not self._has_looked:
            await self._steps.turns.alone(self._look)

    def look_again(self) -> None:
        """Let the next look be a new one."""
        self._has_looked = False
        self._found = {}

    async def _look(self) -> None:
        """Find children that died where no one could report it, and those that are gone."""
        if self._has_looked:
            return
        steps, history = self._steps, self._steps.history
        inbox = history.inbox.dict(history.message.queue)
        for queue, ids in self._pending().items():
            for start in range(0, len(ids), LOOK_MOST):
                some = ids[start : start + LOOK_MOST]
                keys = [key for one in some for key in (encode_key(one), failure_key(one))]
                # One step: what is gone by then has reported, or kept its result.
                browsed, results, entries = await steps.execute(
                    Together([Browse(queue, ids=some), Read(results_of(queue), keys), Read(inbox, prefix=history.prefix, limit=5_000)])
                )
                if not entries.more:
                    history.inbox.take(entries.entries)
                kept = {entry.key: entry.value for entry in results.entries}
                found = {message.id: message for message in browsed.messages}
                if not browsed.more and not entries.more:
                    self._found |= found_of(some, found, kept)
        self._has_looked = True

    def row_of(self, report: Report, queue: str, child_id: str) -> Row:
        """What is recorded of a child that ended so."""
        if report.state == "done" and report.error is None:
            return Row("done", report.result, child=(queue, child_id), at=time.time())
        text = f"job {child_id} of queue {queue!r} has no result: {report.error or report.state}"
        return Row("failed", type="ChildFailed", message=text, child=(queue, child_id), at=time.time())

    def _pending(self) -> dict[str, list[str]]:
        """The children that have not ended, as far as is recorded, by queue."""
        pending: dict[str, list[str]] = {}
        for row in self._steps.history.rows.values():
            if row.state == "called" and row.child is not None and not row.count:
                pending.setdefault(row.child[0], []).append(row.child[1])
        return pending

    async def cancelling(self) -> list[Any]:
        """What asks the children to end, too."""
        return await self.asking(self._pending())

    async def asking(self, pending: dict[str, list[str]]) -> list[Any]:
        """What asks these jobs to end, by queue."""
        commands: list[Any] = []
        requests: list[Change] = []
        for queue, ids in pending.items():
            for start in range(0, len(ids), LOOK_MOST):
                browsed = await self._steps.execute(Browse(queue, ids=ids[start : start + LOOK_MOST]))
                living = [message for message in browsed.living if message.state != "dead"]
                requests += [Change(encode_key((queue, one.id)), value=Raw(json.encode(one.created_at))) for one in living]
                if living:
                    commands.append(Move(queue, "due", [one.id for one in living]))
        return [*commands, Write(CANCELS, requests)] if requests else []


def found_of(ids: Iterable[str], messages: dict[str, Message], kept: dict[str, Raw]) -> dict[str, Report]:
    """How children ended, as far as their messages and results show it."""
    found: dict[str, Report] = {}
    for child_id in ids:
        message = messages.get(child_id)
        if message is not None and message.state == "dead":
            found[child_id] = Report("failed", error=message.last_error or "its worker died every time")
        elif (message is None or message.state == "done") and encode_key(child_id) in kept:
            found[child_id] = Report("done", kept[encode_key(child_id)])
        elif message is not None and message.state == "done":
            found[child_id] = Report("done")
        elif message is None:
            said = kept.get(failure_key(child_id))
            reason = "it was removed" if said is None else json.decode(said).get("error") or "it has no result"
            found[child_id] = Report("failed", error=reason)
    return found
