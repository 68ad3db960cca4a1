"""Every number and flag that a handle takes is checked before anything is sent."""

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Dict, Election, Lock, Once, Queue, Worker
from holdfast.commands import Browse, Names

NAN, INF, HUGE = float("nan"), float("inf"), 10**30

BAD: dict[str, list[object]] = {
    "int": [True, 1.0, 1.5, NAN, INF, "3", HUGE, -HUGE, b"1", [1]],
    "float": [True, NAN, -1.0, -INF, "3", HUGE, 10**5000, 1j, [1]],
    "bool": [1, 0, "yes", 1.0, NAN],
}
"""By what the argument is annotated with."""

SIGNED = {"by", "priority", "last_index"}
FINITE = {"by", "rate_per_s"}
"""Numbers that are no seconds: these may be larger."""


class Handles:
    """One of each, on a store of their own."""

    def __init__(self) -> None:
        self.client = ControlPlaneClient("memory://")
        self.queue: Queue[Any] = Queue.create("jobs", client=self.client)
        self.dict: Dict[Any] = Dict.create("state", client=self.client)
        self.worker = Worker(print, queue="jobs", client=self.client)

    def lock(self, **options: Any) -> None:
        with Lock("a", client=self.client, **options):
            pass

    def election(self, **options: Any) -> None:
        Election("a", client=self.client, **options).campaign(timeout_s=0.0)

    def together(self, name: str, *given: Any, **options: Any) -> None:
        with self.client.together() as step:
            getattr(step, name)(*given, **options)


def entered(context: AbstractContextManager[Any]) -> None:
    with context:
        pass


