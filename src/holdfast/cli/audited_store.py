"""A store on which acts of administrators are recorded in the audit, as a server does for those of tokens."""

from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.commands import Command, Together
from holdfast.server.audit import Actor, acts_of, recorded
from holdfast.stores import AsyncStore, Guarantees, Renewer, Store, StoreDefaults

if TYPE_CHECKING:
    from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class AuditedStore(StoreDefaults):
    """Executes what is asked for; an administrative command in one step with its record."""

    def __init__(self, store: Store, by: Actor) -> None:
        self._store = store
        self._by = by
        self.limits: Any = store.limits

    def execute(self, command: "Command[R]") -> R:
        acts = acts_of(command)
        if not acts:
            return self._store.execute(command)
        record = recorded(self._by, *acts)
        steps: list[Any] = [*command.commands] if isinstance(command, Together) else [command]
        answers: Any = self._store.execute(Together([*steps, record]))[:-1]
        answer: R = answers if isinstance(command, Together) else answers[0]
        return answer

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def waiters(self) -> "Waiters":
        return self._store.waiters

    @property
    def guarantees(self) -> Guarantees:
        return self._store.guarantees

    def mark(self, topic: str) -> "Mark":
        return self._store.mark(topic)

    def wait(self, mark: "Mark", timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self._store.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    def for_tasks(self) -> AsyncStore:
        return self._store.for_tasks()

    def for_renewals(self) -> Renewer:
        return self._store.for_renewals()

    def close(self) -> None:
        self._store.close()
