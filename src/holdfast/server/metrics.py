"""The server's counters, in the format of Prometheus.

Label values come from the table of routes and from names of queues, of which only so many are told apart: a client that makes up names
must not fill the memory.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.commands import Command as AnyCommand
from holdfast.commands import Stats, Write, Written
from holdfast.records import Receipt
from holdfast.server.effects import effects_of, parts_of
from holdfast.server.namespaces.names import Namespace
from holdfast.telemetry.meters import BUCKETS_S, FENCED, MESSAGES, OTHER, PROBLEMS, REQUEST_SECONDS, family_lines, histogram_lines

QUEUES: Final = 200
"""How many queues of each namespace are told apart."""

NAMESPACES: Final = 1_000
"""How many namespaces are; the queues of others are one."""

QUEUES_IN_ALL: Final = 5_000
"""Once so many are told apart, a namespace that comes then gets its share of them."""

COMMANDS: Final = 10_000
"""How many commands are remembered in case they come again; that is within a minute."""


class Metrics:
    """The counters of one server; used on its event loop alone."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._problems: Counter[str] = Counter()
        self._durations: dict[str, list[float]] = {}
        self._messages: Counter[tuple[str, str]] = Counter()
        self._queues: defaultdict[str, set[str]] = defaultdict(set)  # By the prefix of their namespace.
        self._told_apart = 0
        self._fenced = 0
        # The ids of the last commands, the oldest first.
        self._commands: OrderedDict[str, None] = OrderedDict()

    def answered(self, route: str, status: int, elapsed_s: float, problem: str | None) -> None:
        """Count a request that was answered."""
        self._requests[route, status] += 1
        REQUEST_SECONDS.tell(elapsed_s, route, str(status))
        if problem is not None:
            self._problems[problem] += 1
            PROBLEMS.tell(1, problem)
        spread = self._durations.get(route)
        if spread is None:
            # A count for each bucket and one beyond them, and the sum.
            spread = self._durations[route] = [0.0] * (len(BUCKETS_S) + 2)
        spread[bisect_left(BUCKETS_S, elapsed_s)] += 1
        spread[-1] += elapsed_s

    def executed(self, command: AnyCommand[Any], answer: object, prefix: str = "", last: Collection[Receipt] = ()) -> None:
        """Count what a command did to messages, and what a fence refused; in the store its queues have the prefix before their names.

        A command that comes again under its id, because its answer was lost, is carried out once and counted once.
        """
        if command.id and not self._is_new(command.id):
            return
        for effect in effects_of(command, answer, last):
            self._count(prefix, effect.queue, effect.op, effect.messages)
        for step, part in parts_of(command, answer):
            if isinstance(step, Write):
                fenced = sum(isinstance(written, Written) and written.because == "fence" for written in part)
                self._fenced += fenced
                FENCED.tell(fenced)

    def _is_new(self, command_id: str) -> bool:
        if command_id in self._commands:
            return False
        self._commands[command_id] = None
        if len(self._commands) > COMMANDS:
            self._commands.popitem(last=False)
        return True

    def _count(self, prefix: str, queue: str, op: str, count: int) -> None:
        if prefix not in self._queues and len(self._queues) >= NAMESPACES:
            prefix, queue = "", OTHER
        queues = self._queues[prefix]
        if queue not in queues:
            if len(queues) < (QUEUES if self._told_apart < QUEUES_IN_ALL else QUEUES_IN_ALL // NAMESPACES):
                queues.add(queue)
                self._told_apart += 1
            else:
                queue = OTHER
        self._messages[prefix + queue, op] += count
        MESSAGES.tell(count, prefix + queue, op)

    def text(self, gauges: Mapping[str, float], queues: Iterable[tuple[str, Stats]], namespace: Namespace | None = None) -> bytes:
        """All of it, with what is so at this moment; with a namespace, of messages only those of its queues."""
        messages = [((("queue", queue), ("op", op)), count) for queue, op, count in self._messages_of(namespace)]
        lines: list[str] = []
        lines += family_lines(
            "holdfast_requests_total", "counter", (((("route", r), ("status", str(s))), n) for (r, s), n in self._requests.items())
        )
        lines += family_lines("holdfast_problems_total", "counter", (((("code", code),), n) for code, n in self._problems.items()))
        lines += family_lines("holdfast_messages_total", "counter", messages)
        lines += family_lines("holdfast_fenced_rejections_total", "counter", [((), self._fenced)])
        durations = (((("route", route),), spread) for route, spread in self._durations.items())
        lines += histogram_lines("holdfast_request_duration_seconds", durations, BUCKETS_S)
        for name, value in gauges.items():
            lines += family_lines(name, "gauge", [((), value)])
        lines += queue_lines(list(queues))
        return ("\n".join(lines) + "\n").encode()

    def _messages_of(self, namespace: Namespace | None) -> Iterator[tuple[str, str, int]]:
        for (queue, op), count in self._messages.items():
            if namespace is None:
                yield queue, op, count
            elif namespace.has(queue):
                yield namespace.outside(queue), op, count


def queue_lines(queues: list[tuple[str, Stats]]) -> Iterator[str]:
    """How queues are at this moment."""
    states = ("ready", "delayed", "buffered", "leased", "dead")
    yield from family_lines(
        "holdfast_queue_messages",
        "gauge",
        (((("queue", name), ("state", state)), getattr(stats, state)) for name, stats in queues for state in states),
    )
    ages = ((name, stats.oldest_ready_s) for name, stats in queues)
    yield from family_lines(
        "holdfast_queue_oldest_age_seconds", "gauge", (((("queue", name),), age) for name, age in ages if age is not None)
    )
