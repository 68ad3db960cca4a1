"""Each block of the documented client runs as it is documented, on every store, for threads and for tasks.

A block is a function; what it mentions and does not make (a queue, a dict, a claim that is held) it gets. Only the import differs.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ClaimLost, ControlPlaneClient, Dict, LeaseHeld, Queue
from holdfast.client import client_for
from tests.stores_by_name import url_of

STORES = ["memory", "sqlite", "lmdb", "redis", "postgres"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The store that a handle without `client=` and `base_url=` uses."""
    url = url_of(request.param, tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", url)
    yield url
    client_for(url).close()


@pytest.fixture
def jobs(url: str) -> Queue[Any]:
    jobs = Queue.create("image-jobs")
    jobs.put({"image_id": "img-1"})
    return jobs


@pytest.fixture
def shared(url: str) -> Dict[Any]:
    shared = Dict.create("shared-state")
    shared.put("alpha", {"score": 1})
    return shared


class Calls:
    """Stands for a function of the user's program that the document calls."""

    def __init__(self, fails: bool = False) -> None:  # noqa: FBT001, FBT002 - a test says it by name
        self.seen: list[Any] = []
        self.fails = fails

    def __call__(self, *args: Any) -> None:
        self.seen.extend(args)
        if self.fails:
            raise RuntimeError("out of paint")


class TestQueues:
    def test_create_and_add(self, url: str) -> None:
        jobs = Queue.create("image-jobs")
        jobs.put({"image_id": "img-1"})
        jobs.put_many([{"image_id": "img-2"}, {"image_id": "img-3"}])

        assert jobs.length() == 3
        assert [queue.name for queue in Queue.list()] == ["image-jobs"]

    def test_read_back(self, jobs: Queue[Any]) -> None:
        jobs.put_many([{"image_id": "img-2"}, {"image_id": "img-3"}])

        item = jobs.get(timeout_s=5.0, poll_interval_s=0.25)
        batch = jobs.get_many(10, timeout_s=5.0, poll_interval_s=0.25)

        assert item == {"image_id": "img-1"}
        assert batch == [{"image_id": "img-2"}, {"image_id": "img-3"}]

    def test_claim(self, jobs: Queue[Any], capsys: pytest.CaptureFixture[str]) -> None:
        claim = jobs.claim(claimer="worker-a", lease_s=60.0)
        if claim is not None:
            print(claim.claim_id, claim.value)  # noqa: T201 - as documented
            jobs.ack([claim])

        assert claim is not None
        assert capsys.readouterr().out == f"{claim.claim_id} {{'image_id': 'img-1'}}\n"
        assert jobs.stats().total == 0

    def test_renew_and_release(self, jobs: Queue[Any]) -> None:
        claim = jobs.claim(claimer="worker-a", lease_s=60.0)
        assert claim is not None

        jobs.renew([claim], lease_s=120.0)
        jobs.release([claim])

        assert jobs.length() == 1
        with pytest.raises(ClaimLost):
            jobs.ack(claim)

    def test_the_context_manager(self, jobs: Queue[Any]) -> None:
        process = Calls()

        def work() -> None:
            with jobs.claimed(claimer="worker-a", lease_s=60.0) as item:
                if item is None:
                    return
                process(item)

        work()
        work()
        assert process.seen == [{"image_id": "img-1"}]
        assert jobs.stats().total == 0

    def test_the_context_manager_releases_on_error(self, jobs: Queue[Any]) -> None:
        process = Calls(fails=True)
        with pytest.raises(RuntimeError), jobs.claimed(claimer="worker-a", lease_s=60.0) as item:
            process(item)
        assert jobs.length() == 1

    def test_retry_and_dead_letters(self, jobs: Queue[Any]) -> None:
        jobs.clear()
        process = Calls(fails=True)

        jobs.put_work(
            {"image_id": "img-42"},
            max_attempts=3,
            dead_letter_queue="image-jobs-dead",
        )
        for _ in range(4):
            work = jobs.claim_work(claimer="worker-a", timeout_s=0.01)
            if work is not None:
                try:
                    process(work.payload)
                    work.ack()
                except Exception as exc:  # noqa: BLE001 - as documented
                    work.fail(error=str(exc))

        assert process.seen == [{"image_id": "img-42"}] * 3
        dead = Queue.from_name("image-jobs-dead").claim_work(claimer="undertaker")
        assert dead is not None
        assert dead.payload == {"image_id": "img-42"}
        assert dead.metadata is not None
        assert dead.metadata["dead_letter"]["error"] == "out of paint"

    def test_work_that_succeeds(self, jobs: Queue[Any]) -> None:
        process = Calls()
        work = jobs.claim_work(claimer="worker-a", timeout_s=1.0)
        if work is not None:
            try:
                process(work.payload)
                work.ack()
            except Exception as exc:  # noqa: BLE001 - as documented
                work.fail(error=str(exc))
        assert process.seen == [{"image_id": "img-1"}]
        assert jobs.stats().total == 0

    def test_watch(self, jobs: Queue[Any], capsys: pytest.CaptureFixture[str]) -> None:
        for event in jobs.watch(snapshot=True, timeout_s=0.0):
            print(event.event, event.data)  # noqa: T201 - as documented
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["snapshot", "synced"]

    def test_delete(self, jobs: Queue[Any]) -> None:
        assert jobs.delete().count == 1
        assert Queue.list() == []
        assert jobs.get(default="nothing") == "nothing"


class TestDicts:
    def test_basics(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        shared = Dict.create("shared-state")
        shared.put("alpha", {"score": 1})
        shared.update({"beta": {"score": 2}})
        print(shared.get("alpha"))  # noqa: T201 - as documented
        print(shared.items())  # noqa: T201 - as documented

        assert capsys.readouterr().out == "{'score': 1}\n[('alpha', {'score': 1}), ('beta', {'score': 2})]\n"
        assert shared.length() == 2
        assert shared.get_many(["alpha", "gamma"]) == {"alpha": {"score": 1}}
        assert [one.name for one in Dict.list()] == ["shared-state"]

    def test_watch(self, shared: Dict[Any], capsys: pytest.CaptureFixture[str]) -> None:
        for event in shared.watch(snapshot=True, timeout_s=0.0):
            print(event.event, event.data)  # noqa: T201 - as documented
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["snapshot", "synced"]

    def test_leases(self, shared: Dict[Any]) -> None:
        lease = shared.acquire_lease("alpha", holder="worker-a", lease_s=60.0)
        shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=120.0)
        with pytest.raises(LeaseHeld):
            shared.acquire_lease("alpha", holder="worker-b", lease_s=60.0)
        shared.release_lease("alpha", lease_id=lease.lease_id)

        assert shared.acquire_lease("alpha", holder="worker-b", lease_s=60.0).token > lease.token

    def test_the_context_manager_of_a_lease(self, shared: Dict[Any]) -> None:
        update_record = Calls()

        with shared.lease("alpha", holder="worker-a", lease_s=60.0) as lease:
            update_record(lease.current_value)

        assert update_record.seen == [{"score": 1}]
        assert lease.lost

    def test_compare_and_set(self, shared: Dict[Any], capsys: pytest.CaptureFixture[str]) -> None:
        lease = shared.acquire_lease("alpha", holder="worker-a", lease_s=60.0)
        for _ in range(2):
            result = shared.compare_and_set(
                "alpha",
                {"score": 1},
                {"score": 2},
                lease_id=lease.lease_id,
            )

            if result.updated:
                print("update applied")  # noqa: T201 - as documented
            else:
                print("current value:", result.current_value)  # noqa: T201 - as documented
        assert capsys.readouterr().out == "update applied\ncurrent value: {'score': 2}\n"

    def test_locks(self, shared: Dict[Any]) -> None:
        run_singleton_task = Calls()

        with shared.locked("scheduler-lock", holder="node-a", lease_s=30.0):
            run_singleton_task("inside")
            assert shared.try_become_leader("scheduler-lock", holder="node-b", lease_s=30.0) is None

        assert run_singleton_task.seen == ["inside"]
        assert shared.get("scheduler-lock") is True

    def test_leader_election(self, shared: Dict[Any]) -> None:
        run_control_loop = Calls()

        leader = shared.try_become_leader("cluster-leader", holder="node-a", lease_s=30.0)
        if leader is not None:
            try:
                run_control_loop("leading")
            finally:
                leader.release()

        assert run_control_loop.seen == ["leading"]
        assert shared.try_become_leader("cluster-leader", holder="node-b", lease_s=30.0) is not None


@pytest.mark.anyio
class TestForTasks:
    """The same blocks with `.aio`."""

    @pytest.fixture
    async def closed(self, url: str) -> AsyncIterator[None]:
        yield
        await client_for(url).aio.close()

    async def test_the_documented_block(self, jobs: Queue[Any], shared: Dict[Any], closed: None) -> None:
        item = await jobs.aio.get(timeout_s=5.0, poll_interval_s=0.25)
        events = [event async for event in shared.aio.watch(snapshot=True, timeout_s=0.0)]

        assert item == {"image_id": "img-1"}
        assert [event.event for event in events] == ["snapshot", "synced"]

    async def test_queues(self, url: str, closed: None) -> None:
        jobs = await Queue.aio.create("image-jobs")
        await jobs.put({"image_id": "img-1"})
        await jobs.put_many([{"image_id": "img-2"}, {"image_id": "img-3"}])
        claim = await jobs.claim(claimer="worker-a", lease_s=60.0)
        assert claim is not None
        await jobs.renew([claim], lease_s=120.0)
        await jobs.release([claim])
        assert await jobs.get_many(10, timeout_s=5.0, poll_interval_s=0.25) == [{"image_id": f"img-{n}"} for n in (2, 3, 1)]

    async def test_the_context_manager(self, jobs: Queue[Any], closed: None) -> None:
        process = Calls()
        async with jobs.aio.claimed(claimer="worker-a", lease_s=60.0) as item:
            process(item)
        assert process.seen == [{"image_id": "img-1"}]
        assert await jobs.aio.length() == 0

    async def test_retry_and_dead_letters(self, url: str, closed: None) -> None:
        jobs = await Queue.aio.create("image-jobs")
        await jobs.put_work({"image_id": "img-42"}, max_attempts=1, dead_letter_queue="image-jobs-dead")
        work = await jobs.claim_work(claimer="worker-a", timeout_s=1.0)
        assert work is not None
        await work.fail(error="out of paint")
        assert await Queue.from_name("image-jobs-dead").aio.length() == 1

    async def test_watch(self, jobs: Queue[Any], closed: None) -> None:
        assert [event.event async for event in jobs.aio.watch(timeout_s=0.0)][-1] == "put"

    async def test_dicts(self, url: str, closed: None) -> None:
        shared = await Dict.aio.create("shared-state")
        await shared.put("alpha", {"score": 1})
        await shared.update({"beta": {"score": 2}})
        assert await shared.get("alpha") == {"score": 1}
        assert await shared.items() == [("alpha", {"score": 1}), ("beta", {"score": 2})]
        lease = await shared.acquire_lease("alpha", holder="worker-a", lease_s=60.0)
        await shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=120.0)
        result = await shared.compare_and_set("alpha", {"score": 1}, {"score": 2}, lease_id=lease.lease_id)
        assert result.updated
        await shared.release_lease("alpha", lease_id=lease.lease_id)
        async with shared.lease("alpha", holder="worker-a", lease_s=60.0) as held:
            assert held.current_value == {"score": 2}

    async def test_locks_and_leaders(self, shared: Dict[Any], closed: None) -> None:
        async with shared.aio.locked("scheduler-lock", holder="node-a", lease_s=30.0):
            assert await shared.aio.try_become_leader("scheduler-lock", holder="node-b", lease_s=30.0) is None
        leader = await shared.aio.try_become_leader("cluster-leader", holder="node-a", lease_s=30.0)
        assert leader is not None
        await leader.release()


