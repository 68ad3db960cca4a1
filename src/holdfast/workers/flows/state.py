"""What is kept of a flow that runs: how far it is, and one entry for each node whose turn has come.

The dict of a flow has its graph, page by page, and of each node how many nodes before it are still to be done, then that its job was put,
then its result, or why it has none. Only the holder of the flow's claim writes here. Jobs report in a dict of marks beside it; a report is
removed when it is recorded, so a run reads what is new, not what there is.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Raw, Struct, json

from holdfast.codec import JSON, encode_key, key_prefix
from holdfast.records import Entry, MaybeRaw
from holdfast.results import JobStep
from holdfast.workers.flows.nodes import NODES_MOST, PAGE_NODES, FlowNode
from holdfast.workers.steps.rows import Key

FLOW: Final[Key] = ("", "~flow", "", 0)
"""The one step of a job that is a flow."""

WAIT: Final[Key] = ("", "~wait", "", 0)
"""Where it is told that it was cancelled."""


class FlowState(Struct, frozen=True, omit_defaults=True):
    """How far a flow is."""

    graph: str
    """The dict with its nodes."""
    begun: int = 0
    """How many nodes were looked at for whether they wait for none."""
    pending: int = 0
    done: int = 0
    failed: int = 0
    cursor: tuple[int, int] | None = None
    """The mark of a job whose followers were too many for one step, and how many of them were counted down."""
    turn: int = 0
    """How often nodes that had failed were put again."""
    redriven: int = 0
    """The token of the last burial after which that was done."""
    at: float = 0.0
    """When something happened last, in seconds of the wall clock."""
    looked_at: float = 0.0
    """When all jobs that were put were last looked at."""

    @property
    def raw(self) -> Raw:
        """The state as it is stored."""
        return Raw(json.encode(self))


class Pending(Struct, frozen=True, array_like=True):
    """A node whose job was put."""

    name: str
    queue: str
    child_id: str
    mark: int
    at: float


class Done(Struct, frozen=True, array_like=True):
    """A node that is done."""

    name: str
    child_id: str
    result: MaybeRaw


class Failed(Struct, frozen=True, array_like=True):
    """A node that has no result."""

    name: str
    queue: str
    child_id: str
    message: str


decode_state: Callable[[bytes], FlowState] = json.Decoder(FlowState).decode
decode_pending: Callable[[bytes], Pending] = json.Decoder(Pending).decode
decode_done: Callable[[bytes], Done] = json.Decoder(Done).decode
decode_failed: Callable[[bytes], Failed] = json.Decoder(Failed).decode
_decode_page = json.Decoder(list[FlowNode]).decode
_decode_left = json.Decoder(int).decode

PENDING: Final = key_prefix(("pending",))
DONE: Final = key_prefix(("done",))
FAILED: Final = key_prefix(("failed",))


def marks_of(graph: str) -> str:
    """The dict in which the jobs of a flow report."""
    return f"{graph}.marks"


def page_key(number: int) -> str:
    """Where a page of nodes is kept."""
    return encode_key(("page", number))


def pending_key(number: int) -> str:
    """Where it is kept that the job of a node was put."""
    return encode_key(("pending", number))


def done_key(number: int) -> str:
    """Where the result of a node is kept."""
    return encode_key(("done", number))


def failed_key(number: int) -> str:
    """Where it is kept why a node has no result."""
    return encode_key(("failed", number))


def left_key(number: int) -> str:
    """Where it is kept how many nodes are to be done before a node, once some are."""
    return encode_key(("left", number))


def number_in(key: str) -> int:
    """The number of the node that an entry is about."""
    number: int = json.decode(key)[1]
    return number


def mark_of(turn: int, number: int) -> int:
    """Under which number the job of a node reports: one of an earlier turn is not taken for it."""
    return turn * NODES_MOST + number


def node_of(mark: int) -> int:
    """The node whose job reports under a number."""
    return mark % NODES_MOST


def page_keys(numbers: Iterable[int]) -> list[str]:
    """Where these nodes are kept."""
    return [page_key(page) for page in sorted({number // PAGE_NODES for number in numbers})]


def nodes_in(entries: Mapping[str, Entry], numbers: Iterable[int]) -> dict[int, FlowNode]:
    """These nodes, from entries that have their pages."""
    pages: dict[int, list[FlowNode]] = {}
    found: dict[int, FlowNode] = {}
    for number in numbers:
        page = number // PAGE_NODES
        if page not in pages:
            pages[page] = _decode_page(entries[page_key(page)].value)
        found[number] = pages[page][number % PAGE_NODES]
    return found


def left_in(entries: Mapping[str, Entry], number: int, node: FlowNode) -> int:
    """How many nodes are to be done before a node."""
    entry = entries.get(left_key(number))
    return len(node.after) if entry is None else _decode_left(entry.value)


NODE_STATES: Final = (PENDING, DONE, FAILED)
"""Under these prefixes are the nodes whose turn has come."""


def shown_node(prefix: str, entry: Entry) -> JobStep:
    """A node of a flow as a step of its job."""
    number = number_in(entry.key)
    if prefix == PENDING:
        pending = decode_pending(entry.value)
        at = datetime.fromtimestamp(pending.at, UTC)
        return JobStep(f"node {pending.name}", "called", number=number, child=pending.child_id, at=at)
    if prefix == DONE:
        done = decode_done(entry.value)
        result = None if done.result is None else JSON.decode(done.result)
        return JobStep(f"node {done.name}", "done", number=number, result=result, child=done.child_id)
    failed = decode_failed(entry.value)
    return JobStep(f"node {failed.name}", "failed", number=number, error=f"ChildFailed: {failed.message}", child=failed.child_id)
