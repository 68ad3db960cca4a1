"""Routes that run a flow for the caller: jobs and schedules as people see them, for clients in other languages and the dashboard.

Each is one row of `FLOWS`; the routes and the OpenAPI document follow from it. The commands of a flow pass the caller's reach, so it takes
the rights that the same flow takes in a Python client.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qs

from msgspec import Meta, Struct, json
from msgspec.structs import replace

from holdfast._async.flows.explaining import explain_message
from holdfast._async.flows.job_status import job_status, job_steps, retry
from holdfast._async.flows.rating import queues_activity, task_rates
from holdfast._async.flows.scheduling import page_of_statuses, put_now, set_paused
from holdfast._async.flows.working.cancelling import cancel
from holdfast.errors import NotAllowed
from holdfast.results import Explanation, JobStatus, JobStep
from holdfast.schedules.definition import ScheduleStatus
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.auth.callers import Caller, caller_of, who_asks
from holdfast.server.auth.guarded_store import Reach
from holdfast.server.load.answer_memory import Memory, Share
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.request_bodies import Bodies
from holdfast.server.routes.templates import names_of
from holdfast.stores import AsyncStore
from holdfast.stores.http.protocol import PREFIX
from holdfast.views.log_rates import Activity, LogMemory

Names = dict[str, str]

_encode = json.Encoder(enc_hook=repr).encode

QUEUES_MOST: Final = 20
"""Of so many queues the activity is asked for at once: their events are read for it."""

SCHEDULES_MOST: Final = 1_000
"""So many schedules are told at once."""


class NoBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Says nothing more."""


class Reason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why something is done."""

    reason: str = ""


class Force(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a durable job is removed with all that is recorded of it, instead of being asked to end."""

    force: bool = False


class Recently(Struct, frozen=True, forbid_unknown_fields=True):
    """Some queues, and for how many seconds back."""

    queues: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=QUEUES_MOST)]
    since_s: Annotated[float, Meta(gt=0, le=86_400)] = 3_600.0
    tasks: bool = False
    """Whether to tell of their tasks, too: to those who may read the registry of workers."""


class JobView(Struct, frozen=True):
    """A job as it stands, what is recorded of its steps, and why it is not running."""

    status: JobStatus
    steps: list[JobStep]
    explanation: Explanation


class Cancelled(Struct, frozen=True):
    """What became of the request: the job was removed, its worker was asked to end it, or it is not there."""

    became: Literal["cancelled", "requested", "absent"]


class Retried(Struct, frozen=True):
    """Whether the job was dead and has another chance."""

    retried: bool


class Run(Struct, frozen=True):
    """The job that was put."""

    queue: str
    id: str


class FlowReach(Reach):
    """The store as one caller may use it, and what this server remembers of the logs in their namespace."""

    def __init__(self, store: AsyncStore, caller: Caller, tenants: Tenants, share: Share, *, logs: LogMemory) -> None:
        super().__init__(store, caller, tenants, share)
        self.logs: LogMemory = logs.of(caller.namespace.prefix)


async def look_at_activity(store: FlowReach, names: Names, body: Recently) -> Activity:
    """What some queues did lately: their rates, and how many messages were put, done and failed in steps of time."""
    del names
    found = await queues_activity(store, body.queues, body.since_s, store.logs)
    if body.tasks:
        with suppress(NotAllowed):
            return replace(found, tasks=await task_rates(store, body.queues, body.since_s, store.logs))
    return found


async def look_at_job(store: AsyncStore, names: Names, _: NoBody) -> JobView:
    """A job: its status, its steps, and why it is not running."""
    queue, job = names["queue"], names["id"]
    return JobView(await job_status(store, queue, job), await job_steps(store, queue, job), await explain_message(store, queue, job))


async def cancel_job(store: AsyncStore, names: Names, body: Force) -> Cancelled:
    """Cancel a job: remove it if it waits, ask its worker if it runs."""
    return Cancelled(await cancel(store, names["queue"], names["id"], force=body.force))


