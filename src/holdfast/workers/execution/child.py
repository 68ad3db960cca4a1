"""The code of a child process: one job at a time in its main thread; a second thread listens to the parent."""

import asyncio
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, cast

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from holdfast.codec import Codec, Limits
from holdfast.commands.together import AnyCommand
from holdfast.errors import HoldfastError
from holdfast.holding.hold import stack_of
from holdfast.records import Message
from holdfast.workers.execution.questions import Answer, Ask, AsyncPipeAccess, PipeAccess, Questions
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.handler import Handler, Performance, Rules
from holdfast.workers.handlers.jobs import JobContext, StopReason, stop_error
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.handlers.resources import Around, Resources
from holdfast.workers.handlers.tracebacks import trace_of
from holdfast.workers.steps.access import StepSetting

INTERRUPT = signal.SIGUSR1


class Assignment(Struct, tag=True, omit_defaults=True):
    """A job to run."""

    message: Message
    function: str
    """Its key in the settings."""
    is_unknown: bool = False
    stop: StopReason | None = None
    """Why it should not even begin."""


class Tell(Struct, tag=True):
    """Something for the process that runs a job: why it should stop, or that its stack is wanted."""

    token: int
    stop: StopReason | None = None


class Ready(Struct, tag=True):
    """It has found all functions, and can begin a job."""


class End(Struct, tag=True):
    """No job will follow: another process takes its place."""


class Report(Struct, tag=True):
    """How far a job is."""

    token: int
    progress: Raw


class Stack(Struct, tag=True):
    """Where a job is."""

    token: int
    text: str


class Ended(Struct, tag=True, omit_defaults=True):
    """How a job ended, and what is to happen with it."""

    token: int
    outcome: Outcome
    commands: list[AnyCommand] = []


class StepTerms(Struct):
    """What the steps of a task's jobs need to know in a child."""

    lease_s: float
    in_place_s: float
    version: Any
    versions: tuple[Any, ...]
    limits: Limits


class Setting(Struct):
    """What a child needs to know to run one function; it is pickled, and functions go by their names."""

    kind: type[Handler]
    module: str
    name: str
    codec: Codec | None
    rules: Rules
    steps: StepTerms
    around: tuple[Around, ...] = ()
    """What is done once around all jobs of the process."""

    def performance(self, resources: Resources) -> Performance:
        """The function with its rules, as this process finds it."""
        return Performance(self.kind(find(self.module, self.name), self.codec), self.rules, resources)


ToChild = Assignment | Tell | Answer | End
ToParent = Ready | Report | Stack | Ended | Ask

Settings = dict[str, Setting]
"""By the key of the function."""


def serve(settings: Settings, pipe: Connection) -> None:
    """Run jobs until the parent says no more; ends at once when the parent is gone."""
    faulthandler.enable()
    # The terminal sends a Ctrl-C to every process of the group: only the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Child(settings, pipe).work()


