"""The fixtures `drain` and `assert_put`."""

from pathlib import Path

import pytest
from msgspec import Struct

from holdfast import Backoff, ControlPlaneClient, JobContext, Queue, Snooze, Tasks, Worker, worker
from holdfast.arguments.where import redirect_workers
from holdfast.testing.clock import FakeClock
from holdfast.testing.jobs import AssertPut, Drain, Drained

sent: list[str] = []


@worker("orders")
def order(name: str, job: JobContext) -> None:
    job.put("mail", {"to": name}, key=name)


@worker("mail", max_attempts=3, backoff=Backoff(first_s=60.0))
def send(mail: dict[str, str], job: JobContext) -> None:
    if job.failures < 2:
        raise ConnectionError("not yet")
    sent.append(mail["to"])


@worker("letters")
def order_letter(name: str, job: JobContext) -> None:
    job.put("post", {"to": name})


@worker("post", max_attempts=3)
async def send_later(mail: dict[str, str]) -> None:
    sent.append(mail["to"])


@worker("waits")
def wait_for_ever(value: int) -> None:
    raise Snooze(1.0)


def double(value: int) -> int:
    return 2 * value


class Card(Struct, frozen=True):
    to: str


@worker("cards", base_url="sqlite:///never-made.db")
def post(card: Card) -> None:
    sent.append(card.to)


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    sent.clear()


def test_what_is_due_is_run_and_what_is_put_is_seen(drain: Drain, assert_put: AssertPut) -> None:
    order.put("ann")
    assert drain(order) == Drained(done=1)
    (message,) = assert_put("mail", {"to": "ann"}, key="ann", times=1)
    assert message.attempts == 0
    assert_put("orders", times=0)
    assert assert_put(Queue[object]("mail")) == [message]


def test_of_tasks_only_the_queues_that_are_named_are_run(drain: Drain, assert_put: AssertPut, holdfast_client: ControlPlaneClient) -> None:
    app = Tasks("post", client=holdfast_client)

    @app.task(name="stamp", queue="stamps")
    def stamp(to: str) -> None:
        carry.put(to)

    @app.task(name="carry", queue="bags")
    def carry(to: str) -> None:
        sent.append(to)

    stamp.put("ann")
    assert drain(app, order, queues=["stamps"]) == Drained(done=1)
    assert_put(carry, times=1)
    assert drain(app, queues=["stamps", "bags"]) == Drained(done=1)
    assert sent == ["ann"]
    with pytest.raises(ValueError, match="none of these workers serves queue 'bag': bags, stamps"):
        drain(app, queues=["bag"])


def test_jobs_that_put_jobs_are_run_to_the_end(drain: Drain) -> None:
    order_letter.put("ann")
    assert drain(send_later, order_letter) == Drained(done=2)
    assert sent == ["ann"]


def test_the_clock_moves_to_what_is_due_later_only_if_asked(drain: Drain, holdfast_clock: FakeClock) -> None:
    send.put({"to": "bob"})
    assert drain(send) == Drained(failed=1)
    before = holdfast_clock.now_us()
    assert drain(send, delayed=True) == Drained(done=1, failed=1)
    assert sent == ["bob"]
    assert holdfast_clock.now_us() > before


def test_workers_with_a_store_of_their_own_use_the_test_s_instead(drain: Drain, assert_put: AssertPut, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/real.db"
    with ControlPlaneClient("memory://") as real:
        for made in (Worker(double, "by url", base_url=url, results=True), Worker(double, "by client", client=real, results=True)):
            job = made.put(21)
            assert_put(made, 21, times=1)
            assert drain(made) == Drained(done=1)
            assert job.result(timeout_s=0) == 42
        assert Queue.list(client=real) == []
    assert list(tmp_path.iterdir()) == []


def test_after_the_test_a_worker_uses_its_own_store_again(holdfast_client: ControlPlaneClient) -> None:
    with ControlPlaneClient("memory://") as real:
        made = Worker(double, "doubles", client=real)
        assert made.client is holdfast_client
        with redirect_workers(real):
            assert made.client is real
        assert made.client is holdfast_client


def test_what_a_typed_worker_was_put_is_compared_with_its_type(assert_put: AssertPut, drain: Drain) -> None:
    post.put(Card("ann"))
    assert_put(post, Card("ann"), times=1)
    assert_put("cards", {"to": "ann"}, times=1)
    assert drain(post) == Drained(done=1)


def test_a_missing_message_is_told_with_what_is_there(assert_put: AssertPut) -> None:
    Queue[str]("mail").put("hello", key="k")
    with pytest.raises(AssertionError, match=r"none of value='bye' in queue 'mail'; there wait\n  'hello' \(key='k'\)"):
        assert_put("mail", "bye")
    with pytest.raises(AssertionError, match="1, not 2, of value='hello'"):
        assert_put("mail", "hello", times=2)
    with pytest.raises(AssertionError, match="nothing"):
        assert_put("empty")
    with pytest.raises(TypeError, match="no colour"):
        assert_put("mail", colour="red")


def test_jobs_that_never_end_are_noticed(drain: Drain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.testing.jobs.ROUNDS", 5)
    wait_for_ever.put(1)
    with pytest.raises(RuntimeError, match="still jobs"):
        drain(wait_for_ever, delayed=True)
