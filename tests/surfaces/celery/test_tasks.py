"""Tasks of the Celery-shaped surface: retries, options of calls, results, eager runs, shared tasks, periodic tasks."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Job, Queue, Schedule, Throttle, current_job
from holdfast.surfaces.celery import AsyncResult, Celery, Task, current_app, current_task, shared_task, signature, states, uuid
from holdfast.surfaces.celery.exceptions import Ignore, MaxRetriesExceededError, Reject, TaskError, TaskRevokedError
from holdfast.surfaces.celery.result import allow_join_result
from holdfast.surfaces.celery.schedules import crontab, schedule


def work(celery: Celery) -> None:
    celery.holdfast.run(queues=["celery"], until_empty=True, signals=False)


def waiting(celery: Celery) -> Any:
    (message,) = Queue("celery", client=celery.client).browse()
    return message


def test_a_bound_task_knows_its_request_and_tries_again(celery: Celery) -> None:
    seen: list[tuple[str, int]] = []

    @celery.task(bind=True, default_retry_delay=0)
    def send(self: Any, to: str) -> str:
        seen.append((self.request.id, self.request.retries))
        if self.request.retries < 2:
            raise self.retry(exc=ConnectionError("busy"))
        return to

    result = send.delay("ann")
    work(celery)
    assert seen == [(result.id, 0), (result.id, 1), (result.id, 2)]
    assert result.get(timeout=1) == "ann"


def test_after_the_last_retry_the_exception_is_the_failure(celery: Celery) -> None:
    @celery.task(bind=True, max_retries=1, default_retry_delay=0)
    def send(self: Any) -> None:
        self.retry(exc=ConnectionError("busy"))

    @celery.task(bind=True, max_retries=0)
    def bare(self: Any) -> None:
        self.retry()

    results = [send.delay(), bare.delay()]
    work(celery)
    assert [one.state for one in results] == ["FAILURE", "FAILURE"]
    assert "ConnectionError: busy" in str(results[0].traceback)
    assert MaxRetriesExceededError.__name__ in str(results[1].traceback)


def test_only_the_named_exceptions_are_retried_by_themselves(celery: Celery) -> None:
    runs: list[str] = []

    @celery.task(autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 2, "countdown": 0})
    def send(kind: str) -> None:
        runs.append(kind)
        raise {"network": ConnectionError, "bug": ValueError}[kind](kind)

    for kind in ("network", "bug"):
        send.delay(kind)
    work(celery)
    assert sorted(runs) == ["bug", "network", "network", "network"]


def test_the_backoff_of_automatic_retries_doubles(celery: Celery) -> None:
    @celery.task(autoretry_for=(ValueError,), retry_backoff=2, retry_jitter=False, retry_backoff_max=5)
    def send() -> None:
        pass

    assert [send.options.delay_s(retries) for retries in range(3)] == [2.0, 4.0, 5.0]


def test_a_rejected_task_is_a_dead_letter(celery: Celery) -> None:
    @celery.task(autoretry_for=(Exception,))
    def send() -> None:
        raise Reject("never")

    result = send.delay()
    work(celery)
    assert result.state == "FAILURE"


def test_a_task_that_throttles_or_waits_has_not_failed(celery: Celery) -> None:
    @celery.task
    def ask() -> Any:
        job = current_job()
        assert job is not None
        return job.wait("answer")

    @celery.task(queue="slow")
    def slow() -> None:
        raise Throttle(3600.0)

    asked, throttled = ask.delay(), slow.delay()
    celery.holdfast.run(until_empty=True, signals=False)
    assert (asked.state, throttled.state) == ("STARTED", "PENDING")
    Job("celery", asked.id, client=celery.client).send("answer", "yes")
    work(celery)
    assert asked.get(timeout=60) == "yes"


def test_options_of_a_call_are_those_of_the_message(celery: Celery) -> None:
    @celery.task
    def send() -> None:
        pass

    result = send.apply_async(countdown=60, expires=120, priority=5, task_id="8f0c")
    message = waiting(celery)
    assert (result.id, message.id, message.priority, message.max_attempts) == ("8f0c", "8f0c", 5, 4)
    assert message.due_at > datetime.now(UTC) + timedelta(seconds=30)


def test_an_eta_without_a_zone_is_utc(celery: Celery) -> None:
    @celery.task
    def send() -> None:
        pass

    send.apply_async(eta=datetime(2100, 1, 1))  # noqa: DTZ001 - that is the point
    # The clock of the store and that of the wall are not in step to the microsecond.
    assert abs(waiting(celery).due_at - datetime(2100, 1, 1, tzinfo=UTC)) < timedelta(seconds=5)


def test_a_task_can_be_revoked_and_forgotten(celery: Celery) -> None:
    @celery.task
    def add(x: int, y: int) -> int:
        return x + y

    waits, ran = add.apply_async((1, 1), countdown=60), add.delay(1, 2)
    work(celery)
    waits.revoke(terminate=True)
    assert Queue("celery", client=celery.client).stats().total == 0
    assert ran.get(timeout=1) == 3
    ran.forget()
    assert ran.state == "PENDING", "as in Celery, what is not known is pending"


def test_progress_is_seen_while_it_runs(celery: Celery) -> None:
    seen: list[tuple[str, Any]] = []

    @celery.task(bind=True)
    def send(self: Any) -> None:
        self.update_state(state="PROGRESS", meta={"done": 1})
        found = AsyncResult(self.request.id)
        while found.state != "PROGRESS":
            pass
        seen.append((found.state, found.info))

    send.delay()
    work(celery)
    assert seen == [("PROGRESS", {"done": 1})]


def test_eager_tasks_run_at_once(celery: Celery) -> None:
    celery.conf.task_always_eager = True

    @celery.task(bind=True, max_retries=1)
    def send(self: Any, value: int) -> int:
        if self.request.retries == 0:
            self.retry()
        return value

    @celery.task
    def fails() -> None:
        raise ValueError("no")

    assert send.delay(3).get() == 3
    assert (fails.delay().state, fails.delay().failed()) == ("FAILURE", True)
    celery.conf.task_eager_propagates = True
    with pytest.raises(ValueError, match="no"):
        fails.delay()


def test_shared_tasks_belong_to_every_app(celery: Celery) -> None:
    @shared_task(name="shared.add")
    def add(x: int, y: int) -> int:
        return x + y

    results = [add.delay(1, 2), celery.send_task("shared.add", (3, 4)), signature("shared.add", (5, 6)).delay()]
    work(celery)
    assert [one.get(timeout=1) for one in results] == [3, 7, 11]


def test_the_current_app_stands_for_the_one_that_was_made_last(celery: Celery) -> None:
    assert current_app.conf is celery.conf
    assert current_app.send_task("shop.send").app is celery


def test_a_result_that_is_ignored_is_not_kept(celery: Celery) -> None:
    @celery.task(ignore_result=True)
    def add() -> int:
        return 1

    result = add.delay()
    work(celery)
    assert result.state == "PENDING"


def test_routes_are_names_patterns_and_lists_of_both(celery: Celery) -> None:
    @celery.task(name="feed.import")
    def add() -> None:
        pass

    to_feeds: list[Any] = [
        {"feed.*": {"queue": "feeds"}},
        {"*": "rest", "feed.import": "feeds"},
        [("feed.*", "feeds"), ("*", "rest")],
        ([("web.*", "web"), (re.compile(r"feed\..*"), {"queue": "feeds"})],),
    ]
    for routes in to_feeds:
        celery.conf.task_routes = routes
        assert celery.queue_of("feed.import", add.options) == "feeds"
        assert "feeds" in celery.queues
    celery.conf.task_routes = {"web.*": "web"}
    assert celery.queue_of("feed.import", add.options) == "celery"


def test_periodic_tasks_are_set_up_as_celerys_manual_does(celery: Celery) -> None:
    @celery.task
    def test(arg: str) -> str:
        return arg

    @celery.on_after_configure.connect
    def setup_periodic_tasks(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(10.0, test.s("hello"), name="add every 10")

    @celery.on_after_finalize.connect(weak=False)
    def setup_more(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(crontab(hour=7, minute=30, day_of_week=1), test.s("Happy Mondays!"))

    for _ in range(2):
        work(celery)
    assert [(one.name, str(one.rule)) for one in Schedule.list(client=celery.client)][:1] == [("add every 10", "every 10 s")]
    assert len(Schedule.list(client=celery.client)) == 2


def test_a_beat_schedule_becomes_schedules(celery: Celery) -> None:
    @celery.task(name="tasks.add")
    def add(x: int, y: int) -> int:
        return x + y

    celery.conf.timezone = "Europe/Vienna"
    celery.conf.beat_schedule = {
        "every-30-seconds": {"task": "tasks.add", "schedule": 30.0, "args": (16, 16)},
        "monday-morning": {"task": "tasks.add", "schedule": crontab(hour=7, minute=30, day_of_week=1), "args": (16, 16)},
        "hourly": {"task": "tasks.add", "schedule": schedule(timedelta(hours=1)), "kwargs": {"x": 1, "y": 1}},
    }
    celery.add_periodic_task(10.0, add.s(1, 2), name="every 10", expires=10, priority=3)
    for declared in celery.holdfast.schedules:
        declared.save()  # As a worker does that stays; one that ends when the queue is empty may be gone before.
    rules = {one.name: (one.rule, one.tz) for one in Schedule.list(client=celery.client)}
    assert rules["monday-morning"] == ("30 7 * * 1", "Europe/Vienna")
    assert set(rules) == {"every-30-seconds", "monday-morning", "hourly", "every 10"}
    (run,) = [one.entry.put for one in celery.holdfast.declared if one.name == "every 10"]
    assert (run["start_within_s"], run["priority"]) == (10.0, 3)
    job = Schedule.from_name("hourly", client=celery.client).run_now()
    work(celery)
    assert job.result(timeout_s=1.0) == 2


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (crontab(), "* * * * *"),
        (crontab(minute="*/15"), "*/15 * * * *"),
        (crontab(minute=0, hour="*/3,8-17"), "0 */3,8-17 * * *"),
        (crontab(0, 0, day_of_month="2"), "0 0 2 * *"),
        (crontab(minute=0, hour=[7, 9]), "0 7,9 * * *"),
        (crontab(0, 0, day_of_week="mon-fri", month_of_year=1), "0 0 * 1 mon-fri"),
    ],
)
def test_a_crontab_is_a_cron_expression(given: crontab, rule: str) -> None:
    assert given.rule == rule


def test_the_current_task_is_the_one_that_runs_here(celery: Celery) -> None:
    @celery.task(name="outer")
    def outer() -> list[Any]:
        with allow_join_result():
            inner.apply()
        return [bool(current_task), current_task.name, current_task.request.id, current_task.request.task]

    @celery.task(name="inner")
    def inner() -> None:
        assert current_task.name == "inner"

    put = outer.apply_async(task_id=uuid())
    work(celery)
    assert put.get(timeout=1) == [True, "outer", put.id, "outer"]
    assert not current_task
    with pytest.raises(AttributeError, match="no task runs here"):
        current_task.request  # noqa: B018 - it raises


def test_the_base_of_a_task_may_be_the_class_of_all(celery: Celery) -> None:
    @celery.task(base=Task)
    def ping() -> bool:
        return True

    put = ping.delay()
    work(celery)
    assert put.get(timeout=1) is True


def test_what_is_ignored_is_done_or_failed_as_it_said(celery: Celery) -> None:
    @celery.task(bind=True)
    def skip(self: Any, state: str | None) -> None:
        if state is not None:
            self.update_state(state=state, meta="out of paper")
        raise Ignore

    found = [skip.delay(state) for state in (None, states.FAILURE)]
    work(celery)
    assert [one.state for one in found] == [states.SUCCESS, states.FAILURE]
    assert found[0].get(timeout=1) is None
    with pytest.raises(TaskError, match="out of paper"):
        found[1].get(timeout=1)
    assert skip.apply([None]).get() is None


def test_what_is_rejected_is_dead_or_handed_out_again(celery: Celery) -> None:
    runs: list[int] = []

    @celery.task(bind=True)
    def refuse(self: Any) -> int:
        runs.append(self.request.retries)
        if len(runs) < 3:
            raise Reject("not yet", requeue=True)
        raise Reject(ValueError("never"), requeue=False)

    put = refuse.delay()
    work(celery)
    assert (runs, put.state) == ([0, 0, 0], states.FAILURE)
    with pytest.raises(TaskError, match="never"):
        put.get(timeout=1)


def test_a_revoked_task_raises_that(celery: Celery) -> None:
    @celery.task
    def never() -> None: ...

    put = never.delay()
    put.revoke()
    assert put.state in states.READY_STATES
    with pytest.raises(TaskRevokedError):
        put.get(timeout=1)
