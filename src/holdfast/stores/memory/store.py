"""The memory store: all data is in this process."""

import threading
from typing import Any, TypeVar, cast

from holdfast.clock import Clock, SystemClock
from holdfast.codec import Limits
from holdfast.commands import Command, Prune, Settle, Together, refusal_errors, run
from holdfast.commands.checkpoint import carry_out_checkpoint
from holdfast.commands.command import by_halves
from holdfast.errors import Closed
from holdfast.process import forks
from holdfast.records import Message
from holdfast.stores import FastQueue, Guarantees, StoreDefaults
from holdfast.stores.async_face import AsyncFace
from holdfast.stores.memory.fast.commands import FastCommands, fast_commands, fast_queue_of
from holdfast.stores.memory.fast.queue import Ground
from holdfast.stores.memory.guard import guarded_by
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.transaction import MemoryTransaction
from holdfast.stores.renewals import DirectRenewer
from holdfast.stores.waiting.waiters import Mark, Waiters, seldom, waiters_for

R = TypeVar("R")

PRUNE_EVERY = 1_000
PRUNE = Prune(limit=2 * PRUNE_EVERY, done=False)
DEFAULT_LIMITS = Limits()


class MemoryStore(StoreDefaults):
    """A store in memory, for the threads and event loops of one process.

    With `by_reference` values are the caller's own objects, never copied or encoded, and a message's key is anything hashable. Events
    then leave keys and values out, nothing is measured, and command ids, which only a wire needs, are ignored. Without `keeps_events` there
    is nothing to watch: for a queue that one program keeps to itself.

    A forked child has a copy of its own: what the parent does from then on it does not see, and none of the parent's waiters is in it.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        by_reference: bool = False,
        keeps_events: bool = True,
        limits: Limits = DEFAULT_LIMITS,
        url: str = "memory://",
    ) -> None:
        self.url = url
        self.limits = limits
        self.by_reference = by_reference
        self.guarantees: Guarantees = Guarantees("nothing", "threads", "this process's, since its start", "memory")
        self.clock: Clock = clock or SystemClock()
        self.waiters: Waiters = waiters_for(self.clock)
        self._now_us = self.clock.now_us
        # Guards _tables and _is_closed.
        self._lock = threading.Lock()
        self._tables = Tables(limits, by_reference=by_reference, keeps_events=keeps_events)
        self._log = self._tables.log
        self._is_closed = False
        self._ground = Ground(self._tables, guarded_by(self._lock), self.clock.now_ns, self.waiters, self._tidy, self._release)
        self._fast: FastCommands = fast_commands(self._ground)
        forks.look_after(self)

    def execute(self, command: Command[R]) -> R:
        fast = self._fast.get(type(command))
        if fast is not None:
            answer: R | None = fast(command)
            if answer is not None:
                return answer
        return self._run(command)

    def _run(self, command: Command[R]) -> R:
        """Execute by the command's own rules."""
        if not self.by_reference:
            command.measure(self.limits)
        wall_offset = self.clock.wall_offset_us()
        is_done, answer = False, cast("R", None)
        try:
            with self._lock:
                self._refuse_if_closed()
                tx = MemoryTransaction(self._tables, self._now_us(), wall_offset)
                try:
                    answer = command.write(tx, command.check(tx)) if self.by_reference else run(tx, command, _carry_out)
                except BaseException:
                    tx.undo.take_back()
                    raise
                is_done = True
            self.waiters.hint_each(tx.hints.items())
            if self._log.latest >= self._log.tidy_at:
                self._tidy()
        except BaseException:
            # Interrupted behind the step: what the caller was granted it will never know of.
            for undo in command.undo(answer) if is_done else ():
                self._run(undo)
            raise
        return answer

    def _release(self, message: Message) -> None:
        self._run(Settle([message.receipt], "ready", "place"))

    def _tidy(self) -> None:
        # Set first: pruning writes events, too.
        self._log.tidy_at = self._log.latest + PRUNE_EVERY
        self._run(PRUNE)

    def fast(self, queue: str) -> FastQueue:
        """The fast path of a queue, for a caller that makes no commands for plain steps."""
        with self._lock:
            return fast_queue_of(self._tables.queue(queue), self._ground)

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self.waiters.wait(mark, timeout_s, due_in_s, seldom(poll_s))

    def wall_offset_us(self) -> int:
        return self.clock.wall_offset_us()

    def for_tasks(self) -> "AsyncMemoryStore":
        return AsyncMemoryStore(self)

    def for_renewals(self) -> DirectRenewer:
        return DirectRenewer(self)

    def close(self) -> None:
        """End every wait with `Closed`, and forget everything."""
        with self._lock:
            self._is_closed = True
            self._fast = {}
            for queue in self._tables.queues.values():
                queue.retire()
            # Emptied, too: whoever claimed something still has the fast path of its queue.
            self._tables.messages.clear()
            self._tables = Tables(self.limits, by_reference=self.by_reference)
        self.waiters.close()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Closed("The memory store was closed, and its data is gone: create a new one.")
        if self._tables.moved_to is not None:
            raise refusal_errors.moved(self.url, self._tables.moved_to)

    def begin_in_child(self) -> None:
        """Go on after a fork: the threads that held the lock or waited stayed in the parent."""
        # The same lock, made anew: the fast path keeps it.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined] # noqa: SLF001 - as the standard library does after a fork
        self.waiters.reset()


def _carry_out(tx: MemoryTransaction, command: Command[Any]) -> Any:
    answer = carry_out_checkpoint(tx, command) if type(command) is Together and command.plain() else None
    return by_halves(tx, command) if answer is None else answer


class AsyncMemoryStore(AsyncFace[MemoryStore]):
    """The same store, for tasks: it answers in place, so that no thread is needed."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self._fast, self._run = store._fast, store._run  # noqa: SLF001 - its other face

    async def execute(self, command: Command[R]) -> R:
        # As the store's own does, without another call; the fast path of a closed store returns None.
        fast = self._fast.get(type(command))
        answer: R | None = None if fast is None else fast(command)
        return self._run(command) if answer is None else answer

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.store.waiters.wait_async(mark, timeout_s, due_in_s, seldom(poll_s))

    async def aclose(self) -> None:
        self.store.close()
