# Generated from src/holdfast/workers/steps/_async/flows.py by tools/unasync.py; do not edit.
"""Runs a flow: puts each job once those before it are done, and records how each ended.

A run reads the reports that are new and the nodes that they concern, so a flow costs as much as it has nodes and edges, however often it is
woken.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import JSON, encode_key
from holdfast.commands import Change, Item, Put, Together, Write
from holdfast.errors import ChildFailed
from holdfast.workers.flows.countdown import Countdown, End, failure, part_of, some_of
from holdfast.workers.flows.nodes import FlowNode, OnFailure
from holdfast.workers.flows.state import (
    DONE,
    FAILED,
    FLOW,
    PENDING,
    WAIT,
    FlowState,
    Pending,
    decode_done,
    decode_failed,
    decode_pending,
    decode_state,
    left_in,
    left_key,
    mark_of,
    node_of,
    nodes_in,
    number_in,
    page_keys,
    pending_key,
)
from holdfast.workers.names import progress_of
from holdfast.workers.steps._sync.families import FIRST_LOOK_S, LAST_LOOK_S
from holdfast.workers.steps._sync.flow_graph import READ, FlowGraph
from holdfast.workers.steps.rows import Row
from holdfast.workers.steps.waits import Wait

if TYPE_CHECKING:
    from holdfast.workers.steps._sync.steps import Steps

PAGE: Final = 500
"""How many jobs one step puts, or records the end of."""

PROGRESS_S: Final = 86_400.0
"""How long it is kept how far a flow is, without news."""

SHOWN: Final = 3
"""So many of the nodes that a flow waits for are named."""


class FlowRun:
    """One run of the durable job that is a flow."""

    def __init__(self, steps: "Steps", graph: str, total: int, on_failure: OnFailure) -> None:
        self._steps = steps
        self._graph = FlowGraph(steps, graph)
        self._total = total
        self._on_failure = on_failure
        self._state = FlowState(graph)
        self._has_moved = False

    def run(self) -> dict[str, Any]:
        """The results of all nodes by name; raises `ChildFailed` if some have none."""
        steps = self._steps
        with steps.turns.active():
            steps.load()
            steps.dicts += [self._graph.name, self._graph.marks]
            steps.before_cancelling = self._ask_to_end
            row = steps.ask(FLOW)
            if row is not None and row.result is not None:
                self._state = decode_state(row.result)
            if WAIT in steps.history.rows:
                steps.ask(WAIT)  # It was cancelled there.
            self._put_again()
            self._begin()
            while True:
                if self._state.failed and self._on_failure == "stop":
                    self._stop()
                elif not self._advance():
                    if not self._state.pending:
                        return self._results()
                    self._rest()

    def _begin(self) -> None:
        """Put the jobs of nodes that wait for none."""
        while (start := self._state.begun) < self._total:
            numbers = range(start, min(start + PAGE, self._total))
            nodes = nodes_in(self._graph.read(page_keys(numbers)), numbers)
            ready = {number: node for number, node in nodes.items() if not node.after}
            self._put(replace(self._state, begun=numbers.stop), ready)

    def _put_again(self) -> None:
        """Put the jobs of nodes that failed once more, after a redrive of the flow."""
        redriven = self._steps.history.head.redriven
        if redriven <= self._state.redriven:
            return
        turn = self._state.turn + 1
        for entries in self._graph.pages(FAILED, PAGE):
            numbers = [number_in(entry.key) for entry in entries]
            nodes = nodes_in(self._graph.read(page_keys(numbers)), numbers)
            state = replace(self._state, turn=turn, failed=self._state.failed - len(numbers))
            self._put(state, nodes, [Change(entry.key, "delete") for entry in entries])
        self._record(replace(self._state, turn=turn, redriven=redriven))

    def _put(self, state: FlowState, nodes: Mapping[int, FlowNode], changes: Sequence[Change] = ()) -> None:
        make = self._graph.maker(nodes, state.turn, {})
        self._record(state, changes, nodes, {number: make(number) for number in nodes})

    def _advance(self) -> bool:
        """Record what jobs have reported, and put what follows; False if nothing was reported."""
        state = self._state
        reports = dict(self._graph.reported(state.cursor, PAGE))
        if not reports:
            return self._look() if not self._has_moved or time.time() - state.looked_at > LAST_LOOK_S else False
        numbers = {mark: node_of(mark) for mark in reports}
        entries = self._graph.read([*(pending_key(number) for number in numbers.values()), *page_keys(numbers.values())])
        ends, stale = list[End](), list[int]()
        for mark, report in reports.items():
            entry = entries.get(pending_key(numbers[mark]))
            end = None if entry is None else End(mark, numbers[mark], decode_pending(entry.value), report)
            # Who holds waits until the job was redriven, and is done.
            if end is None or end.pending.mark != mark or (self._on_failure == "hold" and not end.is_done):
                stale.append(mark)
            else:
                ends.append(end)
        nodes = nodes_in(entries, [end.number for end in ends])
        self._count_down(some_of(ends, nodes), nodes, stale)
        return True

    def _count_down(self, ends: Sequence[End], nodes: Mapping[int, FlowNode], stale: Sequence[int]) -> None:
        """Record these ends, as far as one step goes, and put what follows."""
        state = self._state
        followers = {end.mark: nodes[end.number].followers if end.is_done else () for end in ends}
        counts = Counter(followers[end.mark][place] for end in ends for place in part_of(end, followers[end.mark], state.cursor))
        entries = self._graph.read([*map(left_key, counts), *page_keys(counts)])
        waiting = nodes_in(entries, counts)
        left = {number: left_in(entries, number, node) for number, node in waiting.items()}
        ready = {number: waiting[number] for number, count in counts.items() if left[number] <= count}
        make = self._graph.maker(ready, state.turn, {end.number: end.report.result for end in ends})
        countdown = Countdown(left, state.cursor)
        for end in ends:
            if not countdown.take(end, followers[end.mark], make):
                break
        done = sum(end.is_done for end in countdown.ended)
        failed = len(countdown.ended) - done
        state = replace(
            state,
            cursor=countdown.cursor,
            pending=state.pending - len(countdown.ended),
            done=state.done + done,
            failed=state.failed + failed,
        )
        gone = [Change(encode_key(mark), "delete") for mark in (*stale, *(end.mark for end in countdown.ended))]
        forget = [Write(self._graph.marks, gone)] if gone else []
        self._record(state, countdown.changes, waiting, countdown.puts, also=forget)

    def _record(
        self,
        state: FlowState,
        changes: Sequence[Change] = (),
        nodes: Mapping[int, FlowNode] | None = None,
        puts: Mapping[int, Item] | None = None,
        also: Sequence[Any] = (),
    ) -> None:
        """Record a new state together with all that belongs to it."""
        steps, now = self._steps, time.time()
        steps.check_cancelled(WAIT)
        queues: dict[str, list[Item]] = {}
        begun: list[Change] = []
        for number, item in (puts or {}).items():
            node = (nodes or {})[number]
            queues.setdefault(node.queue, []).append(item)
            pending = Pending(node.name, node.queue, item.id, mark_of(state.turn, number), now)
            begun.append(Change(pending_key(number), value=Raw(json.encode(pending))))
        state = replace(state, pending=state.pending + len(begun), at=now, looked_at=state.looked_at or now)
        commands: list[Any] = [Put(queue, items) for queue, items in queues.items()]
        if changes or begun:
            commands.append(Write(self._graph.name, [*changes, *begun]))
        steps.record(FLOW, Row("called", state.raw, at=now), also=[*commands, *also, self._progress(state)])
        self._state, self._has_moved = state, True

    def _progress(self, state: FlowState) -> Write:
        """What says how far the flow is, for `Job.status`."""
        message = self._steps.history.message
        self._steps.history.has_progress = True
        progress = Raw(json.encode({"done": state.done, "total": self._total}))
        return Write(progress_of(message.queue), [Change(encode_key(message.id), value=progress, ttl_s=PROGRESS_S)])

    def _look(self) -> bool:
        """Look at all jobs that were put, for those that ended unnoticed; False if there are none."""
        has_found, self._has_moved = False, True
        for pending in self._graph.pending():
            has_found |= self._graph.mark_dead(pending, also_failed=self._on_failure != "hold")
        self._state = replace(self._state, looked_at=time.time())
        self._steps.record(FLOW, Row("called", self._state.raw, at=time.time()))
        return has_found

    def _rest(self) -> None:
        """Sleep until a job reports, or until it is time to look."""
        state = self._state
        due = self._steps.history.setting.now() + min(max(time.time() - state.at, FIRST_LOOK_S), LAST_LOOK_S)
        names = ", ".join(decode_pending(entry.value).name for entry in self._graph.first(PENDING, SHOWN))
        what = f"{state.pending:,} of {self._total:,}: {names}{', …' if state.pending > SHOWN else ''}"
        self._steps.rest(WAIT, Wait(what, due, looks=True, marks=self._graph.marks))
        self._has_moved = False

    def _ask_to_end(self) -> None:
        """Ask the jobs that were put to end."""
        for pending in self._graph.pending():
            commands = self._graph.asking_to_end(pending)
            if commands:
                self._steps.execute(Together(commands))

    def _stop(self) -> None:
        """Ask what still runs to end, and fail."""
        for pending in self._graph.pending():
            stopped = [failure(number, one, "the flow was stopped") for number, one in pending.items()]
            gone = [Change(pending_key(number), "delete") for number in pending]
            state = replace(self._state, pending=self._state.pending - len(gone), failed=self._state.failed + len(gone))
            self._record(state, [*gone, *stopped], also=self._graph.asking_to_end(pending))
        raise self._failure()

    def _failure(self) -> ChildFailed:
        (entry,) = self._graph.first(FAILED, 1)
        failed = decode_failed(entry.value)
        text = f"{self._state.failed:,} of {self._total:,} nodes failed; {failed.name!r}: {failed.message}"
        return ChildFailed(text, failed.queue, failed.child_id)

    def _results(self) -> dict[str, Any]:
        if self._state.failed:
            raise self._failure()
        found: dict[int, Any] = {}
        for entries in self._graph.pages(DONE, READ):
            found |= {number_in(entry.key): decode_done(entry.value) for entry in entries}
        done = [found[number] for number in sorted(found)]
        return {one.name: None if one.result is None else JSON.decode(one.result) for one in done}
