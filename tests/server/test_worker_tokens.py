"""Workers behind a server that asks for tokens: what they need, and that nothing else in their process suffers."""

import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Breaker, ControlPlaneClient, JobContext, NotAllowed, Queue, Worker
from holdfast.codec import encode_key
from holdfast.commands import Change, Write
from holdfast.records import Receipt
from holdfast.server.auth import callers, guarded_store
from holdfast.server.auth.permissions import Need
from holdfast.server.auth.scope_presets import worker_grants
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.workers.once_record import LedgerEntry
from tests.cli.running import holdfast
from tests.server.serving import Served
from tests.server.test_tokens import make

PAGE = Path(__file__).parents[2] / "docs/howto/tokens.md"


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def served(inner: MemoryStore) -> Iterator[Served]:
    served = Served(inner)
    make(inner, "admin")
    yield served
    served.close()


def each_verb(scope: str) -> set[str]:
    kind, name, verbs = scope.split(":")
    return {f"{kind}:{name}:{verb}" for verb in verbs.split(",")}


@pytest.fixture
def needed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The scopes that were asked for, one verb each."""
    needed: set[str] = set()
    check = callers.check

    def noting(caller: Any, need: Need) -> None:
        if caller.scopes[0].kind != "admin":
            needed.add(need.scope)
        check(caller, need)

    monkeypatch.setattr(guarded_store, "check", noting)
    return needed


def test_a_worker_with_everything_needs_just_what_its_preset_grants(
    served: Served, inner: MemoryStore, needed: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    grants = [grant.scope for grant in worker_grants("resize")]
    has_begun = threading.Event()

    def resize(value: str, job: JobContext) -> str:
        if value == "dies":
            raise KeyError(value)
        job.report(value)
        has_begun.set()
        while value == "endless":
            job.check()
        return value.upper()

    def worker_of(client: ControlPlaneClient) -> Worker[Any, Any, Any]:
        breaker = Breaker(1, cooldown_s=0.01, shared=True)  # Opened by the job that dies, and closed by the one after it.
        return Worker(
            resize,
            "resize",
            client=client,
            results=True,
            idempotent=True,
            idempotency_key=str,
            max_attempts=1,
            schedules=False,
            breaker=breaker,
        )

    with (
        caplog.at_level(logging.INFO, "holdfast"),
        ControlPlaneClient(served.url, token=make(inner, *grants)) as theirs,
        ControlPlaneClient(served.url, token=make(inner, "admin", namespaces=("*",))) as ours,
    ):
        producer = worker_of(ours)
        begun = LedgerEntry("started", Receipt("resize", "of a worker that died", 1).claim_id, "somebody")
        inner.execute(Write("resize-once", [Change(encode_key("ghost"), value=begun.raw)]))
        for value in ("owl", "owl", "dies", "ghost"):
            producer.put(value)
        worker = worker_of(theirs)
        worker.run(until_empty=True)
        has_begun.clear()
        endless = producer.put("endless")
        worker.start()
        assert has_begun.wait(60)
        assert endless.cancel() == "requested"
        while Queue.from_name("resize", client=ours).stats().leased:
            assert not [record for record in caplog.records if "may not" in record.getMessage()]
        worker.stop()
    assert needed == set().union(*map(each_verb, grants))


def test_the_page_about_tokens_lists_what_a_worker_needs() -> None:
    text = PAGE.read_text()
    for grant in worker_grants("resize"):
        assert f"| `{grant.scope}` | {grant.reason} |" in text


def test_a_token_for_a_worker_is_made_by_the_name_of_its_queue(tmp_path: Path) -> None:
    url = f"--url=sqlite:///{tmp_path}/s.db"
    made = holdfast("token", "create", "w", "--for-worker=resize", "--scope=queue:resize-dead:put", url, "--create-store", "--json")
    granted = [grant.scope for grant in worker_grants("resize")]
    assert made.exit_code == 0
    assert all(scope in made.stdout for scope in [*granted, "queue:resize-dead:put"])
    nothing = holdfast("token", "create", "w", url)
    assert (nothing.exit_code, "--scope or --for-worker" in nothing.stderr) == (2, True)


def test_one_topic_that_is_refused_does_not_silence_the_others(served: Served, inner: MemoryStore) -> None:
    store = HttpStore(served.url, token=make(inner, "queue:jobs:claim,put"))
    hinted: list[str] = []
    with store.listener.on("queue:secret") as refused, store.listener.on("queue:jobs") as allowed:
        assert refused is not None
        assert allowed is not None
        refused.result(60)
        allowed.result(60)
        assert (store.listener.hears_of("queue:secret"), store.listener.hears_of("queue:jobs")) == (False, True)
        stop = store.waiters.listen("queue:jobs", lambda _: hinted.append("jobs"))
        mark = store.mark("queue:jobs")
        Queue[int]("jobs", client=ControlPlaneClient.on(store)).put(1)
        store.wait(mark, 30.0)
        stop()
    with store.listener.on("queue:secret") as again:
        assert again is None, "it is not asked for once more"
    assert hinted
    store.close()


@pytest.mark.parametrize(("scope", "may"), [("queue:jobs:claim", True), ("*", True), ("queue:jobs:put", False), ("dict:*:*", False)])
def test_whoever_may_claim_may_wait_on_the_topic_of_a_worker(served: Served, inner: MemoryStore, scope: str, *, may: bool) -> None:
    store = HttpStore(served.url, token=make(inner, scope))
    with store.listener.on("worker:01a1e13b") as announced:
        assert announced is not None
        announced.result(60)
        assert store.listener.hears_of("worker:01a1e13b") is may
    store.close()


@pytest.mark.parametrize("verb", ["put", "claim", "read"])
def test_creating_a_queue_that_is_there_takes_no_right_to_manage_it(served: Served, inner: MemoryStore, verb: str) -> None:
    with ControlPlaneClient(served.url, token=make(inner, "admin")) as ours:
        Queue.create("jobs", client=ours, maxsize=10)
    with ControlPlaneClient(served.url, token=make(inner, f"queue:jobs:{verb}")) as theirs:
        Queue.create("jobs", client=theirs)
        Queue.create("jobs", client=theirs, maxsize=10)
        with pytest.raises(NotAllowed, match=re.escape("queue:jobs:manage")):
            Queue.create("jobs", client=theirs, maxsize=11)
        with pytest.raises(NotAllowed):
            Queue.create("others", client=theirs)
    with ControlPlaneClient(served.url, token=make(inner, "queue:else:put")) as strangers, pytest.raises(NotAllowed):
        Queue.create("jobs", client=strangers)


def scopes_to(act: str) -> list[str]:
    """What the page about tokens says that a program needs for this."""
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {act} | ")]
    return re.findall(r"`([^`]+)`", row)


def test_programs_that_use_jobs_need_what_the_page_says(served: Served, inner: MemoryStore) -> None:
    def resize(value: int, job: JobContext) -> int:
        job.report(value)
        return value

    worker = Worker(resize, "resize", client=ControlPlaneClient.on(inner), results=True)

    def may(*acts: str) -> Worker[Any, Any, Any]:
        token = make(inner, *[scope for act in acts for scope in scopes_to(act)])
        return Worker(resize, "resize", client=ControlPlaneClient(served.url, token=token), results=True)

    job = may("put jobs").put(1)
    worker.run(until_empty=True)
    assert may("wait for results").job(job.id).result(timeout_s=60) == 1
    assert may("read reports").job(job.id).progress() is None
    waiting = may("put jobs").put(2)
    assert may("cancel").job(waiting.id).cancel() == "cancelled"
    assert Worker.list(client=may("list workers").client) == []
