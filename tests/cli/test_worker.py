"""`holdfast worker`: from a name to a worker that runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.worker import make_all

APP = """
from pathlib import Path
from holdfast import worker

@worker("mail", concurrency=2)
def send(value):
    Path(value).touch()

def plain(value):
    Path(value).touch()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "app.py").write_text(APP)
    return f"sqlite:///{tmp_path}/jobs.db?durability=process"


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", "from holdfast.cli import main; main()", "worker", *arguments]
    settings = {**os.environ, "HOLDFAST_URL": f"sqlite:///{folder}/jobs.db?durability=process"}
    return subprocess.Popen(program, cwd=folder, env=settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_workers_and_plain_functions_run_until_their_queues_are_empty(tmp_path: Path, url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue[str]("mail", client=client).put_many(["a", "b"])
    with command(tmp_path, "app:send", "--until-empty") as running:
        assert running.wait(60) == 0
    assert [(tmp_path / name).exists() for name in "ab"] == [True, True]
    with ControlPlaneClient(url) as client:
        Queue[str]("more", client=client).put("c")
    with command(tmp_path, "app:plain", "--queue", "more", "--concurrency", "3", "--until-empty", "--url", url) as running:
        assert running.wait(60) == 0
    assert (tmp_path / "c").exists()


def test_a_signal_ends_it(tmp_path: Path, url: str) -> None:
    with command(tmp_path, "app:send") as running, ControlPlaneClient(url) as client:
        Queue[str]("mail", client=client).put("a")
        while not (tmp_path / "a").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert Queue[str]("mail", client=client).stats().total == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("app:plain", "say which --queue"),
        ("app:nothing", "its workers are: send"),
        ("nowhere:send", "nowhere"),
        ("app:send --lease-s 0 --grace-s 5", "lease_s must be more than 0"),
    ],
)
def test_what_is_no_worker_or_no_time_is_refused_with_the_reason(tmp_path: Path, url: str, arguments: str, reason: str) -> None:
    with command(tmp_path, *arguments.split()) as running:
        _, error = running.communicate(timeout=60)
    assert running.returncode == 2
    assert reason in error


LOGS = """
from holdfast import Backoff, Bury, worker

@worker("logs", max_attempts=2, backoff=Backoff(first_s=0.01, jitter=0.0))
def handle(value):
    if value == "bad":
        raise Bury("no such picture")
    if value == "boom":
        raise KeyError("boom")

@worker("more logs", concurrency=3)
def more(value):
    pass
"""


def test_a_module_alone_runs_all_its_workers_and_the_log_tells_of_each_job(tmp_path: Path, url: str) -> None:
    (tmp_path / "logs.py").write_text(LOGS)
    with ControlPlaneClient(url) as client:
        Queue[str]("logs", client=client).put_many(["fine", "bad", "boom"])
        Queue[str]("more logs", client=client).put("fine")
    with command(tmp_path, "logs", "--until-empty") as running:
        _, log = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "begins: logs.handle for queue 'logs', 1 at once in threads, on sqlite:///" in log
    assert "begins: logs.more for queue 'more logs', 3 at once in threads" in log
    assert log.count(" is done in ") == 2
    assert "ERROR holdfast.worker job " in log
    assert "is buried: no such picture" in log
    assert "failed (attempt 1 of 2), again in 0.01 s: KeyError: 'boom'\nTraceback (most recent call last):\n  File" in log
    assert "has stopped: 1 done, 2 failed" in log


