# Generated from src/holdfast/workers/steps/_async/maps.py by tools/unasync.py; do not edit.
"""Many children of one durable job: put page by page, each reports by one mark, and the last of them wakes the parent."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, json

from holdfast.commands import Browse, Clear, Item, Put, Read, Write
from holdfast.errors import ChildFailed, JobFailed
from holdfast.records import Entry
from holdfast.workers.steps.called import MapCalls
from holdfast.workers.steps.map_reports import dead_changes, may_be_all, read_counts, reports_in
from holdfast.workers.steps.rows import CHILDREN, Key, Report, Row, digest, map_of
from holdfast.workers.steps.waits import Wait

if TYPE_CHECKING:
    from holdfast.workers.steps._sync.steps import Steps

PAGE: Final = 1_000
"""How many children one step puts."""

PAGE_BYTES: Final = 8 * 2**20

LOOK_MOST: Final = 500
"""How many missing children one look is about."""

MARKS: Final = 3_000

FIRST_LOOK_S: Final = 5.0
LAST_LOOK_S: Final = 300.0
CHILD_S: Final = 0.001
"""How long a parent sleeps for each child, at least, before it looks for dead ones: a look costs about as much as running them."""

ERROR_CHARACTERS: Final = 200


class Maps:
    """The maps of the job of one run."""

    def __init__(self, steps: "Steps") -> None:
        self._steps = steps

    def map(self, branch: str, calls: MapCalls) -> list[Any]:
        """The results of children, in the order of their calls; a `ChildFailed` stands for one that has none."""
        steps, history = self._steps, self._steps.history
        with steps.turns.active():
            steps.load()
            key = history.identify(branch, f"~map {calls.name}", calls.hash)
            row = steps.ask(key)
            marks = self._dict_of(key)
            looks = row is not None and row.count >= calls.total  # Not at those it puts now.
            if row is None or row.count < calls.total:
                row = self._put(key, row, calls, marks)
            own = (key[0], f"~mapped {calls.name}", key[2], key[3])
            if own in history.rows:
                steps.ask(own)  # It was cancelled here.
            reports: dict[int, Report] | None = None
            while row.state != "done":
                row, reports = self._await(key, own, row, marks, looks=looks)
                looks = True
            if reports is None:
                reports = self._reports(marks)
            return self._results(reports, row, calls)

    def dicts(self) -> list[str]:
        """The dicts in which children have reported."""
        return [self._dict_of(key) for key, row in self._steps.history.rows.items() if row.count]

    def _dict_of(self, key: Key) -> str:
        message = self._steps.history.message
        return map_of(message.queue, message.id, self._id_of(key))

    def _id_of(self, key: Key) -> str:
        head = self._steps.history.head
        return digest(json.encode((self._steps.history.message.id, head.run, head.redriven, key)))

    def _put(self, key: Key, row: Row | None, calls: MapCalls, marks: str) -> Row:
        queue, total = calls.queue, calls.total
        steps, own = self._steps, f"{self._steps.history.message.id}.{self._id_of(key)}"
        row = row or Row("called", child=(queue, own), at=time.time())
        while row.count < total:
            items = list(self._page(row.count, own, marks, calls))
            row = Row("called", child=(queue, own), at=time.time(), count=row.count + len(items))
            steps.record(key, row, also=[Put(queue, items)])
        if not total:
            row = Row("done", at=time.time())
            steps.record(key, row)
        return row

    def _page(self, start: int, own: str, marks: str, calls: MapCalls) -> Iterator[Item]:
        size = 0
        for number in range(start, min(start + PAGE, calls.total)):
            item = calls.item(number, f"{own}.{number}", marks)
            size += len(item.value)
            if size > PAGE_BYTES and number > start:
                return
            yield item

    def _await(self, key: Key, own: Key, row: Row, marks: str, *, looks: bool) -> tuple[Row, dict[int, Report]]:
        """Record that all have ended, or wait until it is worth another look; with what they reported, if they have."""
        steps, history = self._steps, self._steps.history
        if not history.inbox.is_known:
            steps.refresh()
        reports = self._all_reports(row, marks)
        if reports is None and looks:
            reports = self._find_dead(row, marks)
        if reports is None:
            waited_s = max(0.0, time.time() - (row.at or 0.0))
            due = history.setting.now() + min(max(waited_s, FIRST_LOOK_S, row.count * CHILD_S), LAST_LOOK_S)
            steps.rest(own, Wait(f"{row.count:,} jobs of queue {(row.child or ('', ''))[0]}", due, (CHILDREN,), looks=True))
            return row, {}
        failed = {number: (one.error or one.state)[:ERROR_CHARACTERS] for number, one in reports.items() if one.state != "done"}
        # What failed is recorded: a child that is redriven later must not change what this job has seen.
        done = Row("done", None if not failed else Raw(json.encode(failed)), child=row.child, at=time.time(), count=row.count)
        steps.record(key, done)
        return done, reports

    def _all_reports(self, row: Row, marks: str) -> dict[int, Report] | None:
        """What all children have reported; None while some have not."""
        if not may_be_all(self._steps.execute(read_counts(marks)), row.count):
            return None
        reports = self._reports(marks)
        return reports if len(reports) >= row.count else None  # One that was redriven is counted again.

    def _find_dead(self, row: Row, marks: str) -> dict[int, Report] | None:
        """Report for children that died where no one could, or are gone; what all have reported, if they have then."""
        steps = self._steps
        queue, own = row.child or ("", "")
        known = self._reports(marks)
        missing = [number for number in range(row.count) if number not in known]
        for start in range(0, len(missing), LOOK_MOST):
            some = missing[start : start + LOOK_MOST]
            browsed = steps.execute(Browse(queue, ids=[f"{own}.{number}" for number in some]))
            if browsed.more:
                continue
            found = {message.id: message for message in browsed.messages}
            dead: dict[int, Report] = {}
            for number in some:
                message = found.get(f"{own}.{number}")
                if message is None:
                    dead[number] = Report("failed", error="it was removed")
                elif message.state == "dead":
                    dead[number] = Report("failed", error=message.last_error or "its worker died every time")
            if dead:
                steps.execute(Write(marks, dead_changes(dead)))
        return self._all_reports(row, marks)  # One that reported meanwhile keeps its word.

    def _reports(self, marks: str) -> dict[int, Report]:
        """What children have reported, by their numbers."""
        found: list[Entry] = []
        after: str | None = None
        while True:
            page = self._steps.execute(Read(marks, after=after, limit=MARKS))
            found += page.entries
            if not page.more:
                return reports_in(found)
            after = page.entries[-1].key

    def _results(self, reports: dict[int, Report], row: Row, calls: MapCalls) -> list[Any]:
        queue, own = row.child or ("", "")
        results: list[Any] = [None] * calls.total
        for number, report in reports.items():
            if report.result is not None and number < calls.total:
                results[number] = calls.codec.decode(report.result)
        failed: dict[int, str] = {} if row.result is None else json.decode(row.result, type=dict[int, str])
        for number, error in failed.items():
            results[number] = ChildFailed(f"job {own}.{number} of queue {queue!r} has no result: {error}", queue, f"{own}.{number}")
        return results

    def dropping(self) -> list[Any]:
        """What removes the reports of all children."""
        return [Clear("dict", name, drop=True) for name in self.dicts()]


def raised(results: list[Any], on_failure: str) -> list[Any]:
    """The results, or the first failure raised."""
    if on_failure == "raise":
        for result in results:
            if isinstance(result, JobFailed):
                raise result
    return results
