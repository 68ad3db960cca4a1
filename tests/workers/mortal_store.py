"""A store as a process sees it that dies: from its death on it does nothing more, and its renewals stop."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.together import only_reads
from holdfast.errors import Closed
from holdfast.stores import AsyncStore, Guarantees, Renewer, Store, StoreDefaults
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class Fate:
    """When the process dies: before or after its n-th command that writes, or within its n-th effect."""

    def __init__(self, command: int | None = None, *, after: bool = False, effect: int | None = None) -> None:
        self._command = command
        self._after = after
        self._effect = effect
        # Guards the counters.
        self._lock = threading.Lock()
        self.commands = self.effects = 0
        self.is_dead = False

    def before(self, command: Command[Any]) -> bool:
        """Whether it survives until this command; returns whether the command is its last."""
        self._refuse_dead()
        if only_reads(command):
            return False
        with self._lock:
            self.commands += 1
            is_last = self.commands == self._command
        if is_last and not self._after:
            self.die()
        return is_last

    def effect(self) -> None:
        """Something happens in the world; it may die just behind that."""
        self._refuse_dead()
        with self._lock:
            self.effects += 1
            dies = self.effects == self._effect
        if dies:
            self.die()

    def die(self) -> None:
        """End the process."""
        self.is_dead = True
        self._refuse_dead()

    def _refuse_dead(self) -> None:
        if self.is_dead:
            raise Closed("the process is dead")


class MortalStore(StoreDefaults):
    """The store of a process with such a fate; closing it leaves the store itself open."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store = store
        self._fate = fate
        self.limits: Limits = store.limits
        self.url: str = store.url
        self.guarantees: Guarantees = store.guarantees
        self.waiters: Waiters = store.waiters

    def execute(self, command: Command[R]) -> R:
        is_last = self._fate.before(command)
        answer = self._store.execute(command)
        if is_last:
            self._fate.die()
        return answer

    def mark(self, topic: str) -> Mark:
        return self._store.mark(topic)

    def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        if not self._fate.is_dead:
            self._store.wait(mark, min(timeout_s, 0.05), due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    def for_tasks(self) -> AsyncStore:
        return MortalTasks(self._store.for_tasks(), self._fate)

    def for_renewals(self) -> Renewer:
        return DeadRenewer()

    def close(self) -> None:
        """The next process uses the store, too."""


class MortalTasks:
    """The same for tasks."""

    def __init__(self, store: AsyncStore, fate: Fate) -> None:
        self._store = store
        self._fate = fate
        self.limits: Limits = store.limits
        self.url: str = store.url
        self.guarantees: Guarantees = store.guarantees
        self.waiters: Waiters = store.waiters

    async def execute(self, command: Command[R]) -> R:
        is_last = self._fate.before(command)
        answer = await self._store.execute(command)
        if is_last:
            self._fate.die()
        return answer

    def mark(self, topic: str) -> Mark:
        return self._store.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self._store.wait(mark, min(timeout_s, 0.05), due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    async def aclose(self) -> None:
        """The next process uses the store, too."""


class DeadRenewer:
    """Renews nothing: the clock of a test moves only while no process lives."""

    def execute(self, command: Command[R], timeout_s: float) -> R:
        del command, timeout_s
        raise Closed("the process is dead")

    def close(self) -> None:
        """Nothing to do."""


Effect = Callable[[], None]
