"""A task of Celery, as a task of Holdfast."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from holdfast.backoff import Backoff
from holdfast.ids import new_id
from holdfast.surfaces.celery.config import seconds
from holdfast.surfaces.celery.exceptions import Ignore, ImproperlyConfigured, MaxRetriesExceededError, Reject, Retry
from holdfast.surfaces.celery.rate_limits import rate_of
from holdfast.surfaces.celery.refusals import JSON_ONLY, REMEDIES, only, refuse_unknown, refused
from holdfast.surfaces.celery.results import AsyncResult, EagerResult
from holdfast.surfaces.celery.running import Request, Running, running, running_here
from holdfast.surfaces.celery.signatures import Signature
from holdfast.surfaces.celery.states import FAILURE
from holdfast.workers.handlers.jobs import JobContext, current_job
from holdfast.workers.handlers.judgement import judged
from holdfast.workers.handlers.outcomes import Bury, Snooze
from holdfast.workers.handlers.outcomes import Retry as TryAgain

if TYPE_CHECKING:
    from holdfast.surfaces.celery.app import Celery

CALLS = (
    *("countdown", "eta", "expires", "priority", "queue", "task_id", "serializer"),
    *("ignore_result", "soft_time_limit", "time_limit"),
)
ENDED = ("failed", "buried")
"""How a run ends in which the task failed; others snooze, throttle, were cancelled or lost."""

DEFAULT_RETRY_S = 180.0
LONGEST_RETRY_S = 600.0


class TaskOptions(Struct, frozen=True, kw_only=True):
    """The options of `@app.task`."""

    base: Any = None
    """Only `Task` itself, which it is anyway."""
    bind: bool = False
    name: str | None = None
    queue: str | None = None
    max_retries: int | None = 3
    default_retry_delay: float = DEFAULT_RETRY_S
    autoretry_for: tuple[type[BaseException], ...] = ()
    dont_autoretry_for: tuple[type[BaseException], ...] = ()
    retry_kwargs: Mapping[str, Any] = {}
    retry_backoff: bool | float = False
    retry_backoff_max: float = LONGEST_RETRY_S
    retry_jitter: bool = True
    time_limit: float | None = None
    soft_time_limit: float | None = None
    acks_late: bool = True
    ignore_result: bool | None = None
    rate_limit: str | float | None = None
    """How often it is started, over all workers: `10/s`, `100/m`, `5/h`."""
    priority: int | None = None
    expires: float | None = None
    serializer: str = "json"

    def __post_init__(self) -> None:
        only("@task", "base", self.base, [None, Task], REMEDIES["base"])
        only("@task", "acks_late", self.acks_late, [True], "a job is always acknowledged after it ran: remove it")
        only("@task", "serializer", self.serializer, ["json"], JSON_ONLY)
        rate_of(self.rate_limit)
        refuse_unknown("@task(retry_kwargs=…)", self.retry_kwargs, ("max_retries", "countdown"))

    @property
    def most_retries(self) -> int | None:
        """How often it may be tried again; None is for ever."""
        found: int | None = self.retry_kwargs.get("max_retries", self.max_retries)
        return found

    def delay_s(self, retries: int) -> float:
        """How long an automatic retry waits."""
        if not self.retry_backoff:
            return float(self.retry_kwargs.get("countdown", self.default_retry_delay))
        backoff = Backoff(first_s=float(self.retry_backoff), factor=2.0, most_s=self.retry_backoff_max)
        return backoff.delay_s(retries + 1) if self.retry_jitter else backoff.longest_s(retries + 1)


class Task:
    """A function whose calls are put by `delay` and `apply_async`; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], app: "Celery | None", options: TaskOptions, name: str) -> None:
        self.run = function
        self.options = options
        self.name = name
        self._app = app
        self.__doc__ = function.__doc__
        self.__name__: str = function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @property
    def app(self) -> "Celery":
        """The app that it belongs to; a shared task belongs to the one that was made last."""
        if self._app is not None:
            return self._app
        from holdfast.surfaces.celery.app import current_app  # noqa: PLC0415 - which imports this

        return current_app()

    @property
    def request(self) -> Request:
        """The job that is running here."""
        found = running_here.get()
        return Request() if found is None else found.request

    @property
    def max_retries(self) -> int | None:
        """How often it is tried again."""
        return self.options.most_retries

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, here and now."""
        return self.run(self, *args, **kwargs) if self.options.bind else self.run(*args, **kwargs)

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult | EagerResult:
        """Put it with these arguments."""
        return self.apply_async(args, kwargs)

    def apply_async(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> AsyncResult | EagerResult:
        """Put it with these arguments and options."""
        refuse_unknown(f"{self.name}.apply_async", options, CALLS)
        for name in ("ignore_result", "time_limit", "soft_time_limit"):
            if name in options:
                raise ImproperlyConfigured(f"{self.name}.apply_async: {name!r} is not supported here; give it to @app.task")
        if self.app.conf.task_always_eager:
            return self.apply(args, kwargs, propagate=self.app.conf.task_eager_propagates)
        return self.app.put(self.name, args, kwargs or {}, options, self.options)

    def apply(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, propagate: bool = False) -> EagerResult:
        """Run it here and now, with its retries, which do not wait."""
        task_id, given = new_id(), dict(kwargs or {})
        retries = 0
        while True:
            request = Request(task_id, retries, tuple(args), given, called_directly=False, is_eager=True, task=self.name)
            try:
                with running(self, request):
                    return EagerResult(task_id, self(*args, **given))
            except Ignore:
                return EagerResult(task_id, None)
            except Retry:
                retries += 1
            except Exception as error:
                if isinstance(error, self.options.autoretry_for) and self._may_retry(retries):
                    retries += 1
                    continue
                if propagate:
                    raise
                return EagerResult(task_id, error=error)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """Its signature with these arguments."""
        return Signature(self, args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """Its signature with these arguments and no others."""
        return Signature(self, args, kwargs, immutable=True)

    def signature(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Signature:
        """Its signature with these arguments and options."""
        return Signature(self, args, kwargs, options)

    def chunks(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "chunks", ())

    def map(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "map", ())

    def starmap(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "starmap", ())

    def replace(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "replace", ())

    def add_to_chord(self, *_: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "add_to_chord", ())

    def delay_on_commit(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "delay_on_commit", ())

    def apply_async_on_commit(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "apply_async_on_commit", ())

    def send_event(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported; the error names the remedy."""
        raise refused(self.name, "send_event", ())

    def retry(
        self,
        *,
        exc: BaseException | None = None,
        countdown: float | None = None,
        eta: datetime | None = None,
        max_retries: int | None = None,
        throw: bool = True,
        **unknown: Any,
    ) -> NoReturn:
        """Try it again later; raises `Retry`, or after the last retry `exc`, or `MaxRetriesExceededError`."""
        refuse_unknown(f"{self.name}.retry", unknown, ("exc", "countdown", "eta", "max_retries", "throw"))
        only(f"{self.name}.retry", "throw", throw, [True], "it always raises: catch Retry if you must")
        retries, most = self.request.retries, self.max_retries
        if max_retries is not None and most is not None and max_retries > most:
            raise ImproperlyConfigured(
                f"{self.name}.retry(max_retries={max_retries}) is more than @app.task(max_retries={most}): give it there"
            )
        if not self._may_retry(retries, max_retries):
            if exc is not None:
                raise exc
            raise MaxRetriesExceededError(f"{self.name} was tried {retries + 1} times: {self.request.id}")
        delay_s = self.options.default_retry_delay if countdown is None else countdown
        if eta is not None:
            delay_s = max(0.0, (self.app.aware(eta) - datetime.now(UTC)).total_seconds())
        raise Retry(exc, delay_s)

    def update_state(self, task_id: str | None = None, state: str | None = None, meta: Any = None) -> None:
        """Say how far the task is that runs here: `AsyncResult.state` and `info`."""
        only(f"{self.name}.update_state", "task_id", task_id, [None, self.request.id], "a task reports for itself: leave it out")
        job, here = current_job(), running_here.get()
        if here is not None:
            here.said = (state, meta)
        if job is not None:
            job.report({"state": state, "meta": meta})

    def _may_retry(self, retries: int, most: int | None = None) -> bool:
        most = self.max_retries if most is None else most
        return most is None or retries < most

    def perform(
        self, job: JobContext, args: list[Any], kwargs: dict[str, Any], previous: Sequence[Any] = (), *, gathered: bool = False
    ) -> Any:
        """Run it as a job: what the worker calls. What Celery would not retry ends the job.

        `previous` has the results of the tasks before it in a canvas, which come first: as arguments, or `gathered` into one list.
        """
        args = [list(previous), *args] if gathered else [*previous, *args]
        request = Request(job.id, job.message.failures, tuple(args), kwargs, called_directly=False, task=self.name)
        with running(self, request) as here:
            return self._perform(job, here)

    def _perform(self, job: JobContext, here: Running) -> Any:
        try:
            return self(*here.request.args, **here.request.kwargs)
        except Ignore as error:
            state, meta = here.said
            if state == FAILURE:
                raise Bury(f"{meta}") from error
            return None
        except Reject as error:
            if error.requeue:
                raise Snooze(0.0, str(error)) from error
            raise
        except Retry as again:
            raise TryAgain(str(again), delay_s=again.delay_s) from again
        except (Bury, TryAgain):
            raise
        except Exception as error:
            job.check()  # It may have been told to end.
            if judged(error, job).how not in ENDED:
                raise
            is_retried = isinstance(error, self.options.autoretry_for) and not isinstance(error, self.options.dont_autoretry_for)
            if is_retried and self._may_retry(job.message.failures):
                raise TryAgain(f"{type(error).__name__}: {error}", delay_s=self.options.delay_s(job.message.failures)) from error
            raise Bury(f"{type(error).__name__}: {error}") from error

    def __repr__(self) -> str:
        return f"<@task: {self.name}>"


