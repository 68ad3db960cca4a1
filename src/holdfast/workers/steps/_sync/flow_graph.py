# Generated from src/holdfast/workers/steps/_async/flow_graph.py by tools/unasync.py; do not edit.
"""The nodes of a flow in the store: what is kept of them, their jobs, and the reports of these."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import encode_key
from holdfast.commands import Browse, Change, Item, Read, Together, Write
from holdfast.records import Entry
from holdfast.workers.flows.nodes import FlowNode, filled, numbers_of
from holdfast.workers.flows.state import PENDING, Pending, decode_done, decode_pending, done_key, mark_of, marks_of, number_in
from holdfast.workers.names import failure_key, results_of
from holdfast.workers.steps._sync.families import LONGEST_ID, found_of
from holdfast.workers.steps.rows import Report, decode_report, digest

if TYPE_CHECKING:
    from holdfast.workers.steps._sync.steps import Steps

READ: Final = 2_000
"""How many entries one read brings."""

LOOK_MOST: Final = 500
"""How many jobs one look is about."""

NULL: Final = Raw(b"null")


class FlowGraph:
    """The graph of one flow."""

    def __init__(self, steps: "Steps", name: str) -> None:
        self.name = name
        self.marks = marks_of(name)
        self._steps = steps

    def read(self, keys: Iterable[str]) -> dict[str, Entry]:
        """The entries under these keys, as far as there are."""
        left, found = list(keys), dict[str, Entry]()
        while left:
            page = self._steps.execute(Read(self.name, left[:READ]))
            found |= {entry.key: entry for entry in page.entries}
            # An answer that was cut has those up to its last one.
            left = left[left.index(page.entries[-1].key) + 1 :] if page.more and page.entries else left[READ:]
        return found

    def pages(self, prefix: str, limit: int) -> Generator[list[Entry], None]:
        """The entries under a prefix, page by page."""
        after: str | None = None
        while True:
            page = self._steps.execute(Read(self.name, prefix=prefix, after=after, limit=limit))
            if page.entries:
                yield page.entries
            if not page.more:
                return
            after = page.entries[-1].key

    def first(self, prefix: str, limit: int) -> list[Entry]:
        """The first entries under a prefix."""
        found: list[Entry] = (self._steps.execute(Read(self.name, prefix=prefix, limit=limit))).entries
        return found

    def pending(self) -> Generator[dict[int, Pending], None]:
        """The nodes whose jobs were put, page by page."""
        for entries in self.pages(PENDING, LOOK_MOST):
            yield {number_in(entry.key): decode_pending(entry.value) for entry in entries}

    def reported(self, cursor: tuple[int, int] | None, limit: int) -> list[tuple[int, Report]]:
        """What jobs have reported and is not recorded; while one is half counted down, that one alone."""
        keys = None if cursor is None else [encode_key(cursor[0])]
        page = self._steps.execute(Read(self.marks, keys, limit=limit))
        return [(json.decode(entry.key), decode_report(entry.value)) for entry in page.entries]

    def maker(self, nodes: Mapping[int, FlowNode], turn: int, known: Mapping[int, Raw | None]) -> Callable[[int], Item]:
        """What makes the messages of these nodes; the results that they need are read, but for those that are known."""
        wanted = dict.fromkeys(one for node in nodes.values() for one in numbers_of(node.results) if one not in known)
        entries = self.read(done_key(number) for number in wanted)
        results = dict(known)
        for number in wanted:
            entry = entries.get(done_key(number))
            results[number] = None if entry is None else decode_done(entry.value).result
        return lambda number: self._item(nodes[number], mark_of(turn, number), results)

    def _item(self, node: FlowNode, mark: int, results: Mapping[int, Raw | None]) -> Item:
        message = self._steps.history.message
        values = {
            name: (results[one] or NULL) if isinstance(one, int) else Raw(json.encode([results[n] or NULL for n in one]))
            for name, one in node.results.items()
        }
        known = {} if node.item.metadata is None else json.decode(node.item.metadata, type=dict[str, Raw])
        metadata = Raw(json.encode(known | {"parent": [message.queue, message.id, self.marks, mark]}))
        parent = message.id if len(message.id) <= LONGEST_ID else digest(message.id.encode())
        child_id = f"{parent}.{self.name.rpartition('-')[2]}.{mark}"
        return replace(node.item, id=child_id, value=filled(node.item, values), metadata=metadata)

    def mark_dead(self, pending: Mapping[int, Pending], *, also_failed: bool) -> bool:
        """Report for jobs that ended where no one could: the store buried them, or they were removed. False if there are none."""
        has_found = False
        for queue, some in _by_queue(pending.values()).items():
            ids = [one.child_id for one in some]
            keys = [key for one in ids for key in (encode_key(one), failure_key(one))]
            # One step: what is gone by then has reported, or kept its result.
            browsed, results, marks = self._steps.execute(
                Together([Browse(queue, ids=ids), Read(results_of(queue), keys), Read(self.marks, [encode_key(one.mark) for one in some])])
            )
            if browsed.more or results.more:
                continue
            kept = {entry.key: entry.value for entry in results.entries}
            found = found_of(ids, {message.id: message for message in browsed.messages}, kept)
            reported = {entry.key for entry in marks.entries}
            changes = [
                Change(encode_key(one.mark), value=found[one.child_id].raw, expect="absent")
                for one in some
                if one.child_id in found and encode_key(one.mark) not in reported
                if also_failed or found[one.child_id].state == "done"
            ]
            if changes:
                self._steps.execute(Write(self.marks, changes))  # One that reported meanwhile keeps its word.
            has_found = has_found or bool(changes or reported)
        return has_found

    def asking_to_end(self, pending: Mapping[int, Pending]) -> list[Any]:
        """What asks these jobs to end."""
        return self._steps.family.asking({queue: [one.child_id for one in some] for queue, some in _by_queue(pending.values()).items()})


def _by_queue(pending: Iterable[Pending]) -> dict[str, Sequence[Pending]]:
    found: dict[str, list[Pending]] = {}
    for one in pending:
        found.setdefault(one.queue, []).append(one)
    return {**found}
