"""The audit: every administrative act once, with who, from where and what, and nobody can change it."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import Raw, json, to_builtins

from holdfast import Backoff, Queue, Rate
from holdfast.commands import (
    Break,
    Change,
    Claim,
    Clear,
    Command,
    Configure,
    LowerFences,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Settle,
    Together,
    Write,
)
from holdfast.errors import HoldfastError, NotAllowed, Refused
from holdfast.records.policies import Settings
from holdfast.server.audit import KEPT_S, Act, Actor, Audited, AuditPage, audit_page, read_audit, recorded
from holdfast.server.auth.guarded_store import Reach
from holdfast.server.auth.tokens import id_of
from holdfast.server.namespaces.names import AUDIT
from holdfast.stores import Store
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import item, raw
from tests.server.serving import Served
from tests.server.test_tokens import make
from tests.stores.http.proxies import Proxy


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def inner(clock: FakeClock) -> Store:
    return MemoryStore(clock=clock)


@pytest.fixture
def served(inner: Store) -> Iterator[Served]:
    served = Served(inner)
    yield served
    served.close()


def acts(inner: Store) -> list[Audited]:
    return audit_page(inner.execute(read_audit())).records


def told(inner: Store) -> list[tuple[str, str]]:
    return [(record.act, record.what) for record in acts(inner) if record.act != "create token"]


def test_every_administrative_act_is_written_down_with_who_did_it(served: Served, inner: Store) -> None:
    token = make(inner, "admin", namespaces=("*",))
    store = HttpStore(f"{served.url}/ns/acme", token=token)
    store.execute(Configure("queue", "jobs", paused=True))
    store.execute(Put("jobs", [item("a")]))
    store.execute(Move("jobs", "dead", state="ready"))
    store.execute(Move("jobs", "ready", ids=["a"], to_queue="other"))
    store.execute(Move("other", "gone", state="ready"))
    store.execute(Clear("dict", "d", drop=True))
    store.execute(Clear("queue", "jobs"))
    store.execute(LowerFences("d"))
    store.execute(Prune(keep=5))
    store.execute(Break(None, '["lock","k"]', "its host is gone"))
    store.execute(Break("d", "k", "its host is gone", token=7))
    store.close()
    assert told(inner) == [
        ("configure", "queue:jobs"),
        ("bury", "queue:jobs"),
        ("redrive", "queue:jobs"),
        ("purge", "queue:other"),
        ("drop", "dict:d"),
        ("clear", "queue:jobs"),
        ("lower fences", "dict:d"),
        ("prune", "log"),
        ("break", 'lease:["lock","k"]'),
        ("break", "dict:d"),
    ]
    assert acts(inner)[-1].facts == {"key": "k", "reason": "its host is gone", "token": 7}
    first = acts(inner)[1]
    assert (first.who, first.where, first.namespace, first.facts) == (f"token {id_of(token)}", "127.0.0.1", "acme", {"paused": True})
    assert token not in str(acts(inner))


POLICIES: list[dict[str, Any]] = [
    {"paused": True, "maxsize": None, "groups": "fair", "group_limit": 2, "group_rate": Rate(10, per_s=1.0), "limit": 32},
    {"groups": "strict", "group_limit": None, "group_dead": "hold", "rate": Rate(600, per_s=60.0, burst=5), "throttle_s": 30.0},
    {"groups": None, "order": "lifo", "aging_s": 5.0, "max_attempts": 5, "dead_letter": "dead", "lease_s": 9.0},
    {"backoff": Backoff(1.0, most_s=60.0), "late_to": "dead", "keep_done_s": 60.0},
    {"group": "acme", "limit": 3, "weight": 7, "rate": None, "paused": True, "throttle_s": 0.0},
    {"group": "", "forget": True},
]


def test_a_change_of_settings_is_written_down_with_everything_that_was_given(served: Served, inner: Store) -> None:
    given = {name for fields in POLICIES for name in fields}
    assert given == {*Configure.__struct_fields__} - {"kind", "name", *Command.__struct_fields__}, (
        "a field of Configure is in none of the commands here"
    )
    store = HttpStore(served.url)
    for fields in POLICIES:
        store.execute(Configure("queue", "jobs", **fields))
    store.close()
    assert [record.facts for record in acts(inner)] == to_builtins(POLICIES)


def test_a_dict_that_was_cleared_by_prefix_is_written_down_with_it(served: Served, inner: Store) -> None:
    store = HttpStore(served.url)
    store.execute(Together([Clear("dict", "d"), Clear("dict", "e", prefix="a:")]))
    store.close()
    assert [(record.act, record.what, record.facts) for record in acts(inner)] == [
        ("clear", "dict:d", {}),
        ("clear", "dict:e", {"prefix": "a:"}),
    ]


def test_throttles_of_queues_and_groups_are_written_down(served: Served, inner: Store) -> None:
    jobs = Queue[int].from_name("jobs", base_url=served.url)
    jobs.throttle(30.0)
    jobs.group("acme").throttle(5.0)
    assert [(record.what, record.facts) for record in acts(inner)] == [
        ("queue:jobs", {"throttle_s": 30.0}),
        ("queue:jobs", {"throttle_s": 5.0, "group": "acme"}),
    ]


def test_everyday_work_and_a_create_that_changes_nothing_are_no_acts(served: Served, inner: Store) -> None:
    store = HttpStore(served.url)
    store.execute(Put("jobs", [item("a")]))
    (message,) = store.execute(Claim("jobs", "me", 60.0)).messages
    store.execute(Settle([message.receipt]))
    store.execute(Write("d", [Change("k", value=raw(1))]))
    before = store.execute(Configure("queue", "jobs", maxsize=None))
    assert store.execute(Configure("queue", "jobs")) == before
    assert store.execute(Configure("queue", "jobs", paused=False)) == before
    assert told(inner) == []
    assert store.execute(Configure("queue", "jobs", paused=True)).paused
    assert told(inner) == [("configure", "queue:jobs")]
    store.close()


def test_a_create_that_changed_nothing_undoes_nothing_when_it_is_repeated(served: Served, inner: Store) -> None:
    assert_repeats_undo_nothing(HttpStore(served.url), inner)
    assert told(inner) == [("configure", "queue:jobs")] * 2


def test_control_a_create_whose_answer_is_not_kept_is_done_when_it_is_repeated(
    served: Served, inner: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forget(_: Reach, __: Configure, found: Settings) -> Settings:
        return found

    monkeypatch.setattr(Reach, "_kept_answer", forget)
    with pytest.raises(AssertionError):
        assert_repeats_undo_nothing(HttpStore(served.url), inner)


def assert_repeats_undo_nothing(store: HttpStore, inner: Store) -> None:
    create = Configure("queue", "jobs", paused=False, id="create")
    store.execute(Configure("queue", "jobs"))
    first = store.execute(create)
    store.execute(Configure("queue", "jobs", paused=True))
    assert store.execute(create) == first
    assert inner.execute(Names("queue", "jobs")).settings[0].paused
    store.close()


def test_a_queue_that_changes_while_it_is_created_is_configured_after_all(
    served: Served, inner: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Reach._unchanged

    async def look_too_early(reach: Reach, command: Configure) -> Settings | None:
        found = await look(reach, command)
        inner.execute(Configure("queue", "jobs", paused=True))
        return found

    inner.execute(Configure("queue", "jobs"))
    monkeypatch.setattr(Reach, "_unchanged", look_too_early)
    store = HttpStore(served.url)
    assert not store.execute(Configure("queue", "jobs", paused=False, id="create")).paused
    assert told(inner) == [("configure", "queue:jobs")]
    store.close()


def test_an_act_inside_a_step_is_written_down_and_its_answers_are_the_callers_own(served: Served, inner: Store) -> None:
    store = HttpStore(served.url)
    answers = store.execute(Together([Put("a", [item("x")]), Clear("queue", "b"), Configure("dict", "c")]))
    assert len(answers) == 3
    assert told(inner) == [("clear", "queue:b"), ("configure", "dict:c")]
    store.close()


def test_an_act_that_was_refused_is_not_written_down(served: Served, inner: Store) -> None:
    store = HttpStore(served.url)
    step = Together([Clear("queue", "jobs"), Write("d", [Change("k", value=raw(1), expect="present")])])
    with pytest.raises(Refused):
        store.execute(step)
    reader = HttpStore(served.url, token=make(inner, "queue:*:read"))
    with pytest.raises(NotAllowed):
        reader.execute(Clear("queue", "jobs"))
    assert told(inner) == []
    store.close()
    reader.close()


def test_an_act_whose_answer_was_lost_is_done_and_written_down_once(served: Served, inner: Store) -> None:
    with Proxy(served.url) as proxy:
        store = HttpStore(proxy.url)
        store.execute(Put("jobs", [item("a")]))
        proxy.lose_answers = 2
        assert store.execute(Clear("queue", "jobs")) == 1
        assert proxy.lost == 2
        store.close()
    assert told(inner) == [("clear", "queue:jobs")]


def test_records_go_when_their_time_is_up(served: Served, inner: Store, clock: FakeClock) -> None:
    store = HttpStore(served.url)
    store.execute(Clear("queue", "jobs"))
    clock.advance(KEPT_S - 1)
    assert told(inner) == [("clear", "queue:jobs")]
    clock.advance(2)
    assert told(inner) == []
    store.close()


def test_the_route_gives_the_audit_page_by_page(served: Served, inner: Store) -> None:
    store = HttpStore(served.url)
    for name in ("a", "b", "c"):
        store.execute(Clear("queue", name))
    store.close()

    def page(query: str) -> Any:
        return json.decode(urllib3.request("GET", f"{served.url}/v1/audit?{query}", retries=False).data)

    first = page("limit=2")
    assert first["more"]
    rest = page(f"after={first['records'][-1]['id']}")
    assert [record["what"] for record in first["records"] + rest["records"]] == ["queue:a", "queue:b", "queue:c"]
    assert first["records"][0] == to_builtins(acts(inner)[0])
    for query in ("limit=0", "limit=1001", "limit=x", "after=X", "after=%00", "x=1", "newest=1"):
        assert page(query)["code"] == "bad_value", query


def test_the_route_gives_the_audit_from_its_end(served: Served, inner: Store) -> None:
    at = int((time.time() - 5 * 86_400) * 1_000)
    plan = {"long ago": at - 80 * 86_400_000, "noon": at, "at once": at, "again": at + 1, "later": at + 3_600_000}
    ids = [f"{moment:012x}7{number:019x}" for number, moment in enumerate(sorted([*plan.values(), *[at] * 40]))]
    records = [
        Audited(f"{each[:8]}-{each[8:12]}-{each[12:16]}-{each[16:20]}-{each[20:]}", 0.0, "a", "b", "", "clear", each) for each in ids
    ]
    inner.execute(Write(AUDIT, [Change(record.id, value=Raw(json.encode(record))) for record in records]))

    def read(limit: int) -> Iterator[str]:
        after = ""
        while True:
            answer = urllib3.request("GET", f"{served.url}/v1/audit?newest=true&limit={limit}&after={after}", retries=False)
            page = json.decode(answer.data, type=AuditPage)
            assert len(page.records) <= limit
            yield from (record.id for record in page.records)
            if not page.more:
                return
            after = page.after or ""

    newest = [record.id for record in reversed(records)]
    for limit in (1, 2, 7, 1_000):
        assert [*read(limit)] == newest, limit


def test_who_may_read_the_audit_can_wait_for_what_is_written_into_it(served: Served, inner: Store) -> None:
    def wait(mark: str | None) -> str | None:
        asked = {"topics": [["watch:audit", mark]], "timeout_s": 60}
        ((topic, newer, _),) = urllib3.request("POST", f"{served.url}/v1/wait", json=asked, retries=False).json()["topics"]
        assert topic == "watch:audit"
        return str(newer)

    mark = wait(None)
    inner.execute(recorded(Actor("ann", "here"), Act("clear", "queue:q")))
    assert wait(mark) != mark


def test_nobody_writes_the_audit_by_any_scope(served: Served, inner: Store) -> None:
    store = HttpStore(served.url, token=make(inner, "admin", namespaces=("*",)))
    commands: list[Command[Any]] = [Clear("dict", AUDIT), Write(AUDIT, [Change("k", value=raw(1))]), Read(AUDIT)]
    for command in commands:
        with pytest.raises(HoldfastError, match="begins with a space"):
            store.execute(command)
    store.close()
