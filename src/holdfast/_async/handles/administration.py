"""Queue methods for administration: create, configure, inspect, watch, cancel, redrive."""

from collections.abc import AsyncGenerator, Hashable, Iterable
from typing import Unpack

from holdfast._async.flows import browsing
from holdfast._async.flows.browsing import OnProgress
from holdfast._async.flows.explaining import explain_message
from holdfast._async.flows.rating import queue_rates, task_rates
from holdfast._async.flows.watching import watch
from holdfast._async.handles.groups import AsyncQueueGroups
from holdfast.arguments.filter_options import FilterOptions, filter_of
from holdfast.arguments.named_claims import ClaimLike
from holdfast.arguments.options import show_options
from holdfast.arguments.where import Where
from holdfast.codec import check_duration
from holdfast.codec.call_fields import RATE_PER_S
from holdfast.commands import Browse, Clear, Configure, Filter, Move, Stats
from holdfast.records import State
from holdfast.results import MISSING, Explanation, QueueMessage, QueueResponse, WatchEvent
from holdfast.stores import AsyncStore
from holdfast.views.log_rates import LogMemory, QueueRates
from holdfast.views.messages import seen
from holdfast.views.task_rates import TaskRates
from holdfast.views.watch_subjects import QueueSubject, narrowing


@show_options
class AsyncQueueAdministration(AsyncQueueGroups):
    """The half of a queue's handle that neither puts nor claims."""

    async def pause(self, **where: Unpack[Where]) -> None:
        """Hand nothing out until `resume`; puts and claims that run go on."""
        await self._store(**where).execute(Configure("queue", self.name, paused=True))

    async def resume(self, **where: Unpack[Where]) -> None:
        """Hand out again."""
        await self._store(**where).execute(Configure("queue", self.name, paused=False))

    async def delete(self, **where: Unpack[Where]) -> QueueResponse:
        """Remove the queue with everything in it, in one step; claims on its messages are lost."""
        return QueueResponse(await self._store(**where).execute(Clear("queue", self.name, drop=True)))

    async def clear(self, **where: Unpack[Where]) -> QueueResponse:
        """Remove every message, in one step; claims on them are lost."""
        return QueueResponse(await self._store(**where).execute(Clear("queue", self.name)))

    async def length(self, **where: Unpack[Where]) -> int:
        """How many messages wait: ready, delayed and buffered, not the claimed and the dead."""
        stats = await self.stats(**where)
        return stats.ready + stats.delayed + stats.buffered

    async def stats(self, **options: Unpack[FilterOptions]) -> Stats:
        """Sizes, ages and holders at one moment: of all messages, or of those that a filter as in `browse` finds.

        A filter looks at all messages of the queue, 1,000 in a command: in a larger queue they are not counted at one moment, and what
        changes its state meanwhile may be counted twice or not at all.
        """
        which, where = filter_of("stats", options)
        return await browsing.count(self._store(**where), self.name, which)

    async def rates(self, since_s: float = 300.0, **where: Unpack[Where]) -> QueueRates:
        """Throughput, waits, durations and failures of the last seconds, from the event log.

        At most 20,000 events count, the newest; the answer says how far that reached.
        """
        return (await queue_rates(self._store(**where), self.name, since_s, by_group=False))[""]

    async def group_rates(self, since_s: float = 300.0, **where: Unpack[Where]) -> dict[str, QueueRates]:
        """The same of each group that worked in that time, by its name; "" stands for messages without one."""
        return await queue_rates(self._store(**where), self.name, since_s, by_group=True)

    async def task_rates(self, since_s: float = 300.0, **where: Unpack[Where]) -> dict[str, TaskRates]:
        """Throughput, waits, durations and failures of each task that workers of `Tasks` ran in that time, by its name.

        From what workers say with their heartbeats, in the event log; at most 20,000 of those count, the newest.
        """
        return (await task_rates(self._store(**where), [self.name], since_s, LogMemory()))[self.name]

    async def peek(self, **where: Unpack[Where]) -> QueueMessage | None:
        """Look at the first message that is ready and due, without touching it."""
        store = self._store(**where)
        found = await browsing.first_due(store, self.name)
        return None if found is None else seen(found[0], self._codec, found[1], store.wall_offset_us())

    async def browse(
        self,
        *,
        state: State = "ready",
        after: QueueMessage | None = None,
        limit: int = 100,
        **options: Unpack[FilterOptions],
    ) -> list[QueueMessage]:
        """Look at messages of one state without touching them: `ready` in line, `leased` by lease end, `dead` by burial, `buffered` by key.

        Those that are `done`, by when, are there for as long as the queue's `keep_done_s` says. `older_than_s` and `newer_than_s`
        count from the burial of a dead letter and from the put of any other; `error_class` is their last error's text up to the first
        colon, `value_contains` a part of their value's JSON text, `prefix` is of their keys, `label` one of their labels, `group` their
        group, "" for those without. For the next page give the last message as `after`.
        """
        which, where = filter_of("browse", options)
        store = self._store(**where)
        command = Browse(self.name, state=state, which=which, after=after.cursor if after else None, limit=limit)
        pages = await browsing.find(store, command)
        offset_us = store.wall_offset_us()
        return [seen(message, self._codec, page.now, offset_us) for page in pages for message in page.messages]

    async def explain(self, message: str | QueueMessage | ClaimLike, **where: Unpack[Where]) -> Explanation:
        """Say why a message, given itself or by its id, is not running: claimed by whom, delayed until when, dead because of what.

        Limits, rates, throttles and groups of the queue are reasons, too: `Explanation` lists them.
        """
        message_id = str(message) if isinstance(message, str) else message.id
        return await explain_message(self._store(**where), self.name, message_id)

    async def cancel(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        state: State = "ready",
        on_progress: OnProgress | None = None,
        **options: Unpack[FilterOptions],
    ) -> QueueResponse:
        """Remove messages that are not claimed, by id, or all of one state that a filter finds; the answer counts them.

        What a filter finds is removed in steps of 1,000; after each `on_progress` is called with how many are removed so far.
        """
        which, where = filter_of("cancel", options)
        if ids is None and which == Filter():
            raise ValueError("cancel needs ids or a filter: clear() empties the queue")
        return await self._move(self._store(**where), Move(self.name, "gone", _ids(ids), state, which), on_progress)

    async def dead_letters(
        self, *, after: QueueMessage | None = None, limit: int = 100, **options: Unpack[FilterOptions]
    ) -> list[QueueMessage]:
        """Look at the dead messages of this queue, the longest dead first; page and narrow as with `browse`."""
        return await self.browse(state="dead", after=after, limit=limit, **options)

    async def redrive(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        rate_per_s: float | None = None,
        delay_s: float = 0.0,
        to: str | None = None,
        on_progress: OnProgress | None = None,
        **options: Unpack[FilterOptions],
    ) -> QueueResponse:
        """Give dead letters another chance, all or those named: same id, to the back of the line, a fresh budget.

        `rate_per_s` spaces them out from `delay_s` on. With `to=`, the name of another queue, this one is a dead-letter queue: its waiting
        messages go there. Those not named by id go in steps of 1,000, as `cancel` removes them.

        Newer work of the same key comes first: a message stays where it is while another one of its key waits or is claimed in the queue
        it would go to, or while its id is taken there. The response counts those that went; `kept` names the others.
        """
        if rate_per_s is not None and RATE_PER_S.check(rate_per_s) <= 0:
            raise ValueError(f"rate_per_s must be more than 0, not {rate_per_s}")
        which, where = filter_of("redrive", options)
        move = Move(
            self.name,
            "ready",
            _ids(ids),
            "dead" if self._other(to) is None else "ready",
            which,
            to_queue=to,
            delay_s=delay_s,
            spacing_s=0.0 if rate_per_s is None else 1 / rate_per_s,
        )
        return await self._move(self._store(**where), move, on_progress)

    async def prune_dead_letters(self, older_than_s: float, **where: Unpack[Where]) -> QueueResponse:
        """Remove the messages that have been dead for longer; the answer counts them."""
        check_duration(older_than_s, "older_than_s")
        return await self._move(self._store(**where), Move(self.name, "gone", None, "dead", Filter(older_than_s)))

    def watch(
        self,
        *,
        key: Hashable | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        last_index: int = -1,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        snapshot: bool = False,
        **where: Unpack[Where],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow what happens in the queue: which messages were put, claimed, settled, expired, buried, moved.

        With `key` or `prefix` only those with that key, or with a key under the prefix, are reported.

        Begins after `last_index`, -1 being the oldest event that is still there; with `snapshot` an event `snapshot` for each message comes
        first, then `synced`. Ends when nothing came for `timeout_s`; None follows for ever, 0.0 gives what is there. Raises `Compacted`
        when the events asked for are gone.
        """
        return watch(
            self._store(**where),
            QueueSubject(self.name, self._codec, *narrowing(MISSING if key is None else key, prefix)),
            last_index=last_index,
            timeout_s=timeout_s,
            poll_s=poll_interval_s,
            snapshot=snapshot,
        )

    async def _move(self, store: AsyncStore, move: Move, on_progress: OnProgress | None = None) -> QueueResponse:
        moved = await browsing.move_all(store, move, on_progress)
        return QueueResponse(len(moved.ids), kept=moved.kept)


def _ids(ids: str | Iterable[str] | None) -> list[str] | None:
    # Plain text of a MessageId: that is what stores take.
    return ids if ids is None else [str(ids)] if isinstance(ids, str) else [str(one) for one in ids]
