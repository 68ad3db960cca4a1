"""The admin pages show queues and jobs, act on them, and ask for permissions."""

from collections.abc import Iterator

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import override_settings
from django.urls import reverse

from holdfast import Queue
from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import task_backends
from holdfast.testing.django import drain
from tests.django_site import tasks
from tests.integrations.django.conftest import tasks_settings


@pytest.fixture
def site(database: str) -> Iterator[HoldfastBackend]:
    with override_settings(TASKS=tasks_settings(database)):
        yield task_backends["default"]


def signed_in(*permissions: str) -> Client:
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="holdfast", codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, name: str, *args: str, query: str = "") -> str:
    answer = client.get(reverse(f"admin:{name}", args=args) + query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_queues_jobs_and_one_job_are_shown(site: HoldfastBackend) -> None:
    client = signed_in("view_job")
    failed, waiting = tasks.failing_task.enqueue(), tasks.noop_task.using(queue_name="queue_1").enqueue("an argument")
    drain(queues=["default"])
    assert "queue_1" in page(client, "holdfast_job_changelist")
    assert waiting.id.partition("/")[2] in page(client, "holdfast_job_queue", "default", "queue_1")
    assert "ValueError" in page(client, "holdfast_job_queue", "default", "default", query="?state=dead")
    assert "an argument" in page(client, "holdfast_job_change", "default", *waiting.id.split("/"))
    shown = page(client, "holdfast_job_change", "default", *failed.id.split("/"))
    assert "This Task failed due to ValueError" in shown
    assert "redrive" not in shown, "who may only look gets no buttons"


def test_pages_go_on_by_a_cursor(site: HoldfastBackend) -> None:
    client = signed_in("view_job")
    results = [tasks.noop_task.enqueue(n) for n in range(60)]
    first = page(client, "holdfast_job_queue", "default", "default")
    after = first.partition("&amp;after=")[2].partition('"')[0]
    second = page(client, "holdfast_job_queue", "default", "default", query=f"?state=ready&after={after}")
    shown = [result for result in results if result.id.partition("/")[2] in second]
    assert shown == results[50:]


def test_acting_needs_the_permission_and_is_logged(site: HoldfastBackend) -> None:
    client = signed_in("view_job", "change_job")
    result = tasks.failing_task.enqueue()
    drain()
    job = result.id.partition("/")[2]
    act = reverse("admin:holdfast_job_act")
    assert client.post(act, {"action": "redrive", "alias": "default", "name": "default", "job": job}).status_code == 302
    result.refresh()
    assert result.status == "READY"
    assert client.post(act, {"action": "pause", "alias": "default", "name": "default"}).status_code == 302
    assert drain().failed == 0, "a paused queue hands nothing out"
    assert client.post(act, {"action": "resume", "alias": "default", "name": "default"}).status_code == 302
    assert client.post(act, {"action": "cancel", "alias": "default", "name": "default", "job": job}).status_code == 302
    assert Queue("default", client=site.place.near).stats().total == 0
    notes = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert [note.split()[0] for note in notes] == ["Redrove", "Paused", "Resumed", "Cancel"]


def test_a_signal_is_sent_and_what_cannot_be_sent_is_told(site: HoldfastBackend) -> None:
    client = signed_in("view_job", "change_job")
    job = tasks.noop_task.enqueue().id.partition("/")[2]
    act = reverse("admin:holdfast_job_act")
    for payload, to in (('{"by": "ann"}', job), ("no JSON", job), ("1", "nobody")):
        client.post(act, {"action": "send signal", "alias": "default", "name": "default", "job": to, "signal": "go", "payload": payload})
    notes = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert ["was not sent" in note for note in notes] == [False, True, True]


@pytest.mark.parametrize("permissions", [(), ("view_job",)])
def test_who_has_no_permission_is_refused(site: HoldfastBackend, permissions: tuple[str, ...]) -> None:
    client = signed_in(*permissions)
    seen = client.get(reverse("admin:holdfast_job_changelist")).status_code
    done = client.post(reverse("admin:holdfast_job_act"), {"action": "pause", "alias": "default", "name": "default"}).status_code
    assert (seen, done) == (200 if permissions else 403, 403)


@pytest.mark.parametrize("args", [("nobody", "default"), ("default", "nobody"), ("default", "default", "nobody")])
def test_what_is_not_there_is_not_found(site: HoldfastBackend, args: tuple[str, ...]) -> None:
    name = "holdfast_job_queue" if len(args) == 2 else "holdfast_job_change"
    assert signed_in("view_job").get(reverse(f"admin:{name}", args=args)).status_code == 404