def put_options(options: Mapping[str, Any], of_task: TaskOptions, app: "Celery") -> dict[str, Any]:
    """The options of `Queue.put` for those of `apply_async`."""
    only("apply_async", "serializer", options.get("serializer", "json"), ["json"], JSON_ONLY)
    if options.get("countdown") is not None and options.get("eta") is not None:
        raise ValueError("apply_async: give countdown= or eta=, not both")
    fields: dict[str, Any] = {"id": options.get("task_id") or new_id(), "priority": app.conf.task_default_priority}
    if (priority := options.get("priority", of_task.priority)) is not None:
        fields["priority"] = priority
    wait_s = float(options.get("countdown") or 0.0)
    if (eta := options.get("eta")) is not None:
        fields["at"] = app.aware(eta)
        wait_s = max(0.0, (fields["at"] - datetime.now(UTC)).total_seconds())
    elif wait_s:
        fields["delay_s"] = wait_s
    if (expires := options.get("expires", of_task.expires)) is not None:
        left_s = _expires_in(expires, app) - wait_s
        if left_s <= 0:
            raise ValueError("apply_async: expires= is before the task would be due")
        fields["start_within_s"] = left_s
    most = of_task.most_retries
    if most is not None:
        fields["max_attempts"] = most + 1
    return fields


def _expires_in(expires: float | timedelta | datetime, app: "Celery") -> float:
    if isinstance(expires, datetime):
        return (app.aware(expires) - datetime.now(UTC)).total_seconds()
    return float(seconds(expires) or 0.0)
