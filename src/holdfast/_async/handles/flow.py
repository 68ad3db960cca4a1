"""Flows: jobs that depend on each other, put as one."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Raw, json

from holdfast._async.handles.job import AsyncJob
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, check_value_size
from holdfast.commands import Change, Clear, Item, Put, Together, Write
from holdfast.errors import NotAllowed
from holdfast.ids import new_id
from holdfast.workers.calls import Call, check_call, listed_calls
from holdfast.workers.flows.nodes import FLOW_TASK, FlowNode, Node, OnFailure, check_flow, encoded, graph_of, numbers_of, split_arguments
from holdfast.workers.flows.state import page_key
from holdfast.workers.steps.rows import digest, map_of

if TYPE_CHECKING:
    from holdfast._async.handles.tasks import AsyncTasks


class AsyncFlow:
    """Jobs that depend on each other: `add` calls, and `put` them as one job, which any worker of these tasks runs."""

    def __init__(self, app: "AsyncTasks", name: str, on_failure: OnFailure = "stop") -> None:
        self.name = name
        self.on_failure: OnFailure = on_failure
        self._app = app
        self._nodes: list[FlowNode] = []
        self._names: set[str] = set()

    def add(self, call: Call[Any], *, after: Sequence[Any] = (), name: str | None = None) -> Any:
        """Add a call of a task; what this returns stands for its result.

        Given as an argument of another call, that one is put when this one is done, with its result; a list of nodes stands for the list
        of their results. `after` names nodes that must be done before, whatever they return. The result of the flow has the
        result of each node by its name, by default its task's, with a number where several have the same.
        """
        check_call(call)
        number, task = len(self._nodes), self._app.find(call.task)
        plain, results = split_arguments(self, call.arguments)
        before = tuple(dict.fromkeys([*numbers_of(results), *(self._number(node) for node in after)]))
        item = task.message(call) if not results else task.message_without(encoded(plain))
        chosen = name or (call.task if call.task not in self._names else f"{call.task} {number + 1}")
        self._names.add(chosen)
        self._nodes.append(FlowNode(chosen, call.task, task.queue, item, results, before))
        return Node(self, number, chosen)

    def _number(self, node: Any) -> int:
        if not isinstance(node, Node) or node.flow is not self:
            raise ValueError(f"after= names nodes of the same flow, which add() returned, not {node!r}")
        return node.number

    async def put(self, *, id: str | None = None) -> AsyncJob[dict[str, Any]]:
        """Put it as one job, once under an `id`; ValueError if it cannot be run, or is larger than one job may be."""
        check_flow(self.name, self._nodes, self.on_failure)
        client: ControlPlaneClient = self._app.client
        queue, job_id = self._app.flow_queue, new_id() if id is None else id
        graph = map_of(queue, job_id, digest(new_id().encode()))
        pages = [Change(page_key(number), value=page) for number, page in graph_of(self._nodes).items()]
        for page in pages:
            check_value_size(page.value or b"", client.async_store.limits, f"flow {self.name!r}: a part of it")
        value = {"name": self.name, "graph": graph, "total": len(self._nodes), "on_failure": self.on_failure}
        item = Item(job_id, Raw(json.encode(value)), metadata=Raw(json.encode({"task": FLOW_TASK})))
        puts, _ = await client.async_store.execute(Together([Put(queue, [item]), Write(graph, pages)]))
        if not puts.created[0]:  # It is there already, with a graph of its own.
            with suppress(NotAllowed):  # Then a worker removes it later.
                await client.async_store.execute(Clear("dict", graph, drop=True))
        return AsyncJob(queue, puts.ids[0], codec=JSON, client=client)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {len(self)} nodes>"


class AsyncBatch:
    """Calls that are put together, and those that follow once all of them are done."""

    def __init__(self, flow: AsyncFlow, calls: Iterable[Call[Any]]) -> None:
        self._flow = flow
        self._last = [flow.add(call) for call in listed_calls(calls)]

    def then(self, *calls: Call[Any]) -> "AsyncBatch":
        """Add calls that are put once everything before them is done."""
        self._last = [self._flow.add(call, after=self._last) for call in calls]
        return self

    async def put(self) -> AsyncJob[dict[str, Any]]:
        """Put it as one job."""
        return await self._flow.put()


class AsyncFlows:
    """Makes flows of the tasks of one collection: `app.flow("invoice")`."""

    def __init__(self, app: "AsyncTasks") -> None:
        self._app = app

    def __call__(self, name: str = "flow", *, on_failure: OnFailure = "stop") -> AsyncFlow:
        """An empty flow.

        When a job of it fails for good, `stop` cancels what still runs and fails the flow, `run_all` runs everything that does not depend
        on it and fails then, and `hold` waits until the job was redriven and is done.
        """
        return AsyncFlow(self._app, name, on_failure)

    def batch(self, calls: Iterable[Call[Any]], *, name: str = "batch", on_failure: OnFailure = "stop") -> AsyncBatch:
        """Calls that are put together: `app.flow.batch(send.args(x) for x in people).then(report.args()).put()`."""
        return AsyncBatch(AsyncFlow(self._app, name, on_failure), calls)