CALLS: dict[str, tuple[Callable[..., Any], Callable[[Handles, dict[str, Any]], Any]]] = {
    "Queue.create": (Queue.create, lambda h, o: Queue.create("other", client=h.client, **o)),
    "Queue.configure": (Queue.configure, lambda h, o: h.queue.configure(**o)),
    "Queue.throttle": (Queue.throttle, lambda h, o: h.queue.throttle(**{"delay_s": 0.0} | o)),
    "Queue.groups": (Queue.groups, lambda h, o: h.queue.groups(**o)),
    "Queue.stats": (Queue.stats, lambda h, o: h.queue.stats(**o)),
    "Queue.rates": (Queue.rates, lambda h, o: h.queue.rates(**o)),
    "Queue.group_rates": (Queue.group_rates, lambda h, o: h.queue.group_rates(**o)),
    "Queue.task_rates": (Queue.task_rates, lambda h, o: h.queue.task_rates(**o)),
    "Queue.put": (Queue.put, lambda h, o: h.queue.put(1, **o)),
    "Queue.put_many": (Queue.put, lambda h, o: h.queue.put_many([1], **o)),
    "Queue.put_work": (Queue.put, lambda h, o: h.queue.put_work(1, **o)),
    "Queue.get": (Queue.get, lambda h, o: h.queue.get(**o)),
    "Queue.get_many": (Queue.get_many, lambda h, o: h.queue.get_many(**{"limit": 1} | o)),
    "Queue.claim": (Queue.claim, lambda h, o: h.queue.claim(claimer="w", **o)),
    "Queue.claim_many": (Queue.claim_many, lambda h, o: h.queue.claim_many(claimer="w", **{"limit": 1} | o)),
    "Queue.take": (Queue.take, lambda h, o: h.queue.take("k", claimer="w", **o)),
    "Queue.claimed": (Queue.claimed, lambda h, o: entered(h.queue.claimed(claimer="w", **o))),
    "Queue.claim_work": (Queue.claim_work, lambda h, o: h.queue.claim_work(claimer="w", **o)),
    "Queue.ack": (Queue.ack, lambda h, o: h.queue.ack([], **o)),
    "Queue.release": (Queue.release, lambda h, o: h.queue.release([], **o)),
    "Queue.renew": (Queue.renew, lambda h, o: h.queue.renew([], **{"lease_s": 1.0} | o)),
    "Queue.fail": (Queue.fail, lambda h, o: h.queue.fail([], **o)),
    "Queue.browse": (Queue.browse, lambda h, o: h.queue.browse(**o)),
    "Queue.cancel": (Queue.cancel, lambda h, o: h.queue.cancel(["a"], **o)),
    "Queue.dead_letters": (Queue.dead_letters, lambda h, o: h.queue.dead_letters(**o)),
    "Queue.redrive": (Queue.redrive, lambda h, o: h.queue.redrive(**o)),
    "Queue.prune_dead_letters": (Queue.prune_dead_letters, lambda h, o: h.queue.prune_dead_letters(**o)),
    "Queue.watch": (Queue.watch, lambda h, o: h.queue.watch(**o)),
    "Dict.delete": (Dict.delete, lambda h, o: h.dict.delete("k", **o)),
    "Dict.put": (Dict.put, lambda h, o: h.dict.put("k", 1, **o)),
    "Dict.put_if_absent": (Dict.put_if_absent, lambda h, o: h.dict.put_if_absent("k", 1, **o)),
    "Dict.update": (Dict.update, lambda h, o: h.dict.update({"k": 1}, **o)),
    "Dict.items": (Dict.items, lambda h, o: h.dict.items(**o)),
    "Dict.pages": (Dict.pages, lambda h, o: list(h.dict.pages(**o))),
    "Dict.pop": (Dict.pop, lambda h, o: h.dict.pop("k", **o)),
    "Dict.increment": (Dict.increment, lambda h, o: h.dict.increment("k", **o)),
    "Dict.compare_and_set": (Dict.compare_and_set, lambda h, o: h.dict.compare_and_set("k", None, 1, **o)),
    "Dict.update_with": (Dict.update_with, lambda h, o: h.dict.update_with("k", lambda _: 1, **o)),
    "Dict.acquire_lease": (Dict.acquire_lease, lambda h, o: h.dict.acquire_lease("k", holder="h", **o)),
    "Dict.lease": (Dict.lease, lambda h, o: entered(h.dict.lease("k", holder="h", **o))),
    "Dict.renew_lease": (Dict.renew_lease, lambda h, o: h.dict.renew_lease("k", lease_id="x", **o)),
    "Dict.leases": (Dict.leases, lambda h, o: h.dict.leases(**o)),
    "Dict.break_lease": (Dict.break_lease, lambda h, o: h.dict.break_lease("k", "stuck", **o)),
    "Dict.locked": (Dict.locked, lambda h, o: entered(h.dict.locked("k", holder="h", **o))),
    "Dict.try_become_leader": (Dict.try_become_leader, lambda h, o: h.dict.try_become_leader("k", holder="h", **o)),
    "Dict.watch": (Dict.watch, lambda h, o: h.dict.watch(**o)),
    "Lock": (Lock, lambda h, o: h.lock(**o)),
    "Lock.acquire": (Lock.acquire, lambda h, o: Lock("a", client=h.client).acquire(**o)),
    "Lock.break_": (Lock.break_, lambda h, o: Lock("a", client=h.client).break_("stuck", **o)),
    "Election.break_": (Election.break_, lambda h, o: Election("a", client=h.client).break_("stuck", **o)),
    "Election": (Election, lambda h, o: h.election(**o)),
    "Election.campaign": (Election.campaign, lambda h, o: Election("a", client=h.client).campaign(**o)),
    "Once": (Once, lambda h, o: Once("pay", client=h.client, **o)),
    "Once.run": (Once.run, lambda h, o: Once("pay", client=h.client).run("k", lambda: 1, **o)),
    "Worker.put": (Worker.put, lambda h, o: h.worker.put(1, **o)),
    "Worker.put_many": (Worker.put_many, lambda h, o: h.worker.put_many([1], **o)),
    "Worker.changed": (Worker.changed, lambda h, o: h.worker.changed(**o)),
    "Worker.run": (Worker.run, lambda h, o: h.worker.run(**{"until_empty": True, "signals": False} | o)),
    "Worker.stop": (Worker.stop, lambda h, o: h.worker.stop(**o)),
    "Job.result": (type(Worker(print, queue="q").job("a")).result, lambda h, o: h.worker.job("a").result(**o)),
    "Together.put": (Queue.put, lambda h, o: h.together("put", h.queue, 1, **o)),
    "Together.write": (Dict.put, lambda h, o: h.together("write", h.dict, "k", 1, **o)),
    "Together.increment": (Dict.increment, lambda h, o: h.together("increment", h.dict, "k", **o)),
    "Together.acquire_lease": (Dict.acquire_lease, lambda h, o: h.together("acquire_lease", h.dict, "k", **o)),
    "Together.renew_lease": (Dict.renew_lease, lambda h, o: h.together("renew_lease", h.dict, "k", lease_id="x", **o)),
}
"""Each call with the signature that says what it takes, and how to make it."""

