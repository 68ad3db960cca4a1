"""The results of a group: `GroupResult`, and one for each member."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast._sync.flows.awaiting import node_result
from holdfast._sync.handles.job import Job
from holdfast.errors import JobCancelled, JobFailed
from holdfast.results import JobStatus, JobStep
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured
from holdfast.surfaces.celery.refusals import only
from holdfast.surfaces.celery.results import AsyncResult, EagerResult, Last, last_of

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery


class MemberResult(AsyncResult):
    """The result of a member of a group, whose job is put when its turn has come."""

    def __init__(self, flow: AsyncResult, last: Last, number: int) -> None:
        super().__init__(f"{flow.id}.{number}", app=flow.app)
        self._flow = flow
        self._node = last.first + number
        self._number = number

    def get(self, timeout: float | None = None, *, propagate: bool = True, interval: float | None = None) -> Any:
        """What the task returned; waits for it. A task that failed raises, or with `propagate=False` its exception is returned."""
        only("AsyncResult.get", "interval", interval, [None], "the store wakes who waits: remove it")
        flow, wait_s = self._flow.job(), math.inf if timeout is None else timeout
        try:
            return node_result(self.app.client.store, flow.queue, flow.id, (self._node, str(self._number)), wait_s)
        except (JobFailed, JobCancelled) as error:
            if propagate:
                raise
            return error

    wait = get

    def _step(self) -> JobStep | None:
        """What the flow has recorded of it; None if it was not put yet, or the whole group is done."""
        return next((step for step in self._flow.job().steps() if step.number == self._node and step.child is not None), None)

    def _child(self, step: JobStep) -> Job[Any]:
        if self._queue is None:
            self._queue = self._find(str(step.child))
        return Job(self._queue, str(step.child), client=self.app.client)

    def _status(self) -> JobStatus:
        step = self._step()
        if step is None:
            found = self._flow.job().status()
            return found if found.has_ended else replace(found, state="waiting")
        found = self._child(step).status()
        return replace(found, state="done") if step.state == "done" else found

    def job(self) -> Job[Any]:
        """Its job; ValueError while it has none, and when the whole group is done."""
        step = self._step()
        if step is None:
            raise ValueError(f"member {self._number} of the group {self._flow.id} has no job at this moment: revoke the whole group")
        return self._child(step)

    def forget(self) -> None:
        """Refused: the results of a group are kept together."""
        raise ImproperlyConfigured("AsyncResult.forget of a member of a group is not supported; call GroupResult.forget")


class GroupResult:
    """The results of a group, in the order of its members."""

    def __init__(self, id: str, results: Sequence[AsyncResult | EagerResult] | None = None, *, app: "Celery | None" = None) -> None:
        self.id = id
        self._flow: AsyncResult | None = None
        if results is None:
            last = last_of(id)
            if last is None or last.size is None:
                raise ValueError(f"{id!r} is not the id of a group: give one that GroupResult.id had")
            self._flow = flow = AsyncResult(id, app=app)
            self._last = last
            results = [MemberResult(flow, last, number) for number in range(last.size)]
        self.results: list[AsyncResult | EagerResult] = list(results)

    @classmethod
    def restore(cls, id: str, *, app: "Celery | None" = None) -> "GroupResult":
        """The results of the group with this id, from any process."""
        return cls(id, app=app)

    def save(self) -> None:
        """Nothing: it can be restored in any case."""

    @property
    def children(self) -> list[AsyncResult | EagerResult]:
        """Another name of `results`."""
        return self.results

    def get(self, timeout: float | None = None, *, propagate: bool = True) -> list[Any]:
        """What the members returned; waits for all. If one failed it raises, or with `propagate=False` has exceptions in their places."""
        if self._flow is None:
            return [one.get(propagate=propagate) for one in self.results]
        found = self._flow.get(timeout, propagate=propagate)
        return found if isinstance(found, list) else [one.get(0, propagate=False) for one in self.results]

    join = get

    def ready(self) -> bool:
        """Whether all have ended."""
        return self._flow is None or self._flow.ready()

    def waiting(self) -> bool:
        """Whether some have not ended."""
        return not self.ready()

    def successful(self) -> bool:
        """Whether all ended well."""
        return all(one.successful() for one in self.results) if self._flow is None else self._flow.successful()

    def failed(self) -> bool:
        """Whether one failed for good."""
        if self._flow is None:
            return any(one.failed() for one in self.results)
        return self._flow.failed() or bool(self._members("failed"))

    def completed_count(self) -> int:
        """How many ended well."""
        if self._flow is None or self._flow.successful():
            return sum(one.successful() for one in self.results) if self._flow is None else len(self)
        return self._members("done")

    def _members(self, state: str) -> int:
        """How many members have ended so, as far as is recorded."""
        if self._flow is None:
            return 0
        return sum(step.state == state and step.child is not None and step.number >= self._last.first for step in self._flow.job().steps())

    def revoke(self, *, terminate: bool = False) -> None:
        """Remove those that wait; those that run are asked to end."""
        if self._flow is not None:
            self._flow.revoke(terminate=terminate)

    def forget(self) -> None:
        """Remove its result."""
        if self._flow is not None:
            self._flow.forget()

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[AsyncResult | EagerResult]:
        return iter(self.results)

    def __getitem__(self, number: int) -> AsyncResult | EagerResult:
        return self.results[number]

    def __repr__(self) -> str:
        return f"<GroupResult: {self.id} of {len(self)}>"
