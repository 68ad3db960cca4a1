"""Tasks of the site: the shapes that the tests of Django's own backends use."""

from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from holdfast import Backoff, JobContext, Snooze, Throttle, current_job
from holdfast.commands import Extend, Settle
from holdfast.integrations.django import task
from holdfast.integrations.django.compat import TaskContext
from holdfast.testing.django import drain
from tests.django_site.models import Order


@task
def noop_task(*args: Any, **kwargs: Any) -> None:
    pass


@task
async def noop_task_async(*args: Any, **kwargs: Any) -> None:
    pass


@task
def calculate_meaning_of_life() -> int:
    return 42


@task
async def calculate_async() -> int:
    return 42


@task(priority=10, queue_name="queue_1")
def on_other_queue() -> None:
    pass


@task
def failing_task() -> None:
    raise ValueError("This Task failed due to ValueError")


@task
async def failing_task_async() -> None:
    raise ValueError("This Task failed due to ValueError")


@task
def failing_task_system_exit() -> None:
    raise SystemExit("This Task failed due to SystemExit")


@task
def failing_task_keyboard_interrupt() -> None:
    raise KeyboardInterrupt("This Task failed due to KeyboardInterrupt")


@task
def complex_exception() -> None:
    raise ValueError(ValueError("This task failed"))


@task
def complex_return_value() -> Any:
    # Not JSON.
    return {(1, 2): object()}


@task(takes_context=True)
def get_task_id(context: TaskContext) -> str:
    return str(context.task_result.id)


@task(takes_context=True)
def attempt_of(context: TaskContext, expected: int) -> int:
    if context.attempt < expected:
        raise ValueError(f"attempt {context.attempt}")
    return int(context.attempt)


@task(max_attempts=2, backoff=Backoff(first_s=3600.0))
def fails_slowly() -> None:
    raise ValueError("later")


@task(key=lambda name: name, if_present="keep")
def keyed(name: str) -> str:
    return name


ran: list[str] = []
"""What tasks of this process did, for tests that have no worker elsewhere."""


@task
def note(text: str) -> str:
    ran.append(text)
    return text


@task
def job_of_holdfast() -> bool:
    return current_job() is not None


@task
def pack(order: int) -> None:
    """Mark an order as packed; runs on the worker."""
    with transaction.atomic():
        Order.objects.filter(pk=order).update(packed=True)


@task
def pack_and_end(order: int, is_declined: bool) -> None:  # noqa: FBT001 - as a job has its arguments
    """Mark an order as packed and end the job in one transaction."""
    with transaction.atomic():
        Order.objects.filter(pk=order).update(packed=True)
        this_job().done("packed", connection=connections["default"])
        if is_declined:
            raise ValueError("declined")


@task
def wait_for_answer() -> Any:
    return this_job().wait("answer")


@task
async def wait_for_answer_async() -> Any:
    return await this_job().wait("answer")


@task
def snoozing() -> str:
    if this_job().attempts == 1:
        raise Snooze(0.0)
    return "awake"


@task
def throttled() -> None:
    raise Throttle(3600.0)


@task
def cancelled() -> None:
    job = this_job()
    job.stop_reason = "cancelled"
    job.check()


@task
def lose_the_claim() -> str:
    """The first run loses its claim, and notices."""
    job = this_job()
    if job.attempts == 1:
        give_away(job)
    return str(job.step("answer", str, job.attempts))


@task(max_attempts=2)
def fail_and_die() -> None:
    """The first run fails, and the worker of the second one dies."""
    job = this_job()
    if job.attempts > 1:
        job.durable.setting.access.execute(Extend([job.message.receipt], 0.0))
    raise ValueError("before")


@task
def fail_behind_a_successor() -> int:
    """The first run loses its claim, and fails after another one has done its job."""
    job = this_job()
    if job.attempts == 1:
        give_away(job)
        drain()
        raise ValueError("too late")
    return int(job.attempts)


@task
def lose_the_connection() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


@task
async def lose_the_connection_async() -> None:
    await sync_to_async(lose_the_connection.func)()


@task
def count_orders() -> int:
    return int(Order.objects.count())


@task
def hang_up() -> None:
    """Use the connection of the thread for the last time."""
    count_orders.func()
    connections["default"].close()


@task
async def hang_up_async() -> None:
    await sync_to_async(hang_up.func)()


def give_away(job: JobContext) -> None:
    job.durable.setting.access.execute(Settle([job.message.receipt], "ready"))


def this_job() -> Any:
    """The job, of either kind."""
    job = current_job()
    assert job is not None
    return job
