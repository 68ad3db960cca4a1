"""Every call about the settings and groups of a queue, for type checkers."""

from dataclasses import dataclass
from typing import assert_type

from holdfast import Backoff, GroupInfo, MessageId, Queue, QueueGroup, QueueMessage, Rate, Stats


@dataclass
class Job:
    picture: str


def groups(jobs: Queue[Job]) -> None:
    jobs.configure(groups="fair", group_limit=4, group_rate=Rate(10, per_s=1.0, burst=5), limit=32, rate=Rate(600, per_s=60.0))
    jobs.configure(groups="strict", group_dead="hold", group_limit=None, order="fifo", aging_s=None, late_to="dead")
    jobs.configure(max_attempts=5, dead_letter_queue="x", lease_s=60.0, backoff=Backoff(1.0, most_s=3600.0), keep_done_s=None)
    jobs.throttle(30.0)
    acme = jobs.group("acme")
    assert_type(acme, QueueGroup)
    acme.configure(limit=10, weight=3, rate=None, paused=False)
    acme.pause()
    acme.resume()
    acme.throttle(30.0)
    acme.forget()
    assert_type(acme.stats(), Stats)
    assert_type(acme.info(), GroupInfo | None)
    assert_type(jobs.groups(prefix="a", after=None, limit=10), list[GroupInfo])
    assert_type(jobs.put(Job("a"), group="acme"), MessageId)
    assert_type(jobs.browse(state="done", group="acme"), list[QueueMessage])