async def retry_job(store: AsyncStore, names: Names, _: NoBody) -> Retried:
    """Give a dead job another chance."""
    return Retried(await retry(store, names["queue"], names["id"]))


async def list_schedules(store: AsyncStore, names: Names, _: NoBody) -> list[ScheduleStatus]:
    """The schedules by name, with their last and next runs; behind the name `after`, `limit` of them at most."""
    limit = names.get("limit", str(SCHEDULES_MOST))
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= SCHEDULES_MOST:
        raise ValueError(f"limit must be a number from 1 to {SCHEDULES_MOST:,}")
    return await page_of_statuses(store, names.get("prefix", ""), names.get("after"), int(limit))


async def pause_schedule(store: AsyncStore, names: Names, body: Reason) -> NoBody:
    """Pause a schedule: no run is put until it is resumed."""
    await set_paused(store, names["name"], body.reason)
    return NoBody()


async def resume_schedule(store: AsyncStore, names: Names, _: NoBody) -> NoBody:
    """Resume a schedule with its next run after now."""
    await set_paused(store, names["name"], None)
    return NoBody()


async def run_schedule(store: AsyncStore, names: Names, _: NoBody) -> Run:
    """Put a run of a schedule now."""
    return Run(*await put_now(store, names["name"]))


class FlowSpec(Struct, frozen=True):
    """A flow over HTTP; its docstring is its summary. A GET takes `query` as parameters, a POST takes a body."""

    method: Literal["GET", "POST"]
    path: str
    flow: Callable[[FlowReach, Names, Any], Awaitable[Any]]
    answers: Any
    body: type[Struct] = NoBody
    query: tuple[str, ...] = ()


JOB: Final = f"{PREFIX}/queues/{{queue}}/jobs/{{id}}"
SCHEDULES: Final = f"{PREFIX}/schedules"
FLOWS: Final = (
    FlowSpec("GET", JOB, look_at_job, JobView),
    FlowSpec("POST", f"{JOB}/cancel", cancel_job, Cancelled, Force),
    FlowSpec("POST", f"{JOB}/retry", retry_job, Retried),
    FlowSpec("POST", f"{PREFIX}/activity", look_at_activity, Activity, Recently),
    FlowSpec("GET", SCHEDULES, list_schedules, list[ScheduleStatus], query=("prefix", "after", "limit")),
    FlowSpec("POST", f"{SCHEDULES}/{{name}}/pause", pause_schedule, NoBody, Reason),
    FlowSpec("POST", f"{SCHEDULES}/{{name}}/resume", resume_schedule, NoBody),
    FlowSpec("POST", f"{SCHEDULES}/{{name}}/run", run_schedule, Run),
)


class FlowRoute:
    """Runs one flow on the store as the caller may use it."""

    def __init__(self, spec: FlowSpec, store: AsyncStore, tenants: Tenants, bodies: Bodies, memory: Memory) -> None:
        self._spec = spec
        self._decode = json.Decoder(spec.body).decode
        self._store = store
        self._tenants = tenants
        self._bodies = bodies
        self._memory = memory
        self._logs = LogMemory()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        asked = await self._bodies.decoded(scope, receive, self._decode) if self._spec.method == "POST" else NoBody()
        names = names_of(scope) | asked_for(scope, self._spec.query)
        share = Share(self._memory, who_asks(caller))
        try:
            found = _encode(await self._spec.flow(FlowReach(self._store, caller, self._tenants, share, logs=self._logs), names, asked))
        finally:
            share.leave()
        await answer(scope, send, 200, found, JSON_TYPE)


def asked_for(scope: Scope, allowed: tuple[str, ...]) -> Names:
    """The parameters of the query."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if unknown := query.keys() - set(allowed):
        takes = ", ".join(allowed) or "no parameters"
        raise ValueError(f"the query has {', '.join(sorted(unknown))}; this path takes {takes}")
    return {name: values[-1] for name, values in query.items()}
