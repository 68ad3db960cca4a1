"""What runs the jobs of a worker, of all its queues: threads, tasks and processes, and who watches their time limits."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.client import ControlPlaneClient
from holdfast.codec import Limits
from holdfast.records import Message
from holdfast.workers.execution import Execution, Kind
from holdfast.workers.execution.tasks import TaskExecution
from holdfast.workers.execution.threads import ThreadExecution
from holdfast.workers.flows.builtin import flow_options
from holdfast.workers.flows.nodes import FLOW_TASK
from holdfast.workers.handlers.batches import BatchPerformance
from holdfast.workers.handlers.handler import Performance, Rules
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.handlers.resources import Resources
from holdfast.workers.handlers.task_names import named_in
from holdfast.workers.orders import Options, Orders
from holdfast.workers.running.runs import Run
from holdfast.workers.running.time_limits import Timekeeper
from holdfast.workers.steps.access import StepSetting, StoreAccess, step_setting


class Way(NamedTuple):
    """How the jobs of one function are run."""

    options: Options
    performance: Performance
    setting: StepSetting
    """What their steps need to know."""


class Pools:
    """Executions by kind, with the functions that they run; how a run ends is said to its crew."""

    now: Callable[[], float]

    def __init__(self, orders: Orders, client: ControlPlaneClient, limits: Limits) -> None:
        keepalive = client.keepalive
        self._orders = orders
        self._access = StoreAccess(client)
        self.now = keepalive.now
        self.unknown: Options = orders.table.unknown(orders.queues[0])
        self.flow: Options = flow_options(orders.queues[0], is_async=self.unknown.execution == "tasks")
        functions = [*orders.table.all(), self.unknown, self.flow]
        self._resources = Resources(orders.around, orders.overrides)
        self._ways = {
            options.key: Way(options, self._perform(options, limits), step_setting(options, orders, client, limits))
            for options in functions
        }
        self.timekeeper: Timekeeper = Timekeeper(self.now, keepalive.clock, _is_late, _is_too_late)
        self.executions: dict[Kind, Execution] = {kind: self._make_execution(kind) for kind in {options.execution for options in functions}}

    def _perform(self, options: Options, limits: Limits) -> Performance:
        kind = Performance if options.batch is None else BatchPerformance
        return kind(options.handler, self._rules(options, limits), self._resources)

    def _rules(self, options: Options, limits: Limits) -> Rules:
        keeps = options.results or options.idempotent
        codec, unknown_for_s = options.result_codec, self._orders.unknown_for_s
        return Rules(keeps, codec, limits, options.judge, options.reconcile, options.around, unknown_for_s)

    def find(self, message: Message) -> Way:
        """How to run a message."""
        found = self._orders.table.find(message)
        if found is None:
            found = self.flow if named_in(message.metadata).task == FLOW_TASK else self.unknown
        return self._ways[found.key]

    def _make_execution(self, kind: Kind) -> Execution:
        if kind == "processes":
            return self._make_processes()
        if kind == "tasks":
            return TaskExecution(self._orders.concurrency, self.timekeeper.began, _finish, self._resources.aclose)
        return ThreadExecution(self._orders.concurrency, self.timekeeper.began, _finish)

    def _make_processes(self) -> Execution:
        # Imported only now: most workers need none of it.
        from holdfast.workers.execution.child import Setting, StepTerms, name_of  # noqa: PLC0415
        from holdfast.workers.execution.lifetime import Lifetime  # noqa: PLC0415
        from holdfast.workers.execution.processes import ProcessExecution  # noqa: PLC0415

        settings = {}
        for options in self._orders.table.all():
            if options.execution == "processes":
                handler, rules = options.handler, self._ways[options.key].performance.rules
                of_steps = self._ways[options.key].setting
                steps = StepTerms(of_steps.lease_s, of_steps.in_place_s, of_steps.version, of_steps.versions, of_steps.limits)
                settings[options.key] = Setting(
                    type(handler), *name_of(handler.function), handler.given_codec, rules, steps, self._orders.around
                )
        orders = self._orders
        lifetime = Lifetime(orders.max_jobs_per_child, orders.max_rss_mb)
        return ProcessExecution(settings, orders.concurrency, self.timekeeper.began, _finish, access=self._access, lifetime=lifetime)

    def close(self) -> None:
        """End what runs handlers."""
        self.timekeeper.close()
        for execution in self.executions.values():
            execution.close()
        self._resources.close()

    async def aclose(self) -> None:
        """End what runs handlers, and what tasks of this event loop have used."""
        self.close()
        await self._resources.aclose()


def _finish(run: Run, outcome: Outcome) -> None:
    run.crew.finish(run, outcome)


def _is_late(run: Run) -> None:
    run.crew.is_late(run)


def _is_too_late(run: Run) -> None:
    run.crew.is_too_late(run)
