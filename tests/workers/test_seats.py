"""How queues share the seats of a worker, over ten thousand jobs that take equally long."""

import random
from collections import Counter

import pytest

from holdfast.workers.running.seats import Seats
from holdfast.workers.running.wakeup import Bell

JOBS = 10_000


def served(seats: Seats | None, queues: list[str], count: int) -> Counter[str]:
    """How many jobs of each queue were started of so many, where every queue always has work; without seats each takes what it can."""
    rng, running, started = random.Random(1), list[str](), Counter[str]()
    while started.total() < JOBS:
        for queue in rng.sample(queues, len(queues)):
            room = count - len(running)
            taken = room if seats is None else seats.take(queue, room)
            if seats is not None and taken:
                seats.claimed(queue, taken, taken, is_dry=False)
            running += [queue] * taken
            started[queue] += taken
        ended = running.pop(0)
        if seats is not None:
            seats.ended(ended, 1)
    return started


def made(count: int, weights: dict[str, float] | None, queues: list[str]) -> Seats:
    seats = Seats(count, queues, weights)
    for queue in queues:
        seats.ring_for(queue, Bell())
    return seats


@pytest.mark.parametrize("count", [1, 4, 5, 7, 16])
def test_by_weight_starts_are_within_a_tenth_of_the_weights(count: int) -> None:
    started = served(made(count, {"a": 3, "b": 1}, ["a", "b"]), ["a", "b"], count)
    assert 0.9 <= started["a"] / (0.75 * JOBS) <= 1.1


def test_control_without_seats_starts_do_not_follow_the_weights() -> None:
    assert not 0.9 <= served(None, ["a", "b"], 5)["a"] / (0.75 * JOBS) <= 1.1


@pytest.mark.parametrize("count", [1, 4])
def test_in_order_a_later_queue_gets_nothing_while_an_earlier_one_has_work(count: int) -> None:
    assert served(made(count, None, ["high", "low"]), ["high", "low"], count)["low"] == 0


def test_what_others_leave_unused_is_lent_and_comes_back_when_a_job_ends() -> None:
    seats = made(4, {"a": 3, "b": 1}, ["a", "b"])
    assert seats.take("a", 4) == 3, "one is kept for the other, which may have work"
    seats.claimed("a", 3, 0, is_dry=True)
    assert seats.take("b", 4) == 4, "a dry queue keeps none"
    seats.claimed("b", 4, 4, is_dry=False)
    seats.hinted("a")
    assert seats.take("a", 4) == 0, "nothing is taken back by force"
    seats.ended("b", 1)
    assert (seats.take("b", 4), seats.take("a", 4)) == (0, 1)
