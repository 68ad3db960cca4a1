"""The meters of this process: counts and durations of its jobs and holds, as Prometheus and OpenTelemetry show them.

Only where the program itself has imported OpenTelemetry's metrics; nothing here does so first. A label has the name of a queue, of which
only so many are told apart: a program that makes up names must not fill the memory.
"""

import sys
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Protocol
from weakref import WeakSet

OPENTELEMETRY: Final = "opentelemetry.metrics"
BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG_BUCKETS_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)
SERIES: Final = 1_000
"""So many combinations of labels are told apart by each meter; the rest is one."""
OTHER: Final = "other"
CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]
Labels = tuple[tuple[str, str], ...]

# Guards the numbers of every meter.
_lock = threading.Lock()


class Meter:
    """One meter: a count, or a spread of durations in seconds."""

    def __init__(self, name: str, kind: Literal["counter", "histogram"], about: str, label_names: tuple[str, ...] = ()) -> None:
        self.name = name
        self.kind = kind
        self.about = about
        self._label_names = label_names
        self._series: dict[tuple[str, ...], list[float]] = {}
        self._instrument: Any = None
        if not label_names:  # Shown from the beginning.
            self._new(())

    def add(self, number: float, *values: str) -> None:
        """Count so much more."""
        with _lock:
            series = self._series.get(values) or self._new(values)
            series[0] += number
        self.tell(number, *values)

    def record(self, durations_s: Sequence[float], *values: str) -> None:
        """Add these durations to a spread."""
        with _lock:
            series = self._series.get(values) or self._new(values)
            for duration_s in durations_s:
                series[bisect_left(LONG_BUCKETS_S, duration_s)] += 1
            series[-1] += sum(durations_s)
        if OPENTELEMETRY in sys.modules:
            for duration_s in durations_s:
                self.tell(duration_s, *values)

    def _new(self, values: tuple[str, ...]) -> list[float]:
        if len(self._series) >= SERIES:
            values = (OTHER,) * len(values)
        # For a spread: a count for each bucket and one beyond them, and the sum.
        empty = [0.0] * (len(LONG_BUCKETS_S) + 2 if self.kind == "histogram" else 1)
        return self._series.setdefault(values, empty)

    def tell(self, number: float, *values: str) -> None:
        """Tell OpenTelemetry alone, if the program uses it, under the name that its conventions give."""
        if OPENTELEMETRY not in sys.modules:
            return
        if self._instrument is None:
            from opentelemetry import metrics  # noqa: PLC0415 - the program has it

            meter, name = metrics.get_meter("holdfast"), opentelemetry_name(self.name)
            if self.kind == "histogram":
                self._instrument = meter.create_histogram(name, "s", self.about, explicit_bucket_boundaries_advisory=LONG_BUCKETS_S).record
            else:
                self._instrument = meter.create_counter(name, "1", self.about).add
        self._instrument(number, dict(zip(self._label_names, values, strict=True)))

    def lines(self) -> Iterator[str]:
        """The meter in the format of Prometheus."""
        with _lock:
            found = [(tuple(zip(self._label_names, values, strict=True)), [*series]) for values, series in self._series.items()]
        if self.kind == "histogram":
            yield from histogram_lines(self.name, found, LONG_BUCKETS_S)
        else:
            yield from family_lines(self.name, self.kind, ((pairs, series[0]) for pairs, series in found))


class Watched(Protocol):
    """What has a part in a gauge."""

    def __hash__(self) -> int: ...

    def running_functions(self) -> int:
        """How many functions it runs at this moment."""
        ...


