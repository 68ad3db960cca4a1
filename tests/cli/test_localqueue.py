"""`holdfast localqueue`: localqueue's command line, on any store."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.app import app
from holdfast.cli.localqueue.stop_signals import stopping
from holdfast.surfaces.localqueue import PersistentQueue, RetryRecord, SQLiteAttemptStore, URLAttemptStore, URLQueueStore
from tests.runners import Runner

APP = """
from pathlib import Path

def handle(value):
    Path(value).touch()

def fail(value):
    raise ValueError(f"no {value}")

NUMBER = 7
"""


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "localqueue_handlers.py").write_text(APP)
    url = f"sqlite:///{tmp_path}/jobs.db?durability=process"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "localqueue_handlers", raising=False)
    return url


@pytest.fixture
def jobs(url: str) -> Iterator[PersistentQueue[Any]]:
    queue = PersistentQueue[Any]("jobs", store=URLQueueStore(url))
    yield queue
    queue.store.close()


def called(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["localqueue", *arguments], input=stdin)


def answer(*arguments: str, stdin: str | None = None) -> Any:
    """What a command that succeeds answers."""
    result = called(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refusal(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    result = called(*arguments, stdin=stdin)
    assert result.stdout == ""
    return result.exit_code, result.stderr


def is_seen_again(jobs: PersistentQueue[Any], seen: dict[str, float]) -> bool:
    return jobs.stats().last_seen_by_worker_id != seen


class TestMessages:
    def test_a_value_is_put_leased_looked_at_and_acknowledged(self) -> None:
        put = answer("queue", "add", "jobs", "--value", '{"a": 1}', "--dedupe-key", "k")
        assert (put["value"], put["state"], put["dedupe_key"]) == ({"a": 1}, "ready", "k")
        assert answer("queue", "size", "jobs") == 1
        popped = answer("queue", "pop", "jobs", "--worker-id", "w1", "--lease-timeout", "60")
        assert (popped["id"], popped["leased_by"], popped["attempts"]) == (put["id"], "w1", 1)
        assert answer("queue", "inspect", "jobs", put["id"], "--json")["state"] == "inflight"
        acknowledged = answer("queue", "ack", "jobs", put["id"], "--token", str(popped["token"]))
        assert acknowledged == {"id": put["id"], "state": "ack"}
        assert refusal("queue", "inspect", "jobs", put["id"])[0] == 1

    @pytest.mark.parametrize("command", ["ack", "release", "dead-letter"])
    def test_what_somebody_holds_is_settled_only_with_the_token_of_the_lease(self, command: str) -> None:
        answer("queue", "add", "jobs", "--value", "1")
        popped = answer("queue", "pop", "jobs")
        for options in ([], ["--token", "1"]):
            code, said = refusal("queue", command, "jobs", popped["id"], *options)
            assert code == 1
            assert "left alone" in said
        assert answer("queue", "stats", "jobs")["inflight"] == 1
        assert answer("queue", command, "jobs", popped["id"], "--token", str(popped["token"]))["state"] == command

    def test_values_come_from_stdin_as_json_or_raw(self, jobs: PersistentQueue[Any]) -> None:
        answer("queue", "add", "jobs", stdin="[1, 2]")
        answer("queue", "add", "jobs", "--raw", stdin="[plain")
        answer("queue", "add", "jobs", "--value", '"first"', "--priority", "5")
        assert [jobs.get(), jobs.get(), jobs.get()] == ["first", [1, 2], "[plain"]
        assert refusal("queue", "add", "jobs", stdin="[plain")[0] == 2
        assert refusal("queue", "add", "jobs", stdin="")[0] == 2

    def test_an_empty_queue_says_so(self) -> None:
        assert refusal("queue", "pop", "jobs") == (1, "holdfast localqueue: queue is empty\n")
        assert refusal("queue", "pop", "jobs", "--block", "--timeout", "0.01")[0] == 1

    def test_a_delayed_message_is_counted_apart_and_all_are_purged(self) -> None:
        answer("queue", "add", "jobs", "--value", "1", "--delay", "60")
        answer("queue", "add", "jobs", "--value", "2")
        stats = answer("queue", "stats", "jobs", "--stale-after", "5", "--json")
        assert (stats["ready"], stats["delayed"], stats["worker_health"]["active"]["count"]) == (1, 1, 0)
        result = called("queue", "purge", "jobs", "--log-events")
        assert (json.loads(result.stdout), json.loads(result.stderr)) == (2, {"event": "queue.purge", "queue": "jobs", "deleted": 2})

    def test_a_file_is_named_by_its_path_and_an_unfit_one_is_refused(self, tmp_path: Path) -> None:
        answer("queue", "add", "jobs", "--value", "1", "--store-path", str(tmp_path / "other.db"))
        assert answer("queue", "size", "jobs") == 0
        assert refusal("queue", "size", "jobs", "--store-path", "a", "--store", "memory://")[0] == 2
        assert refusal("queue", "size", "a:b") == (
            2,
            "holdfast localqueue queue size: a queue name cannot be empty or contain ':', and is 'a:b'\n",
        )
        (tmp_path / "damaged").write_text("no database at all, whatever it is called" * 100)
        assert refusal("queue", "size", "jobs", "--store-path", str(tmp_path / "damaged"))[0] == 1


class TestHandling:
    def test_a_function_handles_as_many_as_were_asked_for(self, jobs: PersistentQueue[Any], tmp_path: Path) -> None:
        for name in ("a", "b", "c"):
            jobs.put(str(tmp_path / name))
        result = called("queue", "process", "jobs", "localqueue_handlers:handle", "--max-jobs", "2", "--worker-id", "w1", "--log-events")
        assert result.exit_code == 0
        assert [json.loads(line)["state"] for line in result.stdout.splitlines()] == ["acked", "acked"]
        assert [json.loads(line)["event"] for line in result.stderr.splitlines()] == ["process.lease", "process.ack"] * 2
        assert [(tmp_path / name).exists() for name in ("a", "b", "c")] == [True, True, False]
        assert list(jobs.stats().last_seen_by_worker_id) == ["w1"]

    def test_nothing_to_do_is_an_exit_status_of_its_own(self, jobs: PersistentQueue[Any], tmp_path: Path) -> None:
        assert called("queue", "process", "jobs", "localqueue_handlers:handle").exit_code == 1
        jobs.put(str(tmp_path / "a"))
        assert (
            called("queue", "process", "jobs", "localqueue_handlers:handle", "--max-jobs", "5", "--block", "--timeout", "0.01").exit_code
            == 0
        )

    def test_a_failure_is_kept_with_the_message(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("luck")
        result = called("queue", "process", "jobs", "localqueue_handlers:fail", "--max-tries", "2")
        assert (result.exit_code, json.loads(result.stdout)["state"]) == (1, "dead-letter")
        (dead,) = jobs.dead_letters()
        assert dead.last_error == {"type": "ValueError", "module": "builtins", "message": "no luck"}
        assert answer("queue", "requeue-dead", "jobs", dead.id) == {"id": dead.id, "state": "requeued"}
        released = ("--release-on-exhaustion", "--release-delay", "60", "--retry-store-path", "attempts.sqlite3")
        assert json.loads(called("queue", "process", "jobs", "localqueue_handlers:fail", *released).stdout)["state"] == "release"
        assert jobs.stats().delayed == 1

    def test_a_program_gets_the_value_as_a_line_of_json(self, jobs: PersistentQueue[Any], tmp_path: Path) -> None:
        jobs.put({"n": 1})
        assert called("queue", "exec", "jobs", "--", "sh", "-c", f"cat > {tmp_path}/seen").exit_code == 0
        assert (tmp_path / "seen").read_text() == '{"n":1}\n'

    @pytest.mark.parametrize(
        ("program", "code", "tries"),
        [("echo out; echo err >&2; echo again >> tries; exit 3", 3, 3), ("echo again >> tries; exit 127", 127, 3)],
    )
    def test_what_a_failed_program_said_is_kept_and_shown(
        self, jobs: PersistentQueue[Any], tmp_path: Path, program: str, code: int, tries: int
    ) -> None:
        jobs.put(1)
        assert called("queue", "exec", "jobs", "--release-on-exhaustion", "--", "sh", "-c", program).exit_code == 1
        assert (tmp_path / "tries").read_text().count("again") == tries
        (message,) = jobs.dead_letters() or [jobs.get_message()]
        error = message.last_error
        assert error is not None
        assert (error["command"], error["exit_code"]) == (["sh", "-c", program], code)
        assert message.state == ("dead" if code == 127 else "inflight"), "what cannot be helped is dead whatever is asked for"
        if code == 3:
            assert (error["stdout"], error["stderr"]) == ("out", "err")

    def test_a_program_that_is_not_there_is_a_permanent_failure(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put(1)
        assert called("queue", "exec", "jobs", "--release-on-exhaustion", "no-such-program").exit_code == 1
        assert answer("queue", "dead", "jobs", "--summary", "--error-contains", "NO-SUCH")["by_error_type"] == {"CommandFailed": 1}

    def test_forever_outlasts_an_empty_queue_and_ends_when_it_is_told_to(self, jobs: PersistentQueue[Any], tmp_path: Path) -> None:
        program = [sys.executable, "-c", "from holdfast.cli import main; main()", "localqueue", "queue", "process", "jobs"]
        options = ["localqueue_handlers:handle", "--forever", "--idle-sleep", "0.05", "--worker-id", "w1"]
        with (
            subprocess.Popen([*program, *options], cwd=tmp_path, env={**os.environ}, stdout=subprocess.PIPE, text=True) as process,
            Runner() as runner,
        ):
            for name in ("a", "b"):
                # Twice seen, so once over with nothing to do.
                seen = jobs.stats().last_seen_by_worker_id
                runner.until(partial(is_seen_again, jobs, seen))
                jobs.put(str(tmp_path / name))
                assert process.stdout is not None
                assert json.loads(process.stdout.readline())["state"] == "acked"
                assert (tmp_path / name).exists()
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0

    def test_a_second_signal_gives_the_message_back(self, jobs: PersistentQueue[Any], tmp_path: Path) -> None:
        """Of two kinds: two of one kind may be heard as one."""
        jobs.put("work")
        program = [sys.executable, "-c", "from holdfast.cli import main; main()", "localqueue", "queue", "exec", "jobs"]
        command = [*program, "--forever", "--log-events", "--", "sleep", "60"]
        with subprocess.Popen(command, cwd=tmp_path, env={**os.environ}, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert "exec.lease" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 128 + signal.SIGTERM
        assert (jobs.stats().ready, jobs.stats().inflight) == (1, 0)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_second_signal_interrupts_whichever_it_is(self, number: signal.Signals) -> None:
        before = signal.getsignal(number)
        with stopping() as stop:
            signal.raise_signal(number)
            assert stop.is_set()
            with pytest.raises(SystemExit) as ended:
                signal.raise_signal(number)
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) is before

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["process", "jobs", "localqueue_handlers:handle", "--forever", "--max-jobs", "2"], "not both"),
            (["process", "jobs", "localqueue_handlers:no_such"], "no_such"),
            (["process", "jobs", "localqueue_handlers:NUMBER"], "cannot be called"),
            (["process", "jobs", "localqueue_handlers"], "names nothing"),
            (["process", "jobs", "localqueue_handlers:handle", "--circuit-breaker-failures", "2"], "circuit"),
            (["requeue-dead", "jobs"], "--all"),
            (["requeue-dead", "jobs", "m1"], "not found"),
            (["dead", "jobs", "--dry-run"], "--prune-older-than"),
            (["dead", "jobs", "--prune-older-than", "1", "--summary"], "alone"),
        ],
    )
    def test_what_is_bad_is_refused(self, arguments: list[str], problem: str) -> None:
        code, said = refusal("queue", *arguments)
        assert code in {1, 2}
        assert problem in said


class TestTheDead:
    def test_they_are_chosen_summed_up_requeued_and_pruned(self, jobs: PersistentQueue[Any]) -> None:
        for error in (ValueError("blue"), OSError("red")):
            jobs.put("x")
            jobs.dead_letter(jobs.get_message(leased_by="w1"), error=error)
        assert len(answer("queue", "dead", "jobs", "--failed-within", "60", "--min-attempts", "1", "--max-attempts", "1")) == 2
        assert [one["last_error"]["message"] for one in answer("queue", "dead", "jobs", "--error-contains", "RED")] == ["red"]
        assert answer("queue", "dead", "jobs", "--min-attempts", "2") == []
        health = answer("queue", "health", "jobs")
        assert health["dead_letters"]["by_worker_id"] == {"w1": 2}
        assert health["stats"]["dead"] == 2
        assert answer("queue", "dead", "jobs", "--prune-older-than", "60")["deleted"] == 0
        answer("config", "set", "dead_letter_ttl_seconds", "0")
        assert answer("queue", "dead", "jobs", "--dry-run")["would_delete"] == 2
        assert answer("queue", "requeue-dead", "jobs", "--all") == {"requeued": 2}


class TestSettings:
    def test_they_are_written_shown_and_used(self, tmp_path: Path) -> None:
        path = called("config", "path").stdout.strip()
        assert path.startswith(str(tmp_path / "config"))
        assert answer("config", "show") == {}
        answer("config", "init", "--store-path", str(tmp_path / "mine.db"))
        assert refusal("config", "init")[0] == 1
        answer("queue", "add", "jobs", "--value", "1")
        assert answer("queue", "size", "jobs", "--store-path", str(tmp_path / "mine.db")) == 1
        assert refusal("config", "set", "colour", "blue")[0] == 2
        assert refusal("config", "set", "retry_record_ttl_seconds", "-1")[0] == 2
        Path(path).write_text("[]")
        assert refusal("queue", "size", "jobs")[0] == 2

    @pytest.mark.parametrize("where", ["beside the queue", "a file"])
    def test_old_records_of_retries_are_pruned(self, url: str, tmp_path: Path, where: str) -> None:
        file = str(tmp_path / "attempts.db")
        attempts: Any = URLAttemptStore(url) if where == "beside the queue" else SQLiteAttemptStore(file)
        attempts.save("old", RetryRecord(3, 1.0, exhausted=True))
        options = ["--older-than", "60", *([] if where == "beside the queue" else ["--retry-store-path", file])]
        assert answer("retry", "prune", *options, "--dry-run")["would_delete"] == 1
        assert answer("retry", "prune", *options)["deleted"] == 1
        assert attempts.load("old") is None
        attempts.close()
        assert refusal("retry", "prune")[0] == 2

    def test_the_version_is_that_of_localqueue(self) -> None:
        assert called("--version").stdout == "0.5.0\n"
