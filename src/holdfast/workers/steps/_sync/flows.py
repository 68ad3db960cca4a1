# Generated from src/holdfast/workers/steps/_async/flows.py by tools/unasync.py; do not edit.
"""Runs a flow: puts each job once those before it are done, and records how each ended."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import JSON, encode_key
from holdfast.commands import Change, Item, Put, Write
from holdfast.errors import ChildFailed
from holdfast.workers.flows.nodes import FlowNode, OnFailure, filled, numbers_of
from holdfast.workers.names import progress_of
from holdfast.workers.steps.rows import CHILDREN, Key, Report, Row
from holdfast.workers.steps.waits import Wait

if TYPE_CHECKING:
    from holdfast.workers.steps._sync.steps import Steps

PAGE: Final = 500
"""How many jobs one step puts, or records the end of."""

FIRST_LOOK_S: Final = 5.0
LAST_LOOK_S: Final = 300.0

WAIT: Final[Key] = ("", "~wait", "", 0)

PROGRESS_S: Final = 86_400.0
"""How long it is kept how far a flow is, without news."""


class FlowRun:
    """One run of the durable job that is a flow."""

    def __init__(self, steps: "Steps", nodes: Sequence[FlowNode], on_failure: OnFailure) -> None:
        self._steps = steps
        self._nodes = nodes
        self._on_failure = on_failure
        self._keys: list[Key] = [("", f"~node {node.task}"[:100], "", number) for number, node in enumerate(nodes)]

    def run(self) -> dict[str, Any]:
        """The results of all nodes by name; raises `ChildFailed` if some have none."""
        steps = self._steps
        with steps.turns.active():
            steps.load()
            for key in (*self._keys, WAIT):
                if key in steps.history.rows:
                    steps.ask(key)  # Raises where it was cancelled.
            while True:
                failed = [number for number in range(len(self._nodes)) if self._state(number) == "failed"]
                if failed and self._on_failure == "stop":
                    self._stop(failed)
                self._start()
                pending = [number for number in range(len(self._nodes)) if self._state(number) == "called"]
                if not pending:
                    return self._ended(failed)
                if not self._record_ends(pending):
                    self._rest(pending)

    def _state(self, number: int) -> str:
        row = self._steps.history.rows.get(self._keys[number])
        return "new" if row is None else row.state

    def _count(self, state: str) -> int:
        return sum(self._state(number) == state for number in range(len(self._nodes)))

    def _start(self) -> None:
        """Put the jobs of all nodes whose turn has come."""
        ready = [number for number in range(len(self._nodes)) if self._state(number) == "new" and self._is_ready(number)]
        for start in range(0, len(ready), PAGE):
            some = ready[start : start + PAGE]
            self._steps.check_cancelled(WAIT)
            items: dict[str, list[Item]] = {}
            rows: dict[Key, Row] = {}
            for number in some:
                node, item = self._nodes[number], self._item(number)
                items.setdefault(node.queue, []).append(item)
                rows[self._keys[number]] = Row("called", child=(node.queue, item.id), at=time.time())
            self._steps.record_all(rows, also=[*(Put(queue, puts) for queue, puts in items.items()), self._progress(0)])

    def _is_ready(self, number: int) -> bool:
        return all(self._state(before) == "done" for before in self._nodes[number].after)

    def _item(self, number: int) -> Item:
        node, message, rows = self._nodes[number], self._steps.history.message, self._steps.history.rows
        kept = {one: rows[self._keys[one]].result or Raw(b"null") for one in numbers_of(node.results)}
        results = {
            name: kept[one] if isinstance(one, int) else Raw(json.encode([kept[n] for n in one])) for name, one in node.results.items()
        }
        known = {} if node.item.metadata is None else json.decode(node.item.metadata, type=dict[str, Raw])
        metadata = Raw(json.encode(known | {"parent": [message.queue, message.id]}))
        return replace(node.item, id=self._steps.family.id_of(self._keys[number]), value=filled(node.item, results), metadata=metadata)

    def _record_ends(self, pending: Sequence[int]) -> bool:
        """Record how jobs ended; False if none of those that run has."""
        steps, history = self._steps, self._steps.history
        if not history.inbox.is_known:
            steps.refresh()
        if not any(self._report(number) for number in pending):
            steps.family.look()
        ended = [(number, report) for number in pending if (report := self._report(number)) is not None][:PAGE]
        if not ended:
            return False
        rows: dict[Key, Row] = {}
        for number, report in ended:
            queue, child_id = steps.family.named(self._keys[number])
            rows[self._keys[number]] = steps.family.row_of(report, queue, child_id)
        forget = [history.inbox.forget_report(steps.family.named(self._keys[number])[1]) for number, _ in ended]
        done = sum(row.state == "done" for row in rows.values())
        steps.record_all(rows, also=[Write(history.inbox.dict(history.message.queue), forget), self._progress(done)])
        return True

    def _progress(self, more: int) -> Write:
        """What says how far the flow is, for `Job.status`."""
        message = self._steps.history.message
        self._steps.history.has_progress = True
        progress = Raw(json.encode({"done": self._count("done") + more, "total": len(self._nodes)}))
        return Write(progress_of(message.queue), [Change(encode_key(message.id), value=progress, ttl_s=PROGRESS_S)])

    def _report(self, number: int) -> Report | None:
        report = self._steps.family.report_of(self._steps.family.named(self._keys[number])[1])
        if report is None or (self._on_failure == "hold" and report.state == "failed"):
            return None  # Who holds waits until the job was redriven, and is done.
        return report

    def _rest(self, pending: Sequence[int]) -> None:
        steps = self._steps
        since = min(steps.history.rows[self._keys[number]].at or 0.0 for number in pending)
        due = steps.history.setting.now() + min(max(time.time() - since, FIRST_LOOK_S), LAST_LOOK_S)
        names = ", ".join(self._nodes[number].name for number in pending[:3])
        more = ", …" if len(pending) > len(pending[:3]) else ""
        steps.rest(WAIT, Wait(f"{len(pending):,} of {len(self._nodes):,}: {names}{more}", due, (CHILDREN,), looks=True))
        steps.family.look_again()

    def _stop(self, failed: Sequence[int]) -> None:
        """Ask what still runs to end, and fail."""
        family, running = self._steps.family, [key for number, key in enumerate(self._keys) if self._state(number) == "called"]
        failure = self._failure(failed)
        if running:
            stopped = {key: family.row_of(Report("cancelled", error="the flow was stopped"), *family.named(key)) for key in running}
            self._steps.record_all(stopped, also=family.cancelling())
        raise failure

    def _failure(self, failed: Sequence[int]) -> ChildFailed:
        row = self._steps.history.rows[self._keys[failed[0]]]
        queue, child_id = row.child or ("", "")
        text = f"{len(failed):,} of {len(self._nodes):,} nodes failed; {self._nodes[failed[0]].name!r}: {row.message}"
        return ChildFailed(text, queue, child_id)

    def _ended(self, failed: Sequence[int]) -> dict[str, Any]:
        if failed:
            raise self._failure(failed)
        rows = [self._steps.history.rows[key] for key in self._keys]
        return {node.name: None if row.result is None else JSON.decode(row.result) for node, row in zip(self._nodes, rows, strict=True)}
