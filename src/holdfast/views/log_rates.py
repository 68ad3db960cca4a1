"""What the events of a queue say about its work: how much, how fast, how long it waited, how often it failed."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field, json
from msgspec.structs import replace

from holdfast.records import Event, seconds_in
from holdfast.views.task_rates import TaskRates

LEAST = 60_000_000
"""A shorter course is not looked at."""

EVENTS_MOST = 20_000
"""So many events of one log count, and are remembered, at most."""

KEPT_BYTES = 32 * 1024 * 1024
EVENT_BYTES = 500
"""So much is remembered of all logs together; an event counts as its data and this."""

_SETTLED = {"done": "done", "ready": "returned"}
"""What an event `settled` counts, by where it says that the messages went; of those that are dead there is an event `buried`."""

_TOLD = ("put", "claimed", "settled", "expired", "buried")


class QueueRates(Struct, frozen=True):
    """What the event log says about the work of a queue, or of one group, in the last seconds."""

    window_s: float
    """How many seconds it is about: those asked for, or fewer where the log or the bound of one reading ends earlier."""
    is_whole: bool
    """Whether it is about all seconds asked for."""
    put: int = 0
    claimed: int = 0
    done: int = 0
    returned: int = 0
    """Claims whose messages went back: they were released, or failed and are tried again."""
    failed: int = 0
    """Claims that failed, or made their message a dead letter; not those that were released, and not those whose lease ended."""
    expired: int = 0
    """Claims whose lease ended."""
    buried: int = 0
    """Messages that became dead letters."""
    done_per_s: float = 0.0
    failed_share: float | None = None
    """Of the claims that were done, failed or expired, those that were not done. A release is none of these."""
    median_wait_s: float | None = None
    """From put to claim, of messages that were put and claimed for the first time in what was read; a delay is part of it."""
    p95_wait_s: float | None = None
    median_duration_s: float | None = None
    """From claim to settlement."""
    p95_duration_s: float | None = None


class Activity(Struct, frozen=True):
    """What the event log says about some queues in the last seconds: each by itself, and the sum of all in steps of equal length."""

    window_s: float
    """How many seconds it is about: those asked for, or fewer where the log or one reading ends earlier, or nothing was before."""
    step_s: float
    put: list[int]
    """In each step, the oldest first."""
    done: list[int]
    failed: list[int]
    """Claims that failed, and those whose lease ended."""
    queues: dict[str, QueueRates]
    tasks: dict[str, dict[str, TaskRates]] = {}
    """By queue and task, where they were asked for."""


class LogEnd(Struct, frozen=True):
    """Where a log stands: its newest event, and the moment at which that was the newest."""

    topic: str
    now: int
    newest: int


class LogPart(Struct, frozen=True):
    """The newest events of a queue, and whether they are all since a moment."""

    events: list[Event]
    is_whole: bool
    since: int
    now: int

    @property
    def window(self) -> int:
        """How far back they are all."""
        return self.now - (self.since if self.is_whole or not self.events else max(self.events[0].at, self.since))

    def rates(self, *, by_group: bool = False) -> dict[str, QueueRates]:
        """See `LogRates.result`."""
        rates = LogRates(by_group=by_group)
        rates.add(self.events, self.since)
        return rates.result(seconds_in(self.window), is_whole=self.is_whole)


class KnownLog(Struct, frozen=True):
    """The newest events of a log."""

    events: list[Event]
    since: int
    """They are all since this moment."""
    upto: int
    """And up to this number."""

    def longer(self, later: list[Event], upto: int) -> "KnownLog":
        """With those that came behind it."""
        return KnownLog([*self.events, *later], self.since, upto).cut(EVENTS_MOST)

    def cut(self, most: int) -> "KnownLog":
        """The newest of them, so many."""
        if len(self.events) <= most:
            return self
        events = self.events[-most:]
        return KnownLog(events, max(self.since, events[0].at), self.upto)

    def part(self, since: int, now: int, most: int) -> LogPart:
        """What they say about the time since a moment; so many events count."""
        log = self.cut(most)
        return LogPart(log.events, log.since <= since, since, now)


class LogMemory:
    """The newest events of the logs that were read last: a second read asks for what came since."""

    def __init__(self, whose: str = "", logs: OrderedDict[tuple[str, str], tuple[KnownLog, int]] | None = None) -> None:
        self._whose = whose
        self._logs = OrderedDict[tuple[str, str], tuple[KnownLog, int]]() if logs is None else logs

    def of(self, whose: str) -> "LogMemory":
        """The part of the memory for the logs of a namespace."""
        return LogMemory(whose, self._logs)

    def recall(self, topic: str, since: int, most: int) -> KnownLog | None:
        """What is known of a log, if that reaches back to a moment, or is as many events as count."""
        log, _ = self._logs.get((self._whose, topic), (None, 0))
        return log if log is not None and (log.since <= since or len(log.events) >= most) else None

    def keep(self, topic: str, log: KnownLog) -> None:
        """Remember a log, and forget those that were not read for the longest time."""
        size = sum(EVENT_BYTES + event.size_bytes for event in log.events)
        self._logs[self._whose, topic] = log, size
        self._logs.move_to_end((self._whose, topic))
        while sum(each for _, each in self._logs.values()) > KEPT_BYTES:
            self._logs.popitem(last=False)


def activity(parts: Mapping[str, LogPart], steps: int) -> Activity:
    """What queues did, in as many steps of the time for which all of them are known."""
    window = min((part.window for part in parts.values()), default=0)
    window = min(window, max(_first_seen(parts, window), LEAST))
    length = max(window // steps, 1)
    sums = [Counter[str]() for _ in range(steps)]
    for part in parts.values():
        in_step: list[list[Event]] = [[] for _ in sums]
        for event in part.events:
            if 0 <= (part.now - event.at) // length < steps:
                in_step[steps - 1 - (part.now - event.at) // length].append(event)
        for step, events in zip(sums, in_step, strict=True):
            rates = LogRates()
            rates.add(events, 0)
            step.update(rates.counts())
    return Activity(
        window_s=seconds_in(window),
        step_s=seconds_in(length),
        put=[step["put"] for step in sums],
        done=[step["done"] for step in sums],
        failed=[step["failed"] + step["expired"] for step in sums],
        queues={name: replace(part, since=part.now - window).rates()[""] for name, part in parts.items()},
    )


def _first_seen(parts: Mapping[str, LogPart], window: int) -> int:
    """How long ago the first of the events was."""
    return max((part.now - event.at for part in parts.values() for event in part.events if part.now - event.at < window), default=0)


class _Told(Struct):
    """What an event of a queue says about messages."""

    ids: list[str] = []
    groups: list[str | None] | None = None
    to: str = ""
    failed: bool = False
    started: bool = True
    """Whether what expired was a lease, and not the time to begin."""


_decode = json.Decoder(_Told).decode


class _Sums(Struct):
    counts: Counter[str] = field(default_factory=Counter)
    waits: list[int] = []
    durations: list[int] = []


class LogRates:
    """Adds up events in the order of their numbers."""

    def __init__(self, *, by_group: bool = False) -> None:
        self._by_group = by_group
        self._sums = dict[str, _Sums]()
        self._put_at = dict[str, int]()
        self._claimed_at = dict[str, int]()

    def add(self, events: Sequence[Event], since: int) -> None:
        """Count what happened from a moment on; what was before says since when messages waited and were claimed."""
        for event in events:
            if event.event in _TOLD:
                self._add(event, counts=event.at >= since)

    def _add(self, event: Event, *, counts: bool) -> None:
        told = _decode(event.data)
        if not told.started:
            return
        name = _SETTLED.get(told.to) if event.event == "settled" else event.event
        for message_id, group in _each(told):
            sums = self._of(group) if counts else _Sums()
            if name is not None:
                sums.counts[name] += 1
            if event.event == "put":
                self._put_at[message_id] = event.at
                continue
            if event.event == "claimed":
                self._claimed_at[message_id] = event.at
                if (put_at := self._put_at.pop(message_id, None)) is not None:
                    sums.waits.append(event.at - put_at)
                continue
            if event.event == "settled" and (told.failed or told.to == "dead"):
                sums.counts["failed"] += 1
            if (claimed_at := self._claimed_at.pop(message_id, None)) is not None and event.event == "settled":
                sums.durations.append(event.at - claimed_at)

    def counts(self) -> Counter[str]:
        """How often each thing happened, in all groups."""
        return sum((one.counts for one in self._sums.values()), Counter[str]())

    def _of(self, group: str | None) -> _Sums:
        name = (group or "") if self._by_group else ""
        found = self._sums.get(name)
        if found is None:
            found = self._sums[name] = _Sums()
        return found

    def result(self, window_s: float, *, is_whole: bool) -> dict[str, QueueRates]:
        """By group, "" for messages without one; all of the queue under "" where groups were not asked for."""
        sums = self._sums if self._by_group else {"": self._of(None)}
        return {name: _rates(one, window_s, is_whole=is_whole) for name, one in sorted(sums.items())}


def _each(told: _Told) -> Iterator[tuple[str, str | None]]:
    return zip(told.ids, told.groups or [None] * len(told.ids), strict=False)


def _rates(sums: _Sums, window_s: float, *, is_whole: bool) -> QueueRates:
    counts = sums.counts
    bad = counts["failed"] + counts["expired"]
    return QueueRates(
        put=counts["put"],
        claimed=counts["claimed"],
        done=counts["done"],
        returned=counts["returned"],
        failed=counts["failed"],
        expired=counts["expired"],
        buried=counts["buried"],
        window_s=window_s,
        is_whole=is_whole,
        done_per_s=counts["done"] / window_s if window_s else 0.0,
        failed_share=bad / (bad + counts["done"]) if bad or counts["done"] else None,
        median_wait_s=_seconds(sums.waits, 0.5),
        p95_wait_s=_seconds(sums.waits, 0.95),
        median_duration_s=_seconds(sums.durations, 0.5),
        p95_duration_s=_seconds(sums.durations, 0.95),
    )


def _seconds(spans: list[int], share: float) -> float | None:
    return seconds_in(sorted(spans)[int(len(spans) * share)]) if spans else None
