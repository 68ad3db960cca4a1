"""Things of every kind in a store, with a text in all their fields that a page may take for something else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from msgspec import json

from holdfast import ControlPlaneClient, Dict, JobContext, Lock, Queue, Schedule, Tasks
from holdfast.backoff import Backoff
from holdfast.server.audit import Act, Actor, recorded
from holdfast.workers.registry import WorkerHealth
from tests.browser.shop import live_worker

PAYLOADS = {
    "markup": "<img src=x onerror=window.hacked=1></script><svg onload=window.hacked=1>\"'&lt;",
    "unseen": "\u202etxt.exe\u2066\u200f\u200b\ufeff\u2028",
    "huge": "W" * 180,
}
CONTROLS = "\x1b[31m\x01\x7f\x9b"
"""Names may have none of them, other texts may."""

SHOWN = 24
"""So much of each text is looked for: screens cut long ones."""


def as_shown(text: str) -> str:
    """How the dashboard shows a text: what is not seen, or turns the text around, by its code."""
    return "".join(character if character.isprintable() else f"⟨U+{ord(character):04X}⟩" for character in text)


SCREENS = {
    "queues/{queue}/ready": {"ready-key", "ready-group", "ready-value"},
    "queues/{queue}/leased": {"leased-key", "leased-group", "leased-value", "worker"},
    "queues/{queue}/dead": {"dead-key", "error"},
    "queues/{queue}/done": {"done-key", "done-group", "done-value"},
    "queues/{queue}/groups": {"ready-group"},
    "queues/{queue}/activity": {"queue"},
    "queues/{second}/settings": {"second", "burial"},
    "message/{queue}/{dead}": {"dead", "dead-key", "dead-group", "dead-label", "dead-note", "dead-value", "error", "worker"},
    "message/{queue}/{job}": {"job", "task", "step", "result", "signal", "progress", "failure"},
    "dicts/{dict}": {"dict", "key", "entry"},
    "workers/{worker}": {"worker", "host", "known"},
    "runs/{queue}": {"signal"},
    "events/queue:{queue}": {"ready"},
    "overview": {"queue", "health", "host"},
    "queues": {"queue"},
    "dead": {"error"},
    "workers": {"worker", "other", "health", "host"},
    "schedules": {"schedule", "pause", "queue"},
    "dicts": {"dict"},
    "locks": {"lock", "owner"},
    "events": {"queue", "dict"},
    "audit": {"who", "where", "namespace", "act", "what", "reason"},
}
"""The screens by the names in their addresses, each with the fields that it shows."""


class Named:
    """What is in the store under one payload."""

    def __init__(self, payload: str) -> None:
        self.payload = payload
        self.names: dict[str, str] = {}
        """What the address of a screen names, for it."""
        self.shown: dict[str, str] = {}
        """How the text of each field begins as it is shown."""

    def name(self, field: str, most: int = 200) -> str:
        """A name for something."""
        name = f"{field} {self.payload}".encode()[:most].decode(errors="ignore")
        self.names[field] = quote(name, safe="")
        self.shown[field] = as_shown(name)[:SHOWN]
        return name

    def text(self, field: str) -> str:
        """A text that may have control characters, too."""
        text = f"{field} {self.payload}{CONTROLS}"
        self.shown[field] = as_shown(text)[:SHOWN]
        return text

    def value(self, field: str) -> str:
        """A long text that is shown as JSON."""
        text = f"{field} {self.payload}{CONTROLS}{self.payload * 100}"
        self.shown[field] = as_shown(json.encode(text).decode()[1:-1])[:SHOWN]
        return text


@contextmanager
def name_everything(client: ControlPlaneClient, payload: str) -> Iterator[Named]:
    """Fill a store, and hold what is held in it until the block ends."""
    named = Named(payload)
    queue = Queue.create(named.name("queue"), client=client)
    queue.configure(groups="fair", keep_done_s=3_600.0)
    Queue.create(named.name("second"), client=client).configure(dead_letter_queue=named.name("burial"))
    run_jobs(client, named, queue.name)
    put_messages(named, queue)
    Dict.create(named.name("dict"), client=client).put(named.name("key"), named.value("entry"))
    schedule = Schedule(named.name("schedule"), "0 3 * * *", (queue.name, None), client=client)
    schedule.save()
    schedule.pause(named.text("pause"))
    health = WorkerHealth("away", running=1, done=1, failed=1, abandoned=1, error=named.text("health"))
    served = (queue.name, named.name("other"))
    live_worker(client, health, named.name("worker"), served, host=named.text("host"), tasks=(named.text("known"),))
    actor = Actor(named.text("who"), named.text("where"), named.name("namespace"))
    client.store.execute(recorded(actor, Act(named.text("act"), named.text("what"), {"reason": named.value("reason")})))
    with Lock(named.name("lock"), holder=named.name("owner"), client=client):
        yield named


def put_messages(named: Named, queue: Queue[Any]) -> None:
    """A message in every state."""
    for state in ("dead", "done", "leased", "ready"):
        queue.put(
            {"text": named.value(f"{state}-value")},
            id=named.name(state),
            key=named.name(f"{state}-key", 150),
            group=named.name(f"{state}-group", 150),
            labels=[named.name(f"{state}-label", 64)] if state == "dead" else [],
            metadata={"note": named.value(f"{state}-note")} if state == "dead" else {},
            max_attempts=1,
        )
        if state == "ready":
            break
        claim = queue.claim(claimer=named.name("worker"), lease_s=600.0)
        assert claim is not None
        if state == "dead":
            queue.fail(claim, error=named.text("error"))
        elif state == "done":
            queue.ack(claim)


def run_jobs(client: ControlPlaneClient, named: Named, queue: str) -> None:
    """A durable job that failed once, recorded a step and waits for a signal."""
    app = Tasks("hostile", queue=queue, client=client)
    task, step, signal = named.name("task", 100), named.name("step", 100), named.name("signal", 100)
    progress, failure, result = named.value("progress"), named.text("failure"), named.value("result")

    @app.task(name=task, max_attempts=2, backoff=Backoff(first_s=0.0))
    def odd(job: JobContext) -> str:
        job.progress(0.5, progress)
        job.step(step, lambda: result)
        if job.message.attempts == 1:
            raise ValueError(failure)
        return job.wait(signal, str, timeout_s=600.0)

    odd.using(id=named.name("job")).put()
    app.run(until_empty=True, signals=False, schedules=False)
