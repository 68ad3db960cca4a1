"""The meters of workers: for Prometheus by `worker --probe`, for OpenTelemetry by its own interface; the board and the alerts."""

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml  # type: ignore[import-untyped]
from msgspec import json
from opentelemetry import metrics as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from holdfast import Queue, Worker
from holdfast.cli.probe import place_of, probed
from holdfast.client import ControlPlaneClient
from holdfast.commands import Count
from holdfast.server.metrics import Metrics
from holdfast.stores.memory import MemoryStore
from holdfast.telemetry.meters import LONG_BUCKETS_S, METERS, Meter, Running, text_of_meters
from tests.cli.running import holdfast
from tests.server.processes import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def worker() -> Iterator[Worker[Any, Any, Any]]:
    with ControlPlaneClient.on(MemoryStore()) as client:

        def work(value: int) -> None:
            if value < 0:
                raise ValueError("negative")

        yield Worker(work, "probed", client=client, max_attempts=1, concurrency=1)


def fetched(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def value(text: str, name: str, **labels: str) -> float:
    inside = ",".join(f'{label}="{one}"' for label, one in labels.items())
    found = re.search(rf"^{name}{re.escape(f'{{{inside}}}') if inside else ''} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_probe_tells_whether_workers_are_ready_and_what_they_did(worker: Worker[Any, Any, Any]) -> None:
    before = text_of_meters().decode()
    Queue[int]("probed", client=worker.client).put_many([1, 2, -1])
    port = free_port()
    with probed([worker], f"127.0.0.1:{port}"):
        assert fetched(port, "/livez") == (200, "ok\n")
        assert fetched(port, "/readyz") == (503, "worker 1 is stopped\n")
        with worker:
            assert fetched(port, "/readyz") == (200, "ok\n")
            while value(fetched(port, "/metrics")[1], "holdfast_jobs_total", queue="probed", outcome="failed") < 1:
                pass
            _, text = fetched(port, "/metrics")
        assert fetched(port, "/other")[0] == 404
    done = "holdfast_jobs_total"
    assert value(text, done, queue="probed", outcome="done") - value(before, done, queue="probed", outcome="done") == 2
    assert value(text, "holdfast_job_duration_seconds_count", queue="probed") == 3
    assert value(text, "holdfast_job_wait_seconds_count", queue="probed") == 3
    assert value(text, "holdfast_jobs_in_flight", queue="probed") == 0
    assert value(text, "holdfast_queue_messages", queue="probed", state="dead") == 1


def test_the_command_serves_the_probe_until_it_ends(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from holdfast import worker\n@worker('mail')\ndef send(value): ...\n")
    from tests.cli.test_worker import command

    port = free_port()
    with command(tmp_path, "app:send", f"--probe=127.0.0.1:{port}") as running:
        try:
            while True:
                try:
                    if fetched(port, "/readyz")[0] == 200:
                        break
                except OSError:
                    assert running.poll() is None
            running.terminate()
            assert running.wait(60) == 0
        finally:
            running.kill()
    with pytest.raises(OSError, match="refused"):
        fetched(port, "/livez")


@pytest.mark.parametrize("address", ["8080", ":", ":x", ":70000"])
def test_what_is_no_address_is_refused(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "probe_refused.py").write_text("from holdfast import worker\n@worker('probe-refused')\ndef send(value): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    ran = holdfast("worker", "probe_refused:send", f"--probe={address}", f"--url=sqlite:///{tmp_path}/s.db")
    assert (ran.exit_code, "is not an address" in ran.stderr) == (2, True)


def test_without_a_host_every_address_is_meant_and_brackets_are_for_the_sixth_version() -> None:
    assert place_of(":8080") == ("", 8080)
    assert place_of("[::1]:8080") == ("::1", 8080)


def test_a_program_that_uses_opentelemetry_gets_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(otel, "get_meter", provider.get_meter)
    total, spread, gauge = Meter("holdfast_a_total", "counter", ""), Meter("holdfast_c_seconds", "histogram", ""), Running("holdfast_b", "")
    total.add(2)
    total.add(1)
    spread.record([2, 1])
    busy = Busy(3)
    gauge.watch("jobs", busy)
    data = reader.get_metrics_data()
    assert data is not None
    found = {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}
    points: dict[str, Any] = {name: one.data.data_points[0] for name, one in found.items()}
    assert (points["holdfast.a"].value, points["holdfast.b"].value) == (3, 3)
    assert (points["holdfast.c"].sum, points["holdfast.c"].explicit_bounds) == (3, LONG_BUCKETS_S)
    provider.shutdown()


class Busy:
    """Runs so many functions."""

    def __init__(self, functions: int) -> None:
        self.functions = functions

    def running_functions(self) -> int:
        return self.functions


def test_running_functions_are_counted_by_queue_for_as_long_as_somebody_runs_them() -> None:
    gauge, first, second = Running("holdfast_b", ""), Busy(2), Busy(1)
    for queue, busy in (("a", first), ("a", second), ("b", second)):
        gauge.watch(queue, busy)
    assert [*gauge.lines()][1:] == ['holdfast_b{queue="a"} 3.0', 'holdfast_b{queue="b"} 1.0']
    first.functions = 0
    del second
    gc.collect()
    busy = first
    assert [*gauge.lines()][1:] == ['holdfast_b{queue="a"} 0.0', 'holdfast_b{queue="b"} 0.0']


def test_made_up_labels_do_not_fill_the_memory() -> None:
    meter = Meter("holdfast_made_up_total", "counter", "", ("queue",))
    for number in range(1_500):
        meter.add(1, str(number))
    assert 'holdfast_made_up_total{queue="other"} 500.0' in list(meter.lines())


def names_there_are() -> set[str]:
    told = Metrics()
    told.answered("/v1/put", 200, 0.1, "problem")
    gauges = {"holdfast_waiting_requests": 0.0, "holdfast_topics": 0.0}
    text = told.text(gauges, [("q", MemoryStore().execute(Count("q")))]).decode()
    text += "\n".join(line for one in METERS for line in one.lines())
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    return names | {f"{name}_bucket" for name in names if f"{name} histogram" in text}


@pytest.mark.parametrize("file", ["grafana/holdfast.json", "prometheus/holdfast-alerts.yml"])
def test_the_board_and_the_alerts_name_only_metrics_that_exist(file: str) -> None:
    text = (DEPLOY / file).read_text()
    named = set(re.findall(r"\bholdfast_[a-z_]+", text))
    assert named
    assert named <= names_there_are()


def test_the_board_and_the_alerts_can_be_read() -> None:
    board = json.decode((DEPLOY / "grafana/holdfast.json").read_bytes())
    assert all(panel["targets"] for panel in board["panels"])
    [group] = yaml.safe_load((DEPLOY / "prometheus/holdfast-alerts.yml").read_text())["groups"]
    assert all({"alert", "expr", "labels", "annotations"} <= set(rule) and "remedy" in rule["annotations"] for rule in group["rules"])
