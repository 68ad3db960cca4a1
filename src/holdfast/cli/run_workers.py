"""Several workers in one process, stopped by one signal."""

import threading
from collections.abc import Sequence
from typing import Any

from holdfast import Worker
from holdfast.workers.handlers.definitions import refuse_two
from holdfast.workers.running.background import Side
from holdfast.workers.signals import stop_signals


def run_workers(workers: Sequence[Worker[Any, Any, Any]], *, until_empty: bool = False) -> None:
    """Run workers side by side until SIGTERM or SIGINT, or until each found its queue empty; raise what the first of them raised.

    Raises `ValueError` if two functions are to work on one queue.
    """
    consumers = ((worker, queue, options) for worker in workers for queue, options in worker.orders.table.consumers.items())
    refuse_two((options.handler.function, (worker.client, queue)) for worker, queue, options in consumers)
    ended = threading.Semaphore(0)

    def stop() -> None:
        for worker in workers:
            worker.tell_stop()

    def run(worker: Worker[Any, Any, Any]) -> None:
        try:
            worker.run(until_empty=until_empty, signals=False)
        except BaseException:
            stop()  # One that fails must not leave the others running unnoticed.
            raise
        finally:
            ended.release()

    with stop_signals(stop):
        sides: list[Any] = [Side(lambda worker=worker: run(worker), "holdfast-worker") for worker in workers]  # type: ignore[misc]
        for _ in sides:
            ended.acquire()
        for side in sides:
            side.join()
