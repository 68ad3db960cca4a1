"""Durable jobs in child processes, which ask their worker to record their steps."""

from pathlib import Path

from holdfast import ControlPlaneClient, Worker
from holdfast.workers.orders import Orders
from tests.runners import Runner
from tests.workers.durable_app import app, in_process, in_process_async


def test_steps_in_a_process_are_recorded_by_its_worker(tmp_path: Path) -> None:
    orders: Orders = app.worker(concurrency=2, schedules=False).orders
    with ControlPlaneClient(f"sqlite:///{tmp_path}/store.db") as client:
        worker = Worker.of_orders(orders, client=client)
        one = type(in_process)(in_process.options, given={}, client=client).put("a")
        other = type(in_process_async)(in_process_async.options, given={}, client=client).put("b")
        with worker, Runner() as runner:
            runner.until(lambda: one.status().state == "sleeping" and other.status().state == "sleeping")
            one.send("approved", "ann")
            other.send("approved", "bob")
            assert one.result(timeout_s=60) == ["a", True, "ann", 40]
            assert other.result(timeout_s=60) == ["b", "bob", 20]