class Child:
    """One child process."""

    def __init__(self, settings: Settings, pipe: Connection) -> None:
        self._pipe = pipe
        # Now, not at its first job: what cannot be imported ends the child, which says so.
        # Each async job has an event loop of its own, so what belongs to one cannot be kept for the next.
        around = tuple(dict.fromkeys(manager for setting in settings.values() for manager in setting.around))
        self._resources = Resources(around, keeps_async=False)
        self._performances = {key: setting.performance(self._resources) for key, setting in settings.items()}
        self._steps = {key: setting.steps for key, setting in settings.items()}
        self._questions = Questions(self._say)
        # Guards the writing side of the pipe: reports come from the handler, stacks from the listener.
        self._lock = threading.Lock()
        self._job: JobContext | None = None
        self._can_be_interrupted = False
        self._cancel: Callable[[], object] | None = None
        self._assigned: SimpleQueue[tuple[JobContext, Performance, bool] | None] = SimpleQueue()
        self._main = threading.main_thread().ident or 0
        signal.signal(INTERRUPT, self._interrupt)

    def work(self) -> None:
        """Run what the parent sends, until it says that nothing follows."""
        self._say(Ready())
        threading.Thread(target=self._listen, name="holdfast-parent", daemon=True).start()
        while (assigned := self._assigned.get()) is not None:
            job, performance, is_unknown = assigned
            self._run(job, performance, unknown=is_unknown)
        self._resources.close()

    def _listen(self) -> None:
        decode = json.Decoder(ToChild).decode
        while True:
            try:
                told = decode(self._pipe.recv_bytes())
            except (EOFError, OSError):
                # The parent closed the pipe, or died; nobody would hear how the job ended.
                os._exit(0)
            if isinstance(told, Assignment):
                # Made here: what is said next may be about it.
                performance = self._performances[told.function]
                self._job = self._make_job(told, performance)
                self._assigned.put((self._job, performance, told.is_unknown))
            elif isinstance(told, Answer):
                self._questions.answer(told)
            elif isinstance(told, End):
                self._assigned.put(None)
            elif self._job is not None and self._job.token == told.token:
                self._tell(self._job, told)

    def _make_job(self, assignment: Assignment, performance: Performance) -> JobContext:
        terms, message = self._steps[assignment.function], assignment.message
        setting = StepSetting(
            access=PipeAccess(self._questions, message.token),
            async_access=AsyncPipeAccess(self._questions, message.token),
            now=time.monotonic,
            lease_s=terms.lease_s,
            in_place_s=terms.in_place_s,
            version=terms.version,
            versions=terms.versions,
            limits=terms.limits,
            codec=performance.handler.given_codec,
        )
        job = performance.handler.job(message, setting, time.monotonic())
        job.stop_reason = assignment.stop
        job.durable.owner = self
        return job

    def report(self, job: JobContext, progress: Raw) -> None:
        """Pass on how far a job is."""
        self._say(Report(job.token, progress))

    def settling(self, job: JobContext, result: Any) -> list[Any]:  # noqa: ARG002 - see `Owner`
        """Nothing settles a job here."""
        raise HoldfastError("job.done() is for functions that a worker runs in threads or as tasks, not in processes")

    def _tell(self, job: JobContext, told: Tell) -> None:
        if told.stop is None:
            self._say(Stack(told.token, stack_of(self._main)))
            return
        if told.stop == "cancelled" and job.durable.request_cancel():
            return
        job.stop_reason = job.stop_reason or told.stop
        # A signal, because it also ends a system call; its handler runs in the main thread.
        signal.pthread_kill(self._main, INTERRUPT)

    def _interrupt(self, *_: object) -> None:
        if self._can_be_interrupted and self._job is not None and self._job.stop_reason is not None:
            self._can_be_interrupted = False  # Once.
            if self._cancel is None:
                raise stop_error(self._job)
            self._cancel()

    def _run(self, job: JobContext, performance: Performance, *, unknown: bool) -> None:
        outcome = self._perform(job, performance, unknown=unknown)
        if job.raised is not None and outcome.how in ("failed", "buried"):
            outcome = replace(outcome, trace=trace_of(job.raised))
        self._job = None
        self._say(Ended(job.token, outcome, job.ending_commands(outcome.how)))

    def _perform(self, job: JobContext, performance: Performance, *, unknown: bool) -> Outcome:
        if isinstance(job, AsyncJobContext):
            return asyncio.run(self._perform_async(job, performance, unknown=unknown))
        try:
            self._can_be_interrupted = True
            outcome = performance.run(job, unknown=unknown)
            self._can_be_interrupted = False
        except BaseException as error:  # noqa: BLE001 - the interrupt came as the handler was just ending
            return performance.judged(error, job)
        return outcome

    async def _perform_async(self, job: AsyncJobContext, performance: Performance, *, unknown: bool) -> Outcome:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        # Not by a signal handler of the loop: when it goes, for a moment the signal would end the process.
        self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        self._can_be_interrupted = True
        try:
            return await performance.run_async(job, unknown=unknown)
        finally:
            self._can_be_interrupted = False
            self._cancel = None

    def _say(self, what: ToParent) -> None:
        # Cut in the middle by an interrupt, it would make nonsense of everything that is said after it.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {INTERRUPT})
        try:
            with self._lock:
                self._pipe.send_bytes(json.encode(what))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def name_of(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and name under which a child finds the function; ValueError if there is none.

    A decorated function is found through what it became: a worker of this very function.
    """
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    found: Any = import_module(module) if module else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function and getattr(found, "function", None) is not function:
        raise ValueError(f"{name or function!r} cannot run in processes: a child finds functions by name, at the top of a module")
    return module, name


def find(module: str, name: str) -> Callable[..., Any]:
    """The function of that name."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = getattr(found, "function", found)
    return function
