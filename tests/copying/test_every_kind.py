"""Everything that handles keep is moved through stores of every kind, by copies, an export and a backup, and goes on at the end."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import ControlPlaneClient, Dict, Job, Limiter, Once, RateLimited, Schedule, copy
from holdfast._sync.flows.ticking import Ticker
from holdfast.commands import Browse, Configure, Groups, Leases, Names, Resize
from holdfast.testing.conformance.asking import claim, ids, put, read, settle
from tests.cli.running import holdfast
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url
from tools.stored_newer import LONG_S, POOL, SCARCE, tasks_of, write_jobs, write_lines, write_schedules


def fill(url: str, client: ControlPlaneClient) -> None:
    """Keep something of every kind."""
    store = client.store
    write_lines(store.execute)
    store.execute(Configure("queue", "fair", groups="fair", keep_done_s=LONG_S, group_limit=1, limit=3))
    put(store, "done", "next", queue="fair", group="a")
    settle(store, claim(store, queue="fair"), trace="a traceback")
    store.execute(Configure("queue", "fair", group="b", weight=3, paused=True))
    store.execute(Configure("queue", "early", group="c", weight=2))
    store.execute(Resize(POOL, 5))
    Limiter("published", SCARCE, client=client).acquire(key="ann", cost=2)
    Once("payments", client=client).run("order 1", lambda: "receipt")
    Dict.create("settings", client=client).put("color", "red", ttl_s=LONG_S)
    Dict.create("jobs", client=client).update(write_jobs(url))
    write_schedules(url, store)


def is_used_up(client: ControlPlaneClient) -> bool:
    with pytest.raises(RateLimited):
        Limiter("published", SCARCE, client=client).acquire(key="ann")
    return True


def job(client: ControlPlaneClient, name: str) -> Job[Any]:
    return Job("stored", Dict.from_name("jobs", client=client).get(name), client=client)


SEEN: Final[dict[str, Callable[[ControlPlaneClient], Any]]] = {
    "policies": lambda client: {one.name: (one.policy, one.paused) for one in client.store.execute(Names("queue")).settings},
    "throttles": lambda client: {one.name for one in client.store.execute(Names("queue")).settings if one.throttled_until},
    "groups": lambda client: {one.name: one.own for queue in ("fair", "early") for one in client.store.execute(Groups(queue)).lanes},
    "done messages": lambda client: [
        (message.id, message.trace, message.group) for message in client.store.execute(Browse("fair", state="done")).messages
    ],
    "labels": lambda client: [message.labels for message in client.store.execute(Browse("labelled")).messages],
    "unique keys": lambda client: put(client.store, "again", queue="unique", key="digest", unique_for_s=LONG_S).ids,
    "capacities": lambda client: {one.key: one.capacity for one in client.store.execute(Leases()).held},
    "limiters": is_used_up,
    "once": lambda client: Once("payments", client=client).run("order 1", lambda: "again"),
    "entries": lambda client: read(client.store),
    "schedules": lambda client: [(one.name, one.rule, one.tz, one.paused, one.runs) for one in Schedule.list(client=client)],
    "steps": lambda client: [(step.name, step.result) for step in job(client, "payment").steps()],
    "flows": lambda client: job(client, "flow").status().progress,
}
"""What there is of each kind, as handles or commands show it."""


def seen_at(url: str) -> dict[str, Any]:
    with ControlPlaneClient(url) as client:
        return {kind: see(client) for kind, see in SEEN.items()}


def done(*arguments: str) -> None:
    ran = holdfast(*arguments)
    assert ran.exit_code == 0, ran.output


def test_every_kind_of_data_comes_through_every_kind_of_store(tmp_path: Path) -> None:
    first, last = f"sqlite:///{tmp_path}/first.db", f"sqlite:///{tmp_path}/last.db"
    with ControlPlaneClient(first) as client:
        fill(first, client)
    way = [first, f"lmdb:///{tmp_path}/lmdb", own_redis_url(), own_postgres_url()]
    before = seen_at(first)
    assert all(before.values()), before
    for source, target in pairwise(way):
        copy(source, target)
        assert seen_at(target) == before
    done("export", f"{tmp_path}/all.ndjson", f"--url={way[-1]}")
    done("import", f"{tmp_path}/all.ndjson", f"--url={last}")
    assert seen_at(last) == before
    done("backup", f"{tmp_path}/backup", f"--url={last}")
    done("restore", last, f"--from={tmp_path}/backup")
    assert seen_at(last) == before
    go_on(last)


def go_on(url: str) -> None:
    """What was begun is ended."""
    with ControlPlaneClient(url) as client:
        Ticker(client.store, "me").tick()
        assert len(client.store.execute(Browse("reports")).messages) == 1
        assert ids(claim(client.store, 9, queue="fair")) == ["next"]
        job(client, "payment").send("approved", "ann")
        tasks_of(url, str.upper).run(until_empty=True)
        assert job(client, "payment").result(timeout_s=60.0) == "order 1 is charged, approved by ann"
        assert job(client, "flow").result(timeout_s=60.0)["both"] == [8, 9]
