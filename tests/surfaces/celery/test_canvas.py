"""Chains, groups and chords: what is passed on, what results say, what is refused, and a body that runs once."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Queue
from holdfast.errors import JobFailed
from holdfast.surfaces.celery import AsyncResult, Celery, GroupResult, chain, chord, group
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured
from tests.surfaces.celery import mortal


class Shop:
    """Tasks, and what they were called with."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.calls: list[Any] = []

        @app.task(name="add")
        def add(x: int, y: int = 0) -> int:
            self.calls.append((x, y))
            return x + y

        @app.task(name="total", ignore_result=True)
        def total(numbers: list[int], extra: int = 0) -> int:
            self.calls.append(numbers)
            return sum(numbers) + extra

        @app.task(name="fail")
        def fail(*args: Any) -> None:
            raise ValueError("no")

        @app.task(name="none")
        def none() -> None:
            self.calls.append("none")

        self.add, self.total, self.fail, self.none = add, total, fail, none

    def work(self) -> None:
        self.app.holdfast.run(queues=self.app.queues, until_empty=True, signals=False)


@pytest.fixture
def shop(celery: Celery) -> Shop:
    return Shop(celery)


@pytest.fixture(params=["worker", "eager"])
def either(request: pytest.FixtureRequest, shop: Shop) -> Shop:
    """Tasks that a worker runs, or that are run at once."""
    shop.app.conf.task_always_eager = request.param == "eager"
    return shop


def test_an_immutable_signature_is_not_given_the_result_before_it(either: Shop) -> None:
    results = [
        (either.add.s(1, 2) | either.add.si(10, 20)).delay(),
        (either.add.s(1, 2) | either.none.si() | either.add.si(5)).delay(),
        chord([either.add.s(1), either.add.s(2)], either.add.si(7))(),
    ]
    either.work()
    assert [one.get(timeout=1) for one in results] == [30, 5, 7]


def test_none_is_passed_on_like_any_result(either: Shop) -> None:
    seen: list[Any] = []

    @either.app.task(name="see")
    def see(*args: Any) -> None:
        seen.append(args)

    (either.none.s() | see.s("x")).delay()
    either.work()
    assert seen == [(None, "x")]


def test_a_chord_of_chains_gives_its_body_the_last_results(either: Shop) -> None:
    lines = [either.add.s(number, 1) | either.add.s(100) for number in range(3)]
    results = [
        chord(lines, either.total.s(extra=1))(),
        chord(lines)(either.total.s()),
        chord([], either.total.s())(),
        (either.add.s(1, 1) | group(either.add.s(1) | either.add.s(2), either.add.s(5)) | either.total.s() | either.add.s(1000)).delay(),
    ]
    either.work()
    assert [one.get(timeout=1) for one in results] == [306 + 1, 306, 0, 1012]


def test_groups_follow_each_other_in_a_chain(either: Shop) -> None:
    canvas = group(either.add.s(1), either.add.s(2)) | group(either.total.s(), either.total.s(10)) | either.total.s()
    result = canvas.delay(5)
    either.work()
    assert result.get(timeout=1) == 13 + 23


def test_the_results_of_a_group_are_those_of_its_members(shop: Shop) -> None:
    result = group(shop.add.s(1, 1), shop.add.s(2) | shop.add.s(3), shop.add.s(4)).delay()
    assert (len(result), result.ready(), result.waiting(), result.completed_count()) == (3, False, True, 0)
    assert [one.state for one in result.results] == ["PENDING"] * 3
    with pytest.raises(TimeoutError):
        result.results[0].get(timeout=0)
    shop.work()
    assert (result.ready(), result.successful(), result.failed(), result.completed_count()) == (True, True, False, 3)
    assert [one.get(timeout=1) for one in result] == result.join() == [2, 5, 4]
    assert [one.state for one in result.results] == ["SUCCESS"] * 3


def test_results_are_found_by_their_ids(shop: Shop) -> None:
    several, one = group(shop.add.s(1, 1), shop.add.s(2)).delay(), (shop.add.s(1) | shop.add.s(2)).delay()
    shop.work()
    assert GroupResult.restore(several.id, app=shop.app).get(timeout=1) == [2, 2]
    assert (AsyncResult(one.id).get(timeout=1), AsyncResult(one.id).state) == (3, "SUCCESS")
    with pytest.raises(ValueError, match="not the id of a group"):
        GroupResult.restore(one.id)