ELSEWHERE = {"timeout_s", "poll_interval_s"}
"""What a step does not take."""


def arguments(call: str) -> Iterator[tuple[str, str, bool]]:
    """The numbers and flags of a call: name, kind, and whether None says something."""
    for name, parameter in inspect.signature(CALLS[call][0]).parameters.items():
        words = re.findall(r"\w+", re.sub(r"Callable\[\[.*?\], \w+\]", "", str(parameter.annotation)))
        kind = next((kind for kind in BAD if kind in words), None)
        if kind is not None and not (call.startswith("Together") and name in ELSEWHERE):
            yield name, kind, "None" in words


def refused(handles: Handles, call: str, name: str, value: object) -> bool:
    try:
        CALLS[call][1](handles, {name: value})
    except (TypeError, ValueError) as error:
        return name in str(error)
    return False


@pytest.mark.parametrize("call", CALLS)
def test_a_call_refuses_numbers_and_flags_of_the_wrong_kind_and_names_them(call: str) -> None:
    handles = Handles()
    taken = []
    for name, kind, is_optional in arguments(call):
        bad = BAD[kind] + ([] if is_optional else [None])
        if name in SIGNED | FINITE:
            bad = [value for value in bad if value not in (-1.0, HUGE)] + ([HUGE] if name not in FINITE else [INF])
        taken += [(name, value) for value in bad if not refused(handles, call, name, value)]
    assert taken == [], f"{call} took these"
    assert handles.client.store.execute(Browse("jobs")).messages == []
    assert [one.name for one in handles.client.store.execute(Names("queue")).settings] == ["jobs"]
    assert handles.dict.length() == 0


def test_the_table_has_every_call_that_takes_a_number_or_a_flag() -> None:
    public = {
        f"{handle.__name__}.{name}": function
        for handle in (Queue, Dict, Lock, Election, Once, Worker)
        for name, function in inspect.getmembers(handle, inspect.isfunction)
        if not name.startswith("_")
    }
    numbered = {call for call, function in public.items() if re.search(": (int|float|bool)", str(inspect.signature(function)))}
    assert numbered - set(CALLS) == set()


class Priority(enum.IntEnum):
    HIGH = 10


class Integer:
    """As numpy's are: no int, and yet a whole number."""

    def __index__(self) -> int:
        return 7


def test_any_integer_type_is_taken_and_kept_as_an_int() -> None:
    handles = Handles()
    handles.queue.put("a", priority=Priority.HIGH, max_attempts=Integer())  # type: ignore[arg-type]
    (message,) = handles.client.store.execute(Browse("jobs")).messages
    assert (type(message.priority), message.priority) == (int, 10)
    assert (type(message.max_attempts), message.max_attempts) == (int, 7)


def test_any_real_number_of_seconds_is_taken() -> None:
    handles = Handles()
    handles.queue.put("a", delay_s=Fraction(1, 2), start_within_s=Priority.HIGH)  # type: ignore[arg-type]
    (message,) = handles.client.store.execute(Browse("jobs")).messages
    assert (message.position - message.created_at, message.start_by) == (500_000, message.position + 10_000_000)


@pytest.mark.parametrize("at", [5, 1.5, "2030-01-01", date(2030, 1, 1)])
def test_a_moment_that_is_no_datetime_is_a_type_error_with_help(at: Any) -> None:
    with pytest.raises(TypeError, match=r"at must be a datetime with a time zone.*delay_s"):
        Handles().queue.put("a", at=at)


def test_an_error_names_the_argument_the_range_and_the_value() -> None:
    with pytest.raises(ValueError, match=r"^maxsize must be a whole number from 1 to 2,147,483,647 or None, not 0$"):
        Queue.create("a", maxsize=0, client=Handles().client)
    with pytest.raises(TypeError, match=r"^max_attempts must be a whole number from 1 to 2,147,483,647 or None, not 1\.5 \(float\)$"):
        Handles().queue.put("a", max_attempts=1.5)  # type: ignore[arg-type]
