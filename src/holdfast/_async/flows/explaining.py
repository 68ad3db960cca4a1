"""Says why a message is not running, from its record, its queue, its group and the registry of workers."""

from msgspec.structs import replace

from holdfast._async.flows.browsing import find_messages
from holdfast._async.flows.job_status import job_status
from holdfast._async.flows.schedule_book import schedule_of
from holdfast._async.flows.ticking import now_of
from holdfast._async.flows.working.registering import workers
from holdfast.commands import Browse, Browsed, Filter, Groups, Names
from holdfast.errors import NotAllowed
from holdfast.records import Message
from holdfast.records.policies import Lane
from holdfast.results import Explanation
from holdfast.schedules.definition import status_of
from holdfast.schedules.entries import run_in, run_of
from holdfast.stores import AsyncStore
from holdfast.views.explanations import AHEAD_MOST, Surroundings, explain
from holdfast.workers.handlers.task_names import named_in
from holdfast.workers.registry import functions_of, shown_functions

WAITING = ("ready", "delayed", "turn")
"""Why a message is not running that a worker has to come for."""

NO_CONSUMER = "it names no task, and no living worker of the queue has a function for such messages"


async def explain_message(store: AsyncStore, queue: str, message_id: str) -> Explanation:
    """Why a message is not running."""
    found = await store.execute(Browse(queue, ids=[message_id]))
    said = await _explained(store, queue, message_id, found)
    if not found.messages:
        return await _with_schedule(store, said, queue, message_id)
    run = run_in(found.messages[0].metadata)
    if run is None:
        return said
    return replace(said, sentence=f"{said.sentence} It is the run of schedule {run.schedule!r} for {run.scheduled_for}.")


async def _explained(store: AsyncStore, queue: str, message_id: str, found: Browsed) -> Explanation:
    around = await _surroundings(store, queue, found.messages[0] if found.messages else None)
    said = explain(found, around, id=message_id, offset_us=store.wall_offset_us())
    if said.reason == "delayed" and (sleeping := await job_status(store, queue, message_id)).waiting_for is not None:
        return Explanation("delayed", f"It is a durable job that sleeps, and waits for {sleeping.waiting_for}.", sleeping.due_at)
    if said.reason not in WAITING:
        return said
    return await _with_workers(store, said, queue, named_in(found.messages[0].metadata).task)


async def _surroundings(store: AsyncStore, queue: str, message: Message | None) -> Surroundings:
    """What decides when the message is handed out."""
    named = (await store.execute(Names("queue", queue, limit=1, exact=True))).settings
    settings = named[0] if named else None
    if message is None:
        return Surroundings(settings)
    first = Browsed([])
    if message.state == "buffered" and isinstance(message.key, str):
        first = await store.execute(Browse(queue, keys=[message.key]))
    policy = settings.policy if settings is not None else None
    if policy is None or policy.groups is None or message.lane is None:
        line = await store.execute(Browse(queue, limit=AHEAD_MOST + 1))
        return Surroundings(settings, first.messages, line.messages)
    group = await store.execute(Groups(queue, prefix=message.lane, exact=True))
    lane = group.lanes[0] if group.lanes else Lane(queue, message.lane)
    claimed, head = list[Message](), Browsed([])
    if lane.live:
        # Only a group with a limit knows of claims, and only there do they matter.
        claimed = await find_messages(store, Browse(queue, state="leased", which=Filter(group=message.group or ""), limit=AHEAD_MOST))
    if policy.groups == "strict" and group.head is not None:
        head = await store.execute(Browse(queue, ids=[group.head]))
    return Surroundings(settings, first.messages, (), lane, claimed, next(iter(head.messages), None), group.ahead)


async def _with_schedule(store: AsyncStore, said: Explanation, queue: str, message_id: str) -> Explanation:
    """The explanation of a message that is not there, with the schedule that puts it, if its id is that of a run."""
    run = run_of(message_id)
    if run is None:
        return said
    name, moment = run
    try:
        stored = await schedule_of(store, name)
    except NotAllowed:
        return said
    if stored is None or stored.entry.queue != queue:
        return said
    status = status_of(name, stored.entry, await now_of(store), 0, ())
    until = None
    if moment <= stored.entry.last:
        known = "has put this run, or left it out, already"
    elif status.paused is not None:
        known = f"is paused, and puts no run until it is resumed; the reason given: {status.paused or 'none'}"
    elif status.next_run is None:
        known = "has no next run"
    else:
        until, known = status.next_run, f"has its next run at {status.next_run.isoformat()}"
    return replace(said, sentence=f"{said.sentence} Schedule {name!r} {known}.", until=until)


async def _with_workers(store: AsyncStore, said: Explanation, queue: str, task: str | None) -> Explanation:
    """The explanation of what a worker has to come for, with the workers that could, as far as the caller may see that."""
    try:
        living = await workers(store)
    except NotAllowed:
        return said
    serving = [one for one in living if one.serves(queue)]
    names = sorted({one.name for one in serving if task in one.tasks})
    if not serving:
        known = "no living worker serves the queue"
    elif task is None:
        functions = functions_of(serving, queue)
        if len(functions) == 1:
            return said
        known = f"its workers call different functions for it: {shown_functions(functions)}" if functions else NO_CONSUMER
    else:
        known = f"task {task!r} is known to: {', '.join(names)}" if names else f"no living worker of the queue knows task {task!r}"
    return replace(said, sentence=f"{said.sentence.removesuffix('.')}; {known}.")
