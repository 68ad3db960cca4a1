"""`rate_limit`: how often a task is started, over all workers."""

from typing import Any

import pytest

from holdfast import Queue, Rate
from holdfast.surfaces.celery import Celery, chain, group
from holdfast.surfaces.celery.rate_limits import rate_of


def work(celery: Celery) -> None:
    celery.holdfast.run(queues=["celery"], until_empty=True, signals=False, schedules=False)


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ("10/s", Rate(10, 1.0)),
        ("100/m", Rate(100, 60.0)),
        ("5/h", Rate(5, 3600.0)),
        ("0.5/s", Rate(1, 2.0)),
        ("10", Rate(10, 1.0)),
        (10, Rate(10, 1.0)),
        (None, None),
        (0, None),
        ("0/s", None),
    ],
)
def test_a_rate_limit_is_a_rate(given: Any, rate: Rate | None) -> None:
    assert rate_of(given) == rate


def test_a_task_is_started_as_often_as_its_rate_limit_says(celery: Celery) -> None:
    @celery.task(name="shop.call", rate_limit="1/h")
    def call(number: int) -> int:
        return number

    @celery.task
    def other() -> str:
        return "done"

    called = [call.delay(1), celery.send_task("shop.call", (2,)), chain(call.s(3), call.si(4)).delay()]
    others = group(other.s() for _ in range(3)).delay()
    work(celery)
    assert [one.state for one in called] == ["SUCCESS", "PENDING", "STARTED"]
    assert others.get(timeout=1) == ["done"] * 3


def test_the_default_rate_limit_is_that_of_each_task_without_its_own(celery: Celery) -> None:
    celery.conf.task_default_rate_limit = "1/h"
    runs: list[str] = []

    @celery.task(name="shop.call")
    def call() -> None:
        runs.append("call")

    @celery.task(name="shop.free", rate_limit=0)
    def free() -> None:
        runs.append("free")

    for task in (call, call, free, free):
        task.delay()
    work(celery)
    assert sorted(runs) == ["call", "free", "free"]


def test_a_task_that_is_known_by_name_alone_is_counted_too(celery: Celery) -> None:
    celery.send_task("shop.elsewhere")
    (message,) = Queue("celery", client=celery.client).browse()
    assert message.group == "shop.elsewhere"
