"""The nodes of a flow: which job is put, after which others, and with whose results."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from holdfast.codec import check_name
from holdfast.commands import Item
from holdfast.workers.steps.rows import encode_plain

FLOW_TASK: Final = "holdfast.flow"
"""The name of the task that runs flows."""

NODES_MOST: Final = 10_000
BYTES_MOST: Final = 8 * 2**20
"""How many nodes a flow has at most, and how large all of them are."""

PAGE_NODES: Final = 25
"""So many nodes of a flow are kept in one entry."""

OnFailure = Literal["stop", "run_all", "hold"]


class FlowNode(Struct, frozen=True, omit_defaults=True):
    """One job of a flow, as it is kept."""

    name: str
    task: str
    queue: str
    item: Item
    """The message to put; its value lacks the arguments that are results of others."""
    results: Mapping[str, int | tuple[int, ...]] = {}
    """By parameter the node whose result it is, or those of whose results it is a list."""
    after: tuple[int, ...] = ()
    """The nodes that must be done before."""
    followers: tuple[int, ...] = ()
    """The nodes that this one must be done before."""


class Node:
    """Stands for the result of a job of a flow, as an argument of another one."""

    def __init__(self, flow: object, number: int, name: str) -> None:
        self.flow = flow
        self.number = number
        self.name = name

    def __repr__(self) -> str:
        return f"<Node {self.name!r}>"


Results = Mapping[str, int | tuple[int, ...]]


def split_arguments(flow: object, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Results]:
    """The plain arguments of a call, and those that are results of other nodes, or lists of them."""
    plain: dict[str, Any] = {}
    results: dict[str, int | tuple[int, ...]] = {}
    for name, value in arguments.items():
        if isinstance(value, Node):
            results[name] = _number_in(flow, name, value)
        elif isinstance(value, list | tuple) and any(isinstance(one, Node) for one in value):
            results[name] = tuple(_number_in(flow, name, one) for one in value)
        else:
            plain[name] = value
    return plain, results


def _number_in(flow: object, name: str, node: Any) -> int:
    if not isinstance(node, Node):
        raise TypeError(f"argument {name!r} is a list of nodes and of {node!r}: give the other values as an argument of their own")
    if node.flow is not flow:
        raise ValueError(f"argument {name!r} is a node of another flow: add its call to this one")
    return node.number


def numbers_of(results: Results) -> list[int]:
    """The nodes whose results these are, each once."""
    return list(dict.fromkeys(number for one in results.values() for number in ((one,) if isinstance(one, int) else one)))


def encoded(arguments: Mapping[str, Any]) -> Raw:
    """Arguments of a node as they are kept, without those that are not known yet."""
    return Raw(encode_plain(dict(arguments)))


def filled(item: Item, results: dict[str, Raw]) -> Raw:
    """The value of a node's message with the results of others."""
    if not results:
        return item.value
    return Raw(json.encode(json.decode(item.value, type=dict[str, Raw]) | results))


def check_flow(name: str, nodes: Sequence[FlowNode], on_failure: str) -> None:
    """Refuse what cannot be run."""
    check_name(name, "flow")
    if on_failure not in ("stop", "run_all", "hold"):
        raise ValueError(f"on_failure must be one of 'stop', 'run_all', 'hold', not {on_failure!r}")
    if not 1 <= len(nodes) <= NODES_MOST:
        raise ValueError(f"a flow has 1 to {NODES_MOST:,} nodes, not {len(nodes):,}")
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two nodes of flow {name!r} are called {twice!r}: give one of them another name=")
    refuse_cycles(name, [node.after for node in nodes])


def graph_of(nodes: Sequence[FlowNode]) -> dict[int, Raw]:
    """The nodes as they are kept: page by page, each with those that follow it."""
    followers: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        for before in node.after:
            followers.setdefault(before, []).append(number)
    linked = [replace(node, followers=tuple(followers.get(number, ()))) for number, node in enumerate(nodes)]
    pages = range(0, len(linked), PAGE_NODES)
    graph = {start // PAGE_NODES: Raw(json.encode(linked[start : start + PAGE_NODES])) for start in pages}
    size = sum(len(page) for page in graph.values())
    if size > BYTES_MOST:
        raise ValueError(
            f"a flow is {size:,} bytes encoded, more than the limit of {BYTES_MOST:,}; give its jobs references instead of values"
        )
    return graph


def refuse_cycles(name: str, after: Sequence[Iterable[int]]) -> None:
    """Raise `ValueError` if some nodes wait for each other."""
    left = [len(set(before)) for before in after]
    behind: dict[int, list[int]] = {}
    for number, before in enumerate(after):
        for one in set(before):
            behind.setdefault(one, []).append(number)
    ready = [number for number, count in enumerate(left) if not count]
    done = 0
    while ready:
        done += 1
        for number in behind.get(ready.pop(), ()):
            left[number] -= 1
            if not left[number]:
                ready.append(number)
    if done < len(left):
        raise ValueError(f"flow {name!r} has nodes that wait for each other: leave out an edge")
