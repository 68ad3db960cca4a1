"""Queue methods for administration: create, configure, inspect, watch, cancel, redrive."""

from collections.abc import AsyncGenerator, Hashable, Iterable
from typing import Unpack

from msgspec.structs import replace

from holdfast._async.flows import browsing
from holdfast._async.flows.job_status import job_status
from holdfast._async.flows.watching import watch
from holdfast._async.flows.working.registering import workers
from holdfast._async.handles.groups import AsyncQueueGroups
from holdfast.arguments.named_claims import ClaimLike
from holdfast.arguments.options import show_options
from holdfast.arguments.where import Where
from holdfast.codec import check_duration, key_prefix
from holdfast.codec.call_fields import RATE_PER_S
from holdfast.commands import Browse, Browsed, Clear, Configure, Count, Filter, Groups, Move, Names, Stats
from holdfast.errors import NotAllowed
from holdfast.explanations import AHEAD_MOST, GROUPS_MOST, Surroundings, explain
from holdfast.policy_records import Lane
from holdfast.presentation import seen
from holdfast.records import Message, State
from holdfast.results import MISSING, Explanation, QueueMessage, QueueResponse, WatchEvent
from holdfast.stores import AsyncStore
from holdfast.watch_subjects import QueueSubject, narrowing
from holdfast.workers.handlers.task_names import named_in

WAITING = ("ready", "delayed", "turn")
"""Why a message is not running that a worker has to come for."""


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

    async def stats(self, **where: Unpack[Where]) -> Stats:
        """Sizes, ages and holders at one moment."""
        return await self._store(**where).execute(Count(self.name))

    async def peek(self, **where: Unpack[Where]) -> QueueMessage | None:
        """Look at the first message that is ready and due, without touching it."""
        store = self._store(**where)
        async for page in browsing.pages(store, self.name, "ready"):
            due = [message for message in page.messages if message.position <= page.now and not message.is_late(page.now)]
            if due:
                return seen(due[0], self._codec, page.now, store.wall_offset_us())
        return None

    async def browse(
        self,
        *,
        state: State = "ready",
        older_than_s: float | None = None,
        error_contains: str | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        label: str | None = None,
        group: str | None = None,
        after: QueueMessage | None = None,
        limit: int = 100,
        **where: Unpack[Where],
    ) -> list[QueueMessage]:
        """Look at messages of one state without touching them: `ready` in line, `leased` by lease end, `dead` by burial, `buffered` by key.

        Those that are `done`, by when, are there for as long as the queue's `keep_done_s` says. `older_than_s` counts from the burial of
        a dead letter and from the put of any other; `prefix` is of their keys, `label` one of their labels, `group` their group, "" for
        those without. For the next page give the last message as `after`.
        """
        which = _which(older_than_s, error_contains, prefix, label, group)
        store, found = self._store(**where), list[QueueMessage]()
        command = Browse(self.name, state=state, which=which, after=after.cursor if after else None, limit=limit)
        while True:
            page = await store.execute(command)
            found += self._seen(page, store)
            if page.after is None or len(found) >= limit:
                return found
            command = replace(command, after=page.after, limit=limit - len(found))

    async def explain(self, message: str | QueueMessage | ClaimLike, **where: Unpack[Where]) -> Explanation:
        """Say why a message, given itself or by its id, is not running: claimed by whom, delayed until when, dead because of what.

        Limits, rates, throttles and groups of the queue are reasons, too: `Explanation` lists them.
        """
        store = self._store(**where)
        message_id = str(message) if isinstance(message, str) else message.id
        found = await store.execute(Browse(self.name, ids=[message_id]))
        around = await _surroundings(store, self.name, found.messages[0] if found.messages else None)
        said = explain(found, around, id=message_id, offset_us=store.wall_offset_us())
        if said.reason == "delayed" and (sleeping := await job_status(store, self.name, message_id)).waiting_for is not None:
            return Explanation("delayed", f"It is a durable job that sleeps, and waits for {sleeping.waiting_for}.", sleeping.due_at)
        task = named_in(found.messages[0].metadata).task if found.messages else None
        return said if task is None or said.reason not in WAITING else await _with_knowers(store, said, self.name, task)

    async def cancel(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        state: State = "ready",
        older_than_s: float | None = None,
        error_contains: str | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        label: str | None = None,
        group: str | None = None,
        **where: Unpack[Where],
    ) -> QueueResponse:
        """Remove messages that are not claimed, by id, or all of one state that a filter finds; the answer counts them."""
        which = _which(older_than_s, error_contains, prefix, label, group)
        if ids is None and which == Filter():
            raise ValueError("cancel needs ids or a filter: clear() empties the queue")
        return await self._move(self._store(**where), Move(self.name, "gone", _ids(ids), state, which))

    async def dead_letters(
        self,
        *,
        older_than_s: float | None = None,
        error_contains: str | None = None,
        label: str | None = None,
        group: str | None = None,
        after: QueueMessage | None = None,
        limit: int = 100,
        **where: Unpack[Where],
    ) -> list[QueueMessage]:
        """Look at the dead messages of this queue, the longest dead first; page as with `browse`."""
        return await self.browse(
            state="dead",
            older_than_s=older_than_s,
            error_contains=error_contains,
            prefix=None,
            label=label,
            group=group,
            after=after,
            limit=limit,
            **where,
        )

    async def redrive(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        rate_per_s: float | None = None,
        delay_s: float = 0.0,
        to: str | None = None,
        older_than_s: float | None = None,
        error_contains: str | None = None,
        label: str | None = None,
        group: str | None = None,
        **where: Unpack[Where],
    ) -> QueueResponse:
        """Give dead letters another chance, all or those named: same id, to the back of the line, a fresh budget.

        `rate_per_s` spaces them out from `delay_s` on. With `to=`, the name of another queue, this one is a dead-letter queue: its waiting
        messages go there.

        Newer work of the same key comes first: a message stays where it is while another one of its key waits or is claimed in the queue
        it would go to, or while its id is taken there. The response counts those that went; `kept` names the others.
        """
        if rate_per_s is not None and RATE_PER_S.check(rate_per_s) <= 0:
            raise ValueError(f"rate_per_s must be more than 0, not {rate_per_s}")
        move = Move(
            self.name,
            "ready",
            _ids(ids),
            "dead" if self._other(to) is None else "ready",
            _which(older_than_s, error_contains, None, label, group),
            to_queue=to,
            delay_s=delay_s,
            spacing_s=0.0 if rate_per_s is None else 1 / rate_per_s,
        )
        return await self._move(self._store(**where), move)

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

    async def _move(self, store: AsyncStore, move: Move) -> QueueResponse:
        moved = await browsing.move_all(store, move)
        return QueueResponse(len(moved.ids), kept=moved.kept)

    def _seen(self, page: Browsed, store: AsyncStore) -> list[QueueMessage]:
        offset_us = store.wall_offset_us()
        return [seen(message, self._codec, page.now, offset_us) for message in page.messages]


