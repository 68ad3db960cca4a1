"""The result of a task that was put: `AsyncResult`; and that of one that was run at once."""

from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast._sync.handles.job import Job
from holdfast._sync.handles.mapping import Dict
from holdfast.errors import JobCancelled, JobFailed
from holdfast.ids import new_id
from holdfast.results import JobState, JobStatus
from holdfast.surfaces.celery.refusals import only
from holdfast.workers.orders import results_of

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery

STATES: Final[dict[str, str]] = {
    "waiting": "PENDING",
    "delayed": "PENDING",
    "gone": "PENDING",
    "running": "STARTED",
    "sleeping": "STARTED",
    "retrying": "RETRY",
    "done": "SUCCESS",
    "dead": "FAILURE",
    "cancelled": "REVOKED",
}
READY: Final = frozenset({"SUCCESS", "FAILURE", "REVOKED"})

CANVAS: Final = "canvas"
PARTS: Final = 4
RESULT: Final = "result"
"""The name of the last node of the flow of a chain or a chord; the last ones of a group have their numbers."""


class Last(NamedTuple):
    """The nodes of a flow whose results are those of a canvas."""

    first: int
    """The number of the first one; the others follow."""
    size: int | None
    """None if there is one, whose result is not in a list."""

    def new_id(self) -> str:
        """An id for the flow, which says this."""
        return f"{CANVAS}.{self.first}.{RESULT if self.size is None else self.size}.{new_id()}"


def last_of(id: str) -> Last | None:
    """What the id of a canvas says; None for the id of a task."""
    parts = id.split(".")
    if len(parts) != PARTS or parts[0] != CANVAS:
        return None
    return Last(int(parts[1]), None if parts[2] == RESULT else int(parts[2]))


def unpacked(id: str, value: Any) -> Any:
    """The result of a task, or of a canvas whose flow had this result."""
    last = last_of(id)
    if last is None:
        return value
    return value[RESULT] if last.size is None else [value[str(number)] for number in range(last.size)]


class AsyncResult:
    """A task that was put, by its id. As in Celery, an unknown id is `PENDING`."""

    def __init__(self, id: str, *, app: "Celery | None" = None, queue: str | None = None) -> None:
        from holdfast.surfaces.celery.app import current_app  # noqa: PLC0415 - which imports this

        self.id = id
        self.app: Celery = app if app is not None else current_app()
        self._queue = queue

    @property
    def task_id(self) -> str:
        """Another name of `id`."""
        return self.id

    def get(self, timeout: float | None = None, *, propagate: bool = True, interval: float | None = None) -> Any:
        """What the task returned; waits for it. A task that failed raises, or with `propagate=False` its exception is returned."""
        only("AsyncResult.get", "interval", interval, [None], "the store wakes who waits: remove it")
        try:
            return unpacked(self.id, self.job().result(timeout_s=timeout))
        except (JobFailed, JobCancelled) as error:
            if propagate:
                raise
            return error

    wait = get

    @property
    def state(self) -> str:
        """`PENDING`, `STARTED`, `RETRY`, `SUCCESS`, `FAILURE` or `REVOKED`; of a running task what it gave to `update_state`."""
        found = self._status()
        return str(_said(found)["state"]) if _said(found) else STATES.get(found.state, "PENDING")

    status = state

    @property
    def info(self) -> Any:
        """What a running task gave to `update_state(meta=…)`, or what it returned, or its exception."""
        found = self._status()
        if _said(found):
            return _said(found)["meta"]
        return self.get(timeout=0, propagate=False) if STATES.get(found.state) in READY else None

    result = info

    @property
    def traceback(self) -> str | None:
        """The traceback of the last attempt that failed; what it raised, where none was kept."""
        found = self._status()
        return (found.errors[-1].traceback if found.errors else None) or found.error

    def ready(self) -> bool:
        """Whether it has ended."""
        return self.state in READY

    def successful(self) -> bool:
        """Whether it ended well."""
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        """Whether it failed for good."""
        return self.state == "FAILURE"

    def revoke(self, *, terminate: bool = False, signal: str | None = None) -> None:
        """Remove it if it waits; one that runs is asked to end."""
        del terminate  # A running job is always asked.
        only("AsyncResult.revoke", "signal", signal, [None], "tasks are asked to end, not sent signals: remove it")
        self.job().cancel()

    def forget(self) -> None:
        """Remove its result."""
        queue = self.job().queue
        Dict(results_of(queue), client=self.app.client).delete(self.id)

    def _status(self) -> JobStatus:
        return self.job().status()

    def job(self) -> Job[Any]:
        """Its job, as Holdfast has it."""
        if self._queue is None:
            self._queue = self._find(self.id)
        return Job(self._queue, self.id, client=self.app.client)

    def _find(self, id: str) -> str:
        """The queue in which a job is, or was: an id does not say."""
        gone: JobState = "gone"
        queues = self.app.queues
        found = (queue for queue in queues if Job(queue, id, client=self.app.client).status().state != gone)
        return next(found, queues[0])

    def __repr__(self) -> str:
        return f"<AsyncResult: {self.id}>"

    def __str__(self) -> str:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncResult) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def _said(found: JobStatus) -> dict[str, Any]:
    """What `update_state` said of a job that runs."""
    said = found.progress
    return said if found.state == "running" and isinstance(said, dict) and said.keys() == {"state", "meta"} else {}


class EagerResult:
    """The result of a task that was run at once."""

    def __init__(self, id: str, value: Any = None, error: BaseException | None = None) -> None:
        self.id = id
        self.task_id: str = id
        self.result: Any = value if error is None else error
        self.info: Any = self.result
        self.traceback: str | None = None if error is None else "".join(format_exception(error))
        self._error = error

    def get(self, timeout: float | None = None, *, propagate: bool = True) -> Any:
        """What the task returned."""
        del timeout
        if self._error is not None and propagate:
            raise self._error
        return self.result

    @property
    def state(self) -> str:
        """`SUCCESS` or `FAILURE`."""
        return "SUCCESS" if self._error is None else "FAILURE"

    status = state

    def ready(self) -> bool:
        """True."""
        return True

    def successful(self) -> bool:
        """Whether it ended well."""
        return self._error is None

    def failed(self) -> bool:
        """Whether it raised."""
        return self._error is not None

    def revoke(self, *, terminate: bool = False) -> None:
        """Nothing: it has run."""

    def forget(self) -> None:
        """Nothing: it is kept nowhere."""

    def __repr__(self) -> str:
        return f"<EagerResult: {self.id}>"
