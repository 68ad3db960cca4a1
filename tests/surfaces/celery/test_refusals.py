"""What the Celery-shaped surface does not do is refused, and the message names the remedy."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.surfaces import celery as surface
from holdfast.surfaces.celery import Celery, exceptions, result, shared_task, signals
from holdfast.surfaces.celery.app import run_options
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured, NotRegistered
from holdfast.surfaces.celery.refusals import REMEDIES
from holdfast.surfaces.celery.schedules import crontab, solar

OF_TASKS = (
    *("base", "typing", "track_started", "send_events", "reject_on_worker_lost", "compression", "throws"),
    *("interval_start", "interval_step", "store_errors_even_if_ignored", "acks_on_failure_or_timeout"),
)
OF_CALLS = (
    *(
        "link",
        "link_error",
        "exchange",
        "exchange_type",
        "routing_key",
        "headers",
        "retry",
        "retry_policy",
        "connection",
        "producer",
        "shadow",
    ),
    *("compression", "stamped_headers"),
)
OF_METHODS = ("chunks", "map", "starmap", "replace", "add_to_chord", "send_event", "delay_on_commit", "apply_async_on_commit")
OF_APPS = ("control", "events", "amqp", "worker_main")
OF_SETTINGS = (
    *("task_annotations", "task_queues", "task_default_exchange", "task_default_routing_key", "worker_prefetch_multiplier"),
    *("task_send_sent_event", "worker_send_task_events", "broker_transport_options", "broker_connection_retry_on_startup"),
    *("task_reject_on_worker_lost", "worker_max_tasks_per_child", "task_track_started", "task_create_missing_queues"),
    "worker_disable_rate_limits",
)


OF_MODULES = [(module, name) for module in (surface, exceptions, result) for name in module.REFUSED]


@pytest.fixture
def send(celery: Celery) -> Any:
    @celery.task
    def send() -> None:
        pass

    return send


@pytest.mark.parametrize("option", OF_TASKS)
def test_an_option_of_a_task_is_refused(celery: Celery, option: str) -> None:
    for decorator in (celery.task, shared_task):
        with pytest.raises(ImproperlyConfigured) as refused:
            decorator(**{option: "x"})
        assert REMEDIES[option] in str(refused.value)


@pytest.mark.parametrize("option", OF_CALLS)
def test_an_option_of_a_call_is_refused(send: Any, option: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        send.apply_async(**{option: "x"})
    assert REMEDIES[option] in str(refused.value)


@pytest.mark.parametrize("method", OF_METHODS)
def test_a_method_of_celery_that_is_not_there_is_refused(send: Any, method: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        getattr(send, method)([(1,)], 10)
    assert REMEDIES[method] in str(refused.value)


@pytest.mark.parametrize(("module", "name"), OF_MODULES)
def test_a_name_of_a_module_that_is_not_there_is_refused(module: Any, name: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        getattr(module, name)
    assert REMEDIES[name] in str(refused.value)
    with pytest.raises(AttributeError, match="has no nonsense here"):
        module.nonsense  # noqa: B018 - it raises


@pytest.mark.parametrize("part", OF_APPS)
def test_a_part_of_an_app_that_is_not_there_is_refused(celery: Celery, part: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        getattr(celery, part)()
    assert REMEDIES[part] in str(refused.value)


def test_every_remedy_is_given_for_something() -> None:
    assert set(REMEDIES) == {
        *OF_TASKS,
        *OF_CALLS,
        *OF_METHODS,
        *OF_APPS,
        *OF_SETTINGS,
        *(name for _, name in OF_MODULES),
        "solar",
        "signals",
    }


@pytest.mark.parametrize("setting", OF_SETTINGS)
def test_a_setting_is_refused(celery: Celery, setting: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        celery.conf[setting] = "x"
    assert REMEDIES[setting] in str(refused.value)


def test_a_misspelled_option_is_refused_with_the_one_that_was_meant(celery: Celery, send: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="did you mean 'max_retries'"):
        celery.task(max_retry=3)
    with pytest.raises(ImproperlyConfigured, match="did you mean 'countdown'"):
        send.apply_async(count_down=3)
    with pytest.raises(ImproperlyConfigured, match="did you mean 'timezone'"):
        celery.conf.time_zone = "UTC"


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda app, send: app.task(acks_late=False), "always acknowledged after it ran"),
        (lambda app, send: app.task(serializer="pickle"), "only JSON is kept"),
        (lambda app, send: app.task(rate_limit="10/d"), "'10/s', '100/m' or '5/h'"),
        (lambda app, send: setattr(app.conf, "task_default_rate_limit", "often"), "'10/s', '100/m' or '5/h'"),
        (lambda app, send: app.task(name="x", rate_limit="1/s")(print).apply_async(queue="other"), "give queue='other' to @app.task"),
        (lambda app, send: send.apply_async(serializer="pickle"), "only JSON is kept"),
        (lambda app, send: send.apply_async(time_limit=3), "give it to @app.task"),
        (lambda app, send: setattr(app.conf, "accept_content", ["json", "pickle"]), "only JSON is kept"),
        (lambda app, send: setattr(app.conf, "task_acks_late", False), "always acknowledged after it ran"),
        (lambda app, send: app.task(autoretry_for=(ValueError,), retry_kwargs={"eta": 1}), "supported: countdown, max_retries"),
        (lambda app, send: send.retry(args=(1,)), "supported: countdown"),
        (lambda app, send: send.retry(max_retries=10), r"give it there"),
        (lambda app, send: app.AsyncResult("x").get(interval=1.0), "remove it"),
        (lambda app, send: app.AsyncResult("x").revoke(signal="SIGKILL"), "remove it"),
        (lambda app, send: app.add_periodic_task(30.0, send.s(), queue="x"), "give it to @app.task"),
        (lambda app, send: run_options("x", {"expires": datetime(2100, 1, 1, tzinfo=UTC)}, "UTC"), "give seconds or a timedelta"),
        (lambda app, send: setattr(app.conf, "task_routes", print), "a function that routes"),
        (lambda app, send: setattr(app.conf, "task_routes", {3: "x"}), "neither the name of a task nor a pattern"),
        (lambda app, send: send.update_state("another", "PROGRESS"), "a task reports for itself"),
        (lambda app, send: solar("sunset", -37.8, 144.9), "apply_async"),
        (lambda app, send: signals.task_success, "in a decorator"),
        (lambda app, send: app.on_after_configure.connect(print, dispatch_uid="x"), "supported: weak"),
        (lambda app, send: Celery("x", set_as_current=True), "supported: backend, broker"),
    ],
)
def test_a_value_that_is_not_supported_is_refused(celery: Celery, send: Any, refused: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=said):
        refused(celery, send)


def test_a_route_to_an_exchange_is_refused(celery: Celery, send: Any) -> None:
    celery.conf.task_routes = {send.name: {"exchange": "media"}}
    with pytest.raises(ImproperlyConfigured, match="there are no exchanges"):
        send.delay()


def test_a_result_backend_elsewhere_is_refused(apps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    elsewhere = Celery("shop", broker="memory://shop", backend="redis://localhost/1")
    with pytest.raises(ImproperlyConfigured, match="results are kept in the store of the jobs"):
        _ = elsewhere.client


def test_a_crontab_of_two_kinds_of_days_is_refused() -> None:
    with pytest.raises(ValueError, match="Celery runs it when both fit"):
        crontab(day_of_week="mon", day_of_month="1")


def test_a_schedule_of_an_unknown_task_is_refused(celery: Celery) -> None:
    celery.conf.beat_schedule = {"x": {"task": "tasks.nothing", "schedule": 1.0}}
    with pytest.raises(NotRegistered, match="import its module"):
        _ = celery.holdfast


def test_arguments_that_are_not_plain_data_are_refused(send: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        send.delay(object())