def _ids(ids: str | Iterable[str] | None) -> list[str] | None:
    # Plain text of a MessageId: that is what stores take.
    return ids if ids is None else [str(ids)] if isinstance(ids, str) else [str(one) for one in ids]


def _which(
    older_than_s: float | None,
    error_contains: str | None,
    prefix: str | tuple[Hashable, ...] | None,
    label: str | None,
    group: str | None,
) -> Filter:
    return Filter(older_than_s, error_contains, None if prefix is None else key_prefix(prefix), label, group)


async def _surroundings(store: AsyncStore, queue: str, message: Message | None) -> Surroundings:
    """What decides when the message is handed out."""
    named = (await store.execute(Names("queue", queue, limit=1, exact=True))).settings
    settings = named[0] if named else None
    if message is None:
        return Surroundings(settings)
    first = Browsed([])
    if message.state == "buffered" and isinstance(message.key, str):
        first = await store.execute(Browse(queue, state="leased", which=Filter(key_prefix=message.key)))
    policy = settings.policy if settings is not None else None
    if policy is None or policy.groups is None or message.lane is None:
        line = await store.execute(Browse(queue, limit=AHEAD_MOST + 1))
        return Surroundings(settings, first.messages, line.messages)
    same = Filter(group=message.group or "")
    claimed = await store.execute(Browse(queue, state="leased", which=same, limit=AHEAD_MOST))
    waiting = await store.execute(Browse(queue, which=same, limit=GROUPS_MOST))
    lanes = (await store.execute(Groups(queue, prefix=message.lane, limit=1))).lanes
    lane = lanes[0] if lanes and lanes[0].name == message.lane else Lane(queue, message.lane)
    others = (await store.execute(Groups(queue, limit=GROUPS_MOST + 1))).lanes
    ahead = sum(other.open and (other.turn, other.place, other.name) < (lane.turn, lane.place, lane.name) for other in others)
    return Surroundings(settings, first.messages, (), lane, claimed.messages, waiting.messages, ahead)


async def _with_knowers(store: AsyncStore, said: Explanation, queue: str, task: str) -> Explanation:
    """The explanation of a job of a task, with who could run it as far as the caller may see that."""
    try:
        living = await workers(store)
    except NotAllowed:
        return said
    names = sorted({one.name for one in living if one.serves(queue) and task in one.tasks})
    known = f"task {task!r} is known to: {', '.join(names)}" if names else f"no living worker of the queue knows task {task!r}"
    return replace(said, sentence=f"{said.sentence.removesuffix('.')}; {known}.")
