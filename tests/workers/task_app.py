"""Tasks that run in threads, tasks and processes: a module of their own, since children import it."""

import os
import threading
from typing import Any

from holdfast import ControlPlaneClient, Task, Tasks, Worker

app = Tasks("numbers", queue="numbers")


@app.task(name="double")
def double(number: int) -> int:
    assert threading.current_thread() is not threading.main_thread()
    return 2 * number


@app.task(name="double_async")
async def double_async(number: int) -> int:
    return 2 * number


@app.task(name="double_apart", execution="processes")
def double_apart(number: int) -> tuple[int, int]:
    return 2 * number, os.getppid()


@app.task(name="where")
def where() -> tuple[int, int]:
    return os.getppid(), os.getpid()


def on(client: ControlPlaneClient) -> dict[str, Task[..., Any, Any]]:
    """The tasks, on a client."""
    other = Tasks("numbers", queue="numbers", client=client)
    return {task.name: other.task(name=task.name)(task.function) for task in app.tasks}


def worker_on(client: ControlPlaneClient) -> Worker[Any, Any, Any]:
    """The worker of the tasks, on a client."""
    return Worker.of_orders(app.worker(concurrency=3).orders, client=client)