class TestWhereItIsKept:
    def test_each_call_takes_a_client_or_a_url(self, url: str, tmp_path: Path) -> None:
        elsewhere = f"sqlite:///{tmp_path}/elsewhere"
        with ControlPlaneClient(elsewhere) as client:
            Queue.create("jobs", client=client).put("there")
            assert Queue.from_name("jobs").length() == 0
            assert Queue.from_name("jobs").length(client=client) == 1
            Dict.create("state", client=client)
            assert [one.name for one in Dict.list(client=client)] == ["state"]
            assert Queue.from_name("jobs").get(base_url=elsewhere) == "there"
        client_for(elsewhere).close()


def signature_tests() -> list[tuple[Callable[..., Any], str]]:
    """Every documented call with its documented arguments."""
    queue_calls = {
        "from_name": "name",
        "create": "name client base_url",
        "list": "client base_url",
        "delete": "client base_url",
        "clear": "client base_url",
        "length": "client base_url",
        "put": "value client base_url",
        "put_many": "values client base_url",
        "put_work": "value max_attempts dead_letter_queue metadata client base_url",
        "get": "default timeout_s poll_interval_s client base_url",
        "get_many": "limit timeout_s poll_interval_s client base_url",
        "claim": "claimer lease_s timeout_s poll_interval_s client base_url",
        "claimed": "claimer lease_s timeout_s poll_interval_s auto_renew renew_interval_s ack_on_success release_on_error client base_url",
        "claim_work": "claimer lease_s timeout_s poll_interval_s dead_letter_queue max_attempts client base_url",
        "ack": "claims client base_url",
        "release": "claims client base_url",
        "renew": "claims lease_s client base_url",
        "watch": "last_index timeout_s poll_interval_s snapshot client base_url",
    }
    dict_calls = {
        "from_name": "name",
        "create": "name client base_url",
        "list": "client base_url",
        "delete": "client base_url",
        "clear": "client base_url",
        "length": "client base_url",
        "put": "key value client base_url",
        "update": "values client base_url",
        "get": "key default client base_url",
        "get_many": "keys client base_url",
        "items": "client base_url",
        "watch": "last_index timeout_s poll_interval_s snapshot client base_url",
        "acquire_lease": "key holder lease_s client base_url",
        "lease": "key holder lease_s auto_renew renew_interval_s client base_url",
        "release_lease": "key lease_id client base_url",
        "renew_lease": "key lease_id lease_s client base_url",
        "compare_and_set": "key expected value lease_id client base_url",
        "locked": ("key holder lease_s wait_timeout_s poll_interval_s default_value auto_renew renew_interval_s client base_url"),
        "try_become_leader": "key holder lease_s default_value client base_url",
    }
    handles: list[tuple[Any, dict[str, str]]] = [(Queue, queue_calls), (Queue.aio, queue_calls), (Dict, dict_calls), (Dict.aio, dict_calls)]
    return [(getattr(handle, name), arguments) for handle, calls in handles for name, arguments in calls.items()]


