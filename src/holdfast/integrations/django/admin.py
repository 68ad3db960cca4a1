"""Admin pages over the jobs of a HoldfastBackend: queues, jobs by state, one job; redrive, cancel, pause, run a schedule now."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast.codec import JSON
from holdfast.commands import Browse
from holdfast.errors import HoldfastError
from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import TaskResultDoesNotExist, task_backends
from holdfast.integrations.django.models import Job
from holdfast.views.messages import seen

PAGE = 50
STATES = ("ready", "leased", "buffered", "dead")


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    """Replaces the list of a table by pages over handles."""

    def get_urls(self) -> list[Any]:
        """The pages, under the names that the admin's own would have."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.queues), name="holdfast_job_changelist"),
            path("act/", view(require_POST(self.act)), name="holdfast_job_act"),
            path("<str:alias>/<str:queue>/", view(self.jobs), name="holdfast_job_queue"),
            path("<str:alias>/<str:queue>/<str:job_id>/", view(self.job), name="holdfast_job_change"),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs are enqueued by code."""
        del request
        return False

    def queues(self, request: HttpRequest) -> HttpResponse:
        """Every backend, its queues with their counts, and its schedules."""
        self._refuse_unless(request, self.has_view_permission)
        backends = []
        for backend in _backends():
            client = backend.place.near
            rows = [(name, Queue(name, client=client).stats()) for name in sorted(backend.queues)]
            backends.append({"alias": backend.alias, "queues": rows, "schedules": Schedule.list(client=client)})
        return self._page(request, "queues.html", title="Queues", backends=backends)

    def jobs(self, request: HttpRequest, alias: str, queue: str) -> HttpResponse:
        """A page of jobs in one state, found by a cursor: nothing is counted."""
        self._refuse_unless(request, self.has_view_permission)
        backend = _backend(alias, queue)
        state: Any = request.GET.get("state", "ready")
        if state not in STATES:
            raise Http404(f"no state {state!r}: {', '.join(STATES)}")
        after = JSON.decode(request.GET["after"].encode()) if request.GET.get("after") else None
        page = backend.place.execute(Browse(queue, state=state, after=after, limit=PAGE))
        offset_us = backend.place.near.store.wall_offset_us()
        found = [seen(message, JSON, page.now, offset_us) for message in page.messages]
        more = None if page.after is None else bytes(JSON.encode(page.after)).decode()
        return self._page(request, "jobs.html", title=queue, alias=alias, queue=queue, state=state, states=STATES, jobs=found, more=more)

    def job(self, request: HttpRequest, alias: str, queue: str, job_id: str) -> HttpResponse:
        """One job: arguments, progress, tracebacks."""
        self._refuse_unless(request, self.has_view_permission)
        backend = _backend(alias, queue)
        try:
            result = backend.get_result(f"{queue}/{job_id}")
        except (TaskResultDoesNotExist, ImportError) as error:
            raise Http404(f"no job {job_id} in queue {queue}: {error}") from error
        handle = backend.job(f"{queue}/{job_id}")
        status, steps = handle.status(), handle.steps()
        return self._page(
            request,
            "job.html",
            title=result.task.module_path,
            alias=alias,
            queue=queue,
            result=result,
            status=status,
            steps=steps,
            job_id=job_id,
        )

    def act(self, request: HttpRequest) -> HttpResponse:
        """Do what a button says, and note it in Django's log."""
        self._refuse_unless(request, self.has_change_permission)
        action, alias, name = (request.POST.get(field, "") for field in ("action", "alias", "name"))
        if action not in ACTIONS and action != SIGNAL:
            raise Http404(f"no action {action!r}: {', '.join(ACTIONS)}, {SIGNAL}")
        job = request.POST.get("job", "")
        said = _signal(_named(alias), name, job, request) if action == SIGNAL else ACTIONS[action](_named(alias), name, job)
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type_id=ContentType.objects.get_for_model(Job, for_concrete_model=False).pk,
            object_id=request.POST.get("job") or name,
            object_repr=f"{name} {request.POST.get('job', '')}".strip()[:200],
            action_flag=CHANGE,
            change_message=said,
        )
        messages.success(request, said)
        return redirect(reverse("admin:holdfast_job_changelist"))

    def _refuse_unless(self, request: HttpRequest, allowed: Callable[[HttpRequest], bool]) -> None:
        if not allowed(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        context |= self.admin_site.each_context(request) | {"opts": Job._meta, "may_change": self.has_change_permission(request)}  # noqa: SLF001 - as Django's own pages
        return TemplateResponse(request, f"admin/holdfast/{template}", context)


def _redrive(backend: HoldfastBackend, queue: str, job: str) -> str:
    done = backend.job(f"{queue}/{job}").retry()
    return f"Redrove job {job} of {queue}." if done else f"Job {job} of {queue} was no dead letter any more."


def _cancel(backend: HoldfastBackend, queue: str, job: str) -> str:
    return f"Cancel job {job} of {queue}: {backend.job(f'{queue}/{job}').cancel()}."


def _pause(backend: HoldfastBackend, queue: str, job: str) -> str:
    del job
    Queue(queue, client=backend.place.near).pause()
    return f"Paused {queue}."


def _resume(backend: HoldfastBackend, queue: str, job: str) -> str:
    del job
    Queue(queue, client=backend.place.near).resume()
    return f"Resumed {queue}."


def _run_schedule(backend: HoldfastBackend, schedule: str, job: str) -> str:
    del job
    return f"Ran schedule {schedule}: job {Schedule.from_name(schedule, client=backend.place.near).run_now().id}."


def _signal(backend: HoldfastBackend, queue: str, job: str, request: HttpRequest) -> str:
    signal = request.POST.get("signal", "")
    try:
        payload = json.loads(request.POST.get("payload") or "null")
        backend.job(f"{queue}/{job}").send(signal, payload)
    except (ValueError, HoldfastError) as error:
        return f"Signal {signal} to job {job} of {queue} was not sent: {error}"
    return f"Sent signal {signal} to job {job} of {queue}."


SIGNAL = "send signal"
ACTIONS: dict[str, Callable[[HoldfastBackend, str, str], str]] = {
    "redrive": _redrive,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "run schedule": _run_schedule,
}


def _backends() -> list[HoldfastBackend]:
    return [backend for backend in task_backends.all() if isinstance(backend, HoldfastBackend)]


def _named(alias: str) -> HoldfastBackend:
    for backend in _backends():
        if backend.alias == alias:
            return backend
    raise Http404(f"no HoldfastBackend {alias!r} in TASKS")


def _backend(alias: str, queue: str) -> HoldfastBackend:
    backend = _named(alias)
    if queue not in backend.queues:
        raise Http404(f"no queue {queue!r} in TASKS[{alias!r}]")
    return backend
