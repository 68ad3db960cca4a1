"""The results of a group: `GroupResult`, and one for each member."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from holdfast._sync.handles.job import Job
from holdfast.errors import JobCancelled, JobFailed
from holdfast.results import JobStatus
from holdfast.surfaces.celery.refusals import only
from holdfast.surfaces.celery.results import AsyncResult, EagerResult, Last, last_of, unpacked

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery

LOOK_S: Final = 0.2
"""How often it is asked whether the job of a member was put."""


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
        end = None if timeout is None else time.monotonic() + timeout
        try:
            return self._value(end)
        except (JobFailed, JobCancelled) as error:
            if propagate:
                raise
            return error

    wait = get

    def _value(self, end: float | None) -> Any:
        """What the task returned; its job, until it was put, is looked for."""
        while True:
            left_s = None if end is None else max(0.0, end - time.monotonic())
            job = self._child()
            if job is not None:
                return job.result(timeout_s=left_s)
            try:
                return self._of_flow(LOOK_S if left_s is None else min(LOOK_S, left_s))
            except TimeoutError:
                if left_s == 0.0:
                    raise

    def _of_flow(self, timeout_s: float) -> Any:
        return unpacked(self._flow.id, self._flow.job().result(timeout_s=timeout_s))[self._number]

    def _child(self) -> Job[Any] | None:
        """Its job; None if it was not put yet, or the whole group is done."""
        found = next((step.child for step in self._flow.job().steps() if step.number == self._node and step.child), None)
        if found is None:
            return None
        if self._queue is None:
            self._queue = self._find(found)
        return Job(self._queue, found, client=self.app.client)

    def _status(self) -> JobStatus:
        job = self._child()
        if job is not None:
            return job.status()
        found = self._flow.job().status()
        return found if found.has_ended else replace(found, state="waiting")

    def job(self) -> Job[Any]:
        """Its job, or while it has none that of the whole group."""
        return self._child() or self._flow.job()


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