def test_the_log_level_is_chosen(tmp_path: Path, url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue[str]("mail", client=client).put("a")
    with command(tmp_path, "app:send", "--until-empty", "--log-level", "warning") as running:
        assert running.communicate(timeout=60) == ("", "")
    assert running.returncode == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nowhere_at_all", "module 'broken' needs the module 'nowhere_at_all', which is not installed"),
        ("x = 1\ny = nothing", "module 'broken' cannot be imported: {folder}/broken.py, line 2: NameError: name 'nothing' is not defined"),
        ("def f(:", "module 'broken' cannot be imported: {folder}/broken.py, line 1: SyntaxError"),
        ("x = 1", "module 'broken' has no workers: decorate a function with @worker(...), or with @app.task"),
        (
            "from holdfast import worker\n@worker('q')\ndef a(v): ...\n@worker('q')\ndef b(v): ...",
            "queue 'q' has the functions broken.a and broken.b",
        ),
        ("from holdfast import worker\n@worker('q')\ndef a(): ...", "a() takes no value"),
    ],
)
def test_a_mistake_in_the_module_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises((ValueError, TypeError)) as caught:
        make_all("broken")
    assert reason.format(folder=tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("store", "reason", "code"),
    [
        ("nope://x", "holdfast worker run: ", 2),
        ("sqlite:////no/such/folder/jobs.db", "holdfast worker run: ", 1),
    ],
)
def test_a_store_that_no_waiting_mends_ends_it_with_one_sentence(tmp_path: Path, url: str, store: str, reason: str, code: int) -> None:
    with command(tmp_path, "app:send", "--url", store) as running:
        _, error = running.communicate(timeout=60)
    assert (running.returncode, url != "") == (code, True)
    assert error.splitlines()[-1].startswith(reason)
    assert "Traceback" not in error


def test_a_database_that_is_away_at_the_start_is_waited_for_until_a_signal(tmp_path: Path, url: str) -> None:
    with command(tmp_path, "app:send", "--url", "postgresql://127.0.0.1:1/none") as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        assert "WARNING holdfast.worker" in line
        assert "cannot reach its store, and continues once it can" in line
        running.send_signal(signal.SIGTERM)
        assert (running.wait(60), url != "") == (0, True)


TASKS = """
from holdfast import Tasks

app = Tasks("shop")

@app.task
def send(to: str) -> str:
    return to
"""


@pytest.mark.parametrize("name", ["shop:app", "shop"])
def test_the_tasks_of_a_module_are_run(tmp_path: Path, url: str, name: str) -> None:
    (tmp_path / "shop.py").write_text(TASKS)
    with ControlPlaneClient(url) as client:
        job = Queue[dict[str, str]]("default", client=client).put({"to": "ann"}, metadata={"task": "shop.send"})
    with command(tmp_path, name, "--until-empty") as running:
        _, log = running.communicate(timeout=60)
    assert (running.returncode, f"job {job} of queue 'default' is done in " in log) == (0, True)
    assert "begins: shop.send for queue 'default', 1 at once in threads, on sqlite:///" in log


@pytest.mark.parametrize("queues", ["high,default", "high=3,default=1"])
def test_the_queues_of_tasks_are_chosen(tmp_path: Path, url: str, queues: str) -> None:
    (tmp_path / "shop.py").write_text(TASKS)
    with ControlPlaneClient(url) as client:
        for queue in ("high", "default"):
            Queue[dict[str, str]](queue, client=client).put({"to": "ann"}, metadata={"task": "shop.send"})
    with command(tmp_path, "shop:app", "--queues", queues, "--no-schedules", "--until-empty") as running:
        _, log = running.communicate(timeout=60)
    assert (running.returncode, log.count(" is done in ")) == (0, 2)
    assert "begins: shop.send for queues 'high'" in log


@pytest.mark.parametrize("queues", ["a=3,b", "a=x"])
def test_queues_that_are_neither_an_order_nor_weights_are_refused(tmp_path: Path, url: str, queues: str) -> None:
    (tmp_path / "shop.py").write_text(TASKS)
    with command(tmp_path, "shop:app", "--queues", queues) as running:
        _, log = running.communicate(timeout=60)
    assert (running.returncode, "nor has it a weight for each" in log) == (2, True)


def test_the_tasks_of_a_module_are_listed_and_a_job_is_shown(tmp_path: Path, url: str) -> None:
    (tmp_path / "shop.py").write_text(TASKS)
    with ControlPlaneClient(url) as client:
        job = Queue[dict[str, str]]("default", client=client).put({"to": "ann"}, metadata={"task": "shop.send"})

    def called(*arguments: str) -> str:
        program = [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments]
        return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout

    for name in ("shop", "shop:app"):
        assert "shop.send  default  threads" in called("tasks", name)
    assert '"parameters":"to"' in called("tasks", "shop", "--json")
    said = called("job", str(job), "--url", url)
    assert "state        waiting" in said
    assert "task         shop.send" in said
    assert '"state":"waiting"' in called("job", str(job), "--queue", "default", "--url", url, "--json")