class Running:
    """The gauge of running functions by queue: nothing is counted until it is asked for, and then those who run them are asked."""

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        # One that is gone runs nothing; its queue is still shown.
        self._watched: dict[str, WeakSet[Watched]] = {}
        self._is_shown = False

    def watch(self, queue: str, watched: Watched) -> None:
        """Ask it, too, as long as it lives."""
        with _lock:
            name = queue if queue in self._watched or len(self._watched) < SERIES else OTHER
            self._watched.setdefault(name, WeakSet()).add(watched)
        self.tell()

    def tell(self) -> None:
        """Let OpenTelemetry ask, if the program uses it."""
        if self._is_shown or OPENTELEMETRY not in sys.modules:
            return
        from opentelemetry import metrics  # noqa: PLC0415 - the program has it

        self._is_shown = True
        observe = [lambda _: [metrics.Observation(number, dict(pairs)) for pairs, number in self._found()]]
        metrics.get_meter("holdfast").create_observable_up_down_counter(opentelemetry_name(self.name), observe, "1", self.about)

    def lines(self) -> Iterator[str]:
        """The gauge in the format of Prometheus."""
        yield from family_lines(self.name, "gauge", self._found())

    def _found(self) -> list[tuple[Labels, float]]:
        with _lock:
            asked = [(queue, list(watched)) for queue, watched in self._watched.items()]
        return [((("queue", queue),), float(sum(one.running_functions() for one in watched))) for queue, watched in asked]


JOBS: Final = Meter("holdfast_jobs_total", "counter", "Jobs by how they ended.", ("queue", "outcome"))
JOB_SECONDS: Final = Meter("holdfast_job_duration_seconds", "histogram", "How long functions ran.", ("queue",))
WAIT_SECONDS: Final = Meter("holdfast_job_wait_seconds", "histogram", "How long jobs were due before they were claimed.", ("queue",))
IN_FLIGHT: Final = Running("holdfast_jobs_in_flight", "Functions that are running.")
LATE_RENEWALS: Final = Meter("holdfast_late_renewals_total", "counter", "Renewals of claims and leases that failed and were tried again.")
LOST: Final = Meter("holdfast_holds_lost_total", "counter", "Claims and leases that were lost while they were held.")
OUTAGES: Final = Meter("holdfast_outages_total", "counter", "How often the store went away, or was away at the start.")

REQUEST_SECONDS: Final = Meter("holdfast_request_duration_seconds", "histogram", "How long requests took.", ("route", "status"))
PROBLEMS: Final = Meter("holdfast_problems_total", "counter", "Requests that were refused or failed, by reason.", ("code",))
MESSAGES: Final = Meter("holdfast_messages_total", "counter", "Messages by what was done to them.", ("queue", "op"))
FENCED: Final = Meter("holdfast_fenced_rejections_total", "counter", "Writes that a fence refused.")
"""Those of a server, which has numbers of its own for Prometheus: see `server.metrics`."""

METERS: Final[tuple[Meter | Running, ...]] = (JOBS, JOB_SECONDS, WAIT_SECONDS, IN_FLIGHT, LATE_RENEWALS, LOST, OUTAGES)


def text_of_meters() -> bytes:
    """All meters of this process, in the format of Prometheus."""
    return ("\n".join(line for meter in METERS for line in meter.lines()) + "\n").encode()


def opentelemetry_name(name: str) -> str:
    """`holdfast_job_duration_seconds` is `holdfast.job.duration` there: the unit is told apart, and counters need no suffix."""
    return name.removesuffix("_total").removesuffix("_seconds").replace("_", ".")


def family_lines(name: str, kind: Kind, samples: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """The lines of a count or a gauge."""
    yield f"# TYPE {name} {kind}"
    for pairs, value in samples:
        yield f"{name}{_shown(pairs)} {value!r}"


def histogram_lines(name: str, spreads: Iterable[tuple[Labels, list[float]]], buckets: tuple[float, ...]) -> Iterator[str]:
    """The lines of a spread: a count for each bucket and one beyond them, and the sum."""
    yield f"# TYPE {name} histogram"
    for pairs, spread in spreads:
        so_far = 0.0
        for bound, count in zip((*map(str, buckets), "+Inf"), spread, strict=False):
            so_far += count
            yield f"{name}_bucket{_shown((*pairs, ('le', bound)))} {so_far:g}"
        yield f"{name}_sum{_shown(pairs)} {spread[-1]!r}"
        yield f"{name}_count{_shown(pairs)} {so_far:g}"


def _shown(pairs: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