DEFAULTS = {
    ("put_work", "max_attempts"): 3,
    ("get", "poll_interval_s"): 1.0,
    ("locked", "default_value"): True,
    ("try_become_leader", "default_value"): True,
    ("watch", "last_index"): -1,
    ("watch", "snapshot"): False,
    ("claimed", "ack_on_success"): True,
    ("claimed", "release_on_error"): True,
}
USUAL: dict[str, object] = {
    "poll_interval_s": 0.5,
    "timeout_s": None,
    "wait_timeout_s": None,
    "auto_renew": True,
    "renew_interval_s": None,
    "client": None,
    "base_url": None,
    "default": None,
    "lease_s": 60.0,
}


@pytest.mark.parametrize(("call", "arguments"), signature_tests(), ids=lambda value: getattr(value, "__qualname__", None))
def test_a_call_has_the_documented_arguments_and_defaults(call: Callable[..., Any], arguments: str) -> None:
    import inspect

    parameters = inspect.signature(call).parameters
    assert not set(arguments.split()) - set(parameters)
    for name in arguments.split():
        parameter = parameters[name]
        documented = DEFAULTS.get((call.__name__, name), USUAL.get(name, parameter.default))
        if parameter.default is not inspect.Parameter.empty:
            assert parameter.default == documented, name