def test_a_member_that_fails_leaves_the_others_their_results(shop: Shop) -> None:
    result = group(shop.add.s(1, 1), shop.fail.s(), shop.total.s([1, 2])).delay()
    shop.work()
    assert (result.ready(), result.successful(), result.failed(), result.completed_count()) == (True, False, True, 2)
    with pytest.raises(JobFailed, match="ValueError: no"):
        result.get(timeout=1)
    first, failed, last = result.get(timeout=1, propagate=False)
    assert (first, last) == (2, 3)
    assert "ValueError: no" in str(failed)
    assert [one.state for one in result.results] == ["SUCCESS", "FAILURE", "SUCCESS"]


@pytest.mark.parametrize(
    "made", [lambda shop: shop.fail.s() | shop.add.s(1), lambda shop: chord([shop.add.s(1), shop.fail.s()], shop.total.s())]
)
def test_what_follows_a_failure_is_not_called(either: Shop, made: Any) -> None:
    result = made(either).delay()
    either.work()
    assert result.failed()
    with pytest.raises(Exception, match="no"):
        result.get(timeout=1)
    assert either.calls in ([], [(1, 0)])


def test_a_group_that_is_revoked_does_not_run(shop: Shop) -> None:
    result = group(shop.add.s(1), shop.add.s(2)).delay()
    with pytest.raises(ValueError, match="revoke the whole group"):
        result.results[0].revoke()
    with pytest.raises(ImproperlyConfigured, match=r"call GroupResult\.forget"):
        result.results[0].forget()
    result.revoke()
    shop.work()
    assert (result.ready(), result.successful(), shop.calls) == (True, False, [])


def test_an_empty_group_has_no_results(either: Shop) -> None:
    result = group([])()
    assert (result.get(), result.ready(), len(result)) == ([], True, 0)


def test_the_tasks_of_a_canvas_keep_their_options(shop: Shop) -> None:
    @shop.app.task(name="rare", queue="rare", priority=7, max_retries=1, expires=60)
    def rare() -> None:
        pass

    result = group(rare.s()).delay()
    shop.app.holdfast.run(queues=["celery"], until_empty=True, signals=False)
    (message,) = Queue("rare", client=shop.app.client).browse()
    assert (message.priority, message.max_attempts) == (7, 2)
    shop.work()
    assert result.get(timeout=1) == [None]


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            lambda shop: group(group(shop.add.s(1)), shop.add.s(2)),
            "group in a group or in the header of a chord is not supported.* job.map",
        ),
        (lambda shop: chord([chord([shop.add.s(1)], shop.total.s())], shop.total.s()), "chord in a group .* make one flat group"),
        (lambda shop: group(shop.add.s(1) | group(shop.add.s(1)), shop.add.s(2)), "chain in a group .* let a task call the inner one"),
        (lambda shop: chain(shop.add.s(1).set(countdown=5), shop.add.s(1)), "'countdown' is not supported there; give it to @app.task"),
        (lambda shop: chain(shop.add.s(1), shop.add.s(1)).apply_async(queue="x"), "'queue' is not supported; give it to @app.task"),
        (lambda shop: group(shop.add.s(1)).apply_async(link=shop.add.s()), "make a chain"),
    ],
)
def test_what_a_canvas_cannot_have_is_refused_with_the_remedy(shop: Shop, refused: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=said):
        refused(shop)


def test_what_is_no_canvas_is_an_error(shop: Shop) -> None:
    with pytest.raises(ValueError, match="has no body"):
        chord([shop.add.s(1)]).delay()
    with pytest.raises(ValueError, match="has no tasks"):
        chain()
    with pytest.raises(TypeError, match=r"made of signatures, as task\.s"):
        group(shop.add)  # type: ignore[arg-type]


def test_a_chord_whose_members_worker_is_killed_calls_its_body_once(tmp_path: Path, apps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/jobs.db")
    app = mortal.app_of(tmp_path)
    result = mortal.chord_of(app)
    command = [sys.executable, "-m", "tests.surfaces.celery.mortal", str(tmp_path)]
    codes = []
    while not result.ready():  # A worker may find nothing due while the lease of a killed one lasts.
        codes.append(subprocess.run(command, check=False, timeout=120).returncode)
    assert (codes.count(-signal.SIGKILL), set(codes)) == (mortal.MEMBERS, {-signal.SIGKILL, 0})
    assert result.get(timeout=1) == sum(range(mortal.MEMBERS))
    noted = mortal.notes(tmp_path)
    assert noted.count("body") == 1
    assert all(noted.count(f"killed {number}") == noted.count(f"member {number}") == 1 for number in range(mortal.MEMBERS))
