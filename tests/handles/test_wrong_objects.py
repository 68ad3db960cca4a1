"""An argument of the wrong kind is refused at once, in a sentence that says what is needed."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Backoff, ControlPlaneClient, Dict, Every, Limiter, Queue, Schedule, Tasks, Worker

app: Any = Tasks("objects", base_url="memory://")


def twice(value: int) -> int:
    return value * 2


double = app.task(name="double")(twice)


def queue() -> Any:
    return Queue.create("jobs", client=ControlPlaneClient("memory://"))


def shared() -> Any:
    return Dict.create("state", client=ControlPlaneClient("memory://"))


def schedule(what: Any, **options: Any) -> object:
    return Schedule("nightly", "@daily", what, base_url="memory://", **options)


def worker(**options: Any) -> object:
    return Worker(abs, "jobs", base_url="memory://", **options)


number: Any = 5
text: Any = "5"

A_CALL = r"a call of a task is needed, as task.args\(…\) gives it, not "

WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: double.put_many(["ann"]), A_CALL + r"'ann' \(str\)"),
    (lambda: double.put_many([double]), A_CALL + "<Task 'double' of queue 'default'>"),
    (lambda: double.put_many(double.args(1)), "a list of calls is needed"),
    (lambda: app.flow("sum").add(double), A_CALL),
    (lambda: app.flow.batch([1]), A_CALL),
    (lambda: app.schedule("@daily", abs), "a schedule is of a task, as @app.task makes it, not of "),
    (lambda: app.task(double), "<Task 'double' of queue 'default'> is a task, a worker or a consumer already"),
    (lambda: app.around(number), r"manager must be a function, not 5 \(int\)"),
    (lambda: app.on_put(number), r"hook must be a function, not 5 \(int\)"),
    (lambda: app.include(number), r"include takes another collection of tasks, not 5 \(int\)"),
    (lambda: schedule(double), r"a schedule puts \(queue, value\), or a call of a task .*, not <Task 'double'"),
    (lambda: schedule("jobs"), r"a schedule puts \(queue, value\), or a call of a task .*, not 'jobs'"),
    (lambda: schedule(("jobs", 1), tz=5), r"tz must be the name of a time zone, such as 'Europe/Vienna', not 5 \(int\)"),
    (lambda: Limiter("api", number, base_url="memory://"), r"rate must be a Rate, not 5 \(int\)"),
    (lambda: queue().ack(None), r"a claim, its `claim_id`, or a list of them is needed, not None \(NoneType\)"),
    (lambda: queue().ack([None]), r"a list of claims, or of their `claim_id`s, has None \(NoneType\) in it"),
    (lambda: queue().put_many({"to": "ann"}), "put_many takes a list of values, not one dict"),
    (lambda: queue().put_many(5), "put_many takes a list of values, not one int"),
    (lambda: queue().put(1, client=text), r"client must be a ControlPlaneClient, not '5' \(str\); a URL is given as base_url="),
    (lambda: Queue("jobs", client=text), "client must be a ControlPlaneClient"),
    (lambda: queue().put(1, base_url=number), "the URL of a store must be a str, such as 'sqlite:///jobs.db', not int"),
    (lambda: shared().update("ab"), r"update takes a dict, or a list of pairs of key and value, not 'ab' \(str\)"),
    (lambda: shared().update(None), r"update takes .*, not None \(NoneType\)"),
    (lambda: shared().update([1]), r"update takes .*: 1 \(int\) is not a pair"),
    (lambda: queue().put(1, metadata={1: 2}), r"metadata must be a mapping of texts to plain data, and {1: 2} has other keys"),
    (lambda: queue().put(1, metadata="x"), r"metadata must be a mapping of texts to plain data, not 'x' \(str\)"),
    (lambda: Backoff(text), r"first_s must be a number of seconds, not '5' \(str\)"),
    (lambda: worker(backoff=5), r"backoff must be a Backoff, not 5 \(int\)"),
    (lambda: worker(breaker=5), r"breaker must be a Breaker or None, not 5 \(int\)"),
    (lambda: worker(judge=5), r"judge must be a function or None, not 5 \(int\)"),
]


@pytest.mark.parametrize(("call", "why"), WRONG)
def test_an_object_of_the_wrong_kind_is_a_type_error(call: Callable[[], object], why: str) -> None:
    with pytest.raises(TypeError, match=f"^{why}"):
        call()


OUT_OF_BOUNDS: list[tuple[Callable[[], object], str]] = [
    (lambda: queue().put_many([1, 2], keys=["a"]), "keys must have one key, or None, for each value: there are 1 keys and 2 values"),
    (lambda: Backoff(-1), "first_s must be at least 0"),
    (lambda: Backoff(most_s=1e12), "most_s must be at least 0 and at most 3,153,600,000 seconds"),
    (lambda: Backoff(factor=-2.0), "factor must be at least 0, not -2.0"),
    (lambda: Backoff(jitter=5.0), "jitter must be a number from 0 to 1, not 5.0"),
    (lambda: app.run(queues={"default": 0}, until_empty=True), "the weight of queue 'default' must be a number more than 0, not 0"),
    (lambda: app.task(name="")(abs), "task name is empty; it must have 1 to 200 bytes"),
    (lambda: Every(hours=text), r"the parts of an interval are numbers, and not negative: Every\(hours='5'\)"),
]


@pytest.mark.parametrize(("call", "why"), OUT_OF_BOUNDS)
def test_a_value_out_of_bounds_is_a_value_error(call: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}"):
        call()
