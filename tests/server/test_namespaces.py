"""Two namespaces never meet: what one does, the other cannot see, reach, wait for or be told of, whatever the names."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw, json
from msgspec.structs import replace

from holdfast import ControlPlaneClient, Dict, NotAllowed, Queue, connect
from holdfast.commands import (
    Acquire,
    BeginImport,
    Break,
    Browse,
    Change,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    Counts,
    EndImport,
    Extend,
    Fences,
    Groups,
    Import,
    Item,
    LeaseName,
    Leases,
    Length,
    Look,
    LowerFences,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Release,
    Renew,
    Resize,
    Seal,
    Settle,
    Survey,
    Together,
    Write,
)
from holdfast.commands.transaction import Fenced
from holdfast.errors import ClaimLost, HoldfastError, LeaseHeld
from holdfast.records import Entry, Message, Receipt, hidden_id
from holdfast.records.policies import Settings
from holdfast.server.app import Options
from holdfast.server.namespaces.commands import LISTING
from holdfast.server.namespaces.names import AUDIT, DEFAULT, RESERVED, TOKENS, Namespace
from holdfast.stores import Store
from holdfast.stores.http.protocol import ROUTES
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import raw
from holdfast.testing.conformance.threads import Doing, all_asleep
from tests.server.serving import JSON, Served
from tests.server.test_tokens import make

ACME = Namespace.named("acme")
ONE = raw(1)


@pytest.fixture
def inner() -> Store:
    return MemoryStore(clock=FakeClock())


@pytest.fixture
def served(inner: Store) -> Iterator[Served]:
    served = Served(inner, Options(allows_copy=True))
    yield served
    served.close()


@pytest.fixture
def acme(served: Served) -> Iterator[HttpStore]:
    yield from reached(served, "/ns/acme")


@pytest.fixture
def other(served: Served) -> Iterator[HttpStore]:
    yield from reached(served, "/ns/acme-2")


@pytest.fixture
def default(served: Served) -> Iterator[HttpStore]:
    yield from reached(served, "")


def reached(served: Served, path: str) -> Iterator[HttpStore]:
    store = HttpStore(served.url + path)
    yield store
    store.close()


def commands(name: str, other: str, key: str) -> list[Command[Any]]:
    """One of every kind, with the names in every place that a name can be."""
    items = [Item("a", ONE, key=key, dead_letter=other, max_attempts=1), Item("b", ONE)]
    receipt, lease = Receipt(name, "a", 3), LeaseName(None, key, "l")
    return [
        Configure("queue", name, maxsize=50),
        Put(name, items),
        Put(other, items[1:]),
        Claim(name, "me", 60.0, limit=2, dead_letter=other),
        Extend([receipt], 30.0),
        Settle([receipt], "dead", dead_letter=other),
        Settle([receipt], all_or_none=True),
        Move(name, "ready", to_queue=other),
        Move(name, "gone", state="ready"),
        Browse(name, state="dead"),
        Browse(other),
        Count(name),
        Counts(name[:1]),
        Counts(),
        Groups(name),
        Write(name, [Change("k", value=ONE), Change("n", do="increment", by=1)]),
        Read(name),
        Length(other),
        Acquire(None, key, "me", "l", 60.0),
        Acquire(None, key, "you", "m", 60.0, all_or_none=True),
        Acquire(name, "k", "me", "l", None, default=ONE),
        Renew([lease, LeaseName(name, "k", "l")], 60.0),
        Look(None, [key]),
        Look(name, ["k"]),
        Release([lease], all_or_none=True),
        Release([lease], all_or_none=True),
        Acquire(None, key, "me", "l", 60.0, capacity=1),
        Acquire(None, key, "you", "m", 60.0, capacity=1, in_line_s=5.0),
        Acquire(None, key, "you", "n", 60.0, capacity=1, all_or_none=True),
        Look(None, [key]),
        *listings(name, key),
        Resize(key, 2),
        Resize(key, None),
        Names("queue"),
        Names("dict", prefix=name[:1], after="A"),
        Changes(f"queue:{name}"),
        Changes(f"dict:{name}"),
        Changes(f"lease::{key}"),
        LowerFences(name),
        Clear("dict", name, drop=True),
        Together([Put(name, [Item("c", ONE)]), Write(other, [Change("k", value=ONE)]), Count(name), Names("queue")]),
        Prune(keep=1),
    ]


def listings(name: str, key: str) -> list[Command[Any]]:
    return [
        Leases(None, prefix=key[:1]),
        Leases(name),
        Leases(),
        Break(None, key, "why"),
        Break(name, "k", "why"),
    ]


COPYING = {Survey, Fences, Seal, BeginImport, Import, EndImport}
"""About a store as a whole."""


def test_nothing_is_imported_under_a_name_of_the_servers_own(default: HttpStore, acme: HttpStore, inner: Store) -> None:
    forged = Entry(TOKENS, "a", ONE, 1)
    message = Message(" acme/jobs", "a", ONE)
    everything: list[dict[str, Any]] = [
        {"entries": [forged]},
        {"fences": [Fenced(TOKENS, "a", 1)]},
        {"messages": [message]},
        {"messages": [replace(message, queue="q", dead_letter=" acme/jobs")]},
        {"settings": [Settings("dict", TOKENS)]},
    ]
    for records in everything:
        with pytest.raises(NotAllowed, match="begins with a space"):
            default.execute(Import("s", "", "p", "", **records))
    with pytest.raises(NotAllowed, match="copy the store itself"):
        acme.execute(Import("s", "", "p", ""))


def test_a_store_with_namespaces_is_not_copied_through_its_server(default: HttpStore, acme: HttpStore) -> None:
    default.execute(Configure("queue", "jobs"))
    assert default.execute(Survey()).latest
    acme.execute(Configure("queue", "jobs"))
    asked: list[Command[Any]] = [Survey(), Fences(), Seal("elsewhere", 0)]
    for command in asked:
        for store in (default, acme):
            with pytest.raises(NotAllowed, match="copy the store itself"):
                store.execute(command)


def test_these_are_all_the_commands_there_are() -> None:
    assert {type(command) for command in commands("a", "b", "k")} | COPYING == {route.command for route in ROUTES}


def seen(store: Store, command: Command[Any]) -> Any:
    """What a caller sees of a command: its answer or its error, but for the numbers that all namespaces share and the ids of leases."""
    try:
        return without_numbers(json.decode(json.encode(store.execute(command))))
    except ClaimLost as error:
        return str(error), error.lost
    except LeaseHeld as error:
        return str(error), error.lease and without_numbers(json.decode(json.encode(error.lease)))
    except HoldfastError as error:
        return type(error), str(error)


SHARED = {"n", "token", "revision", "index", "upto", "latest", "fence"}


def without_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        if not value.get("lease_id", "hidden-").startswith("hidden-"):
            value |= {"lease_id": hidden_id(value["lease_id"])}  # As a server shows the leases of others.
        return {name: without_numbers(part) for name, part in value.items() if name not in SHARED}
    return [without_numbers(part) for part in value] if isinstance(value, list | tuple) else value


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20).filter(
    lambda name: name[0] != RESERVED
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=NAMES, other=NAMES, key=NAMES)
def test_a_namespace_looks_like_a_store_of_its_own_whatever_others_do(name: str, other: str, key: str) -> None:
    """The same commands on a bare store, and in two namespaces of one store in turn, have the same answers."""
    if name == other:
        return
    alone, shared = MemoryStore(clock=FakeClock()), MemoryStore(clock=FakeClock())
    served = Served(shared)
    tenants = [HttpStore(served.url + path) for path in ("/ns/acme", "/ns/acme-2", "")]
    for command in commands(name, other, key):
        expected = seen(alone, command)
        for tenant in tenants:
            if not isinstance(command, Prune):  # Of the whole server, which the tenants share.
                assert seen(tenant, command) == expected, command
    for tenant in tenants:
        tenant.close()
    served.close()
    alone.close()


def test_what_the_server_keeps_is_under_no_name_that_a_caller_can_say(acme: HttpStore, inner: Store) -> None:
    for command in commands("jobs", "dead", "k"):
        seen(acme, command)
    names = {settings.name for kind in ("queue", "dict") for settings in inner.execute(Names(kind)).settings}
    assert names == {" acme/jobs", " acme/dead", AUDIT}


LEASES = Acquire | Renew | Release | Resize | Look | Leases | Break | Changes


def says(command: Command[Any], name: str) -> bool:
    """Whether the command names it: by itself, or behind the kind in a topic."""
    text = json.encode(command).decode()
    return f'"{name}"' in text or f':{name}"' in text or (isinstance(command, Names | Counts | Leases) and command.prefix == name[:1])


@pytest.mark.parametrize("name", [TOKENS, AUDIT, " acme/jobs", " "])
def test_nobody_may_say_a_name_of_the_servers_own(served: Served, inner: Store, name: str) -> None:
    token = make(inner, "admin", "*", namespaces=("*",))
    for path in ("", "/ns/acme"):
        store = HttpStore(served.url + path, token=token)
        saying = [command for command in commands(name, "b", "k") + commands("a", name, "k") if says(command, name)]
        saying += [command for command in commands("a", "b", name) if isinstance(command, LEASES) and says(command, name)]
        assert {type(command) for command in saying} == {route.command for route in ROUTES} - COPYING - {Prune}
        for command in [*saying, Names("queue", prefix=name)]:
            with pytest.raises(NotAllowed, match="begins with a space"):
                store.execute(command)
        for topic in (f"dict:{name}", f"watch:dict:{name}", f"key:{name}:k", f"lease::{name}", f"lease:{name}:k", f"line:l:{name}"):
            reply = urllib3.request(
                "POST", f"{store.url}/v1/wait", json={"topics": [[topic]]}, headers=store.address.headers(), retries=False
            )
            assert json.decode(reply.data) == {"topics": [], "refused": [topic]}
        reply = urllib3.request(
            "GET", f"{store.url}/v1/watch", fields={"topic": f"dict:{name}"}, headers=store.address.headers(), retries=False
        )
        assert reply.status == 403
        store.close()


def test_a_list_of_the_default_namespace_shows_no_other(acme: HttpStore, default: HttpStore) -> None:
    for number in range(5):
        acme.execute(Configure("queue", f"q{number}"))
    for name in ("!", "a", "~", "é"):
        default.execute(Configure("queue", name))
    assert [settings.name for settings in default.execute(Names("queue", limit=3)).settings] == ["!", "a", "~"]
    assert [settings.name for settings in default.execute(Names("queue", after="~")).settings] == ["é"]
    (listed,) = default.execute(Together([Names("queue", limit=1)]))
    assert [settings.name for settings in listed.settings] == ["!"]
    assert [settings.name for settings in acme.execute(Names("queue", prefix="q", after="q2")).settings] == ["q3", "q4"]


def test_a_wait_hears_only_what_happens_in_its_namespace(acme: HttpStore, other: HttpStore, default: HttpStore) -> None:
    waiter = Doing(lambda: Queue.from_name("jobs", client=ControlPlaneClient.on(acme)).get(timeout_s=300))
    watcher = Doing(lambda: next(iter(Dict.from_name("d", client=ControlPlaneClient.on(acme)).watch())).data)
    all_asleep(waiter, watcher)
    for store in (other, default):
        store.execute(Put("jobs", [Item("x", raw("theirs"))]))
        store.execute(Write("d", [Change('"k"', value=raw("theirs"))]))
    all_asleep(waiter, watcher)
    acme.execute(Put("jobs", [Item("x", raw("ours"))]))
    acme.execute(Write("d", [Change('"k"', value=raw("ours"))]))
    assert waiter.result("a get in its namespace") == "ours"
    assert watcher.result("a watch in its namespace")["value"] == "ours"


def test_dead_letters_stay_in_the_namespace_and_say_where_they_came_from(acme: HttpStore, default: HttpStore) -> None:
    metadata = Raw(b'{"trace":1.50,"dead_letter":0}')
    acme.execute(Put("jobs", [Item("a", ONE, max_attempts=1, dead_letter="dead", metadata=metadata)]))
    (message,) = acme.execute(Claim("jobs", "me", 60.0)).messages
    assert (message.queue, message.dead_letter) == ("jobs", "dead")
    acme.execute(Settle([message.receipt], "ready", counts=True, error="no"))
    (letter,) = acme.execute(Browse("dead")).messages
    assert json.decode(letter.metadata or b"")["dead_letter"]["queue"] == "jobs"
    assert default.execute(Names("queue")).settings == []
    events = acme.execute(Changes("queue:jobs")).events
    assert [json.decode(event.data).get("dead_letter") for event in events if event.event == "buried"] == ["dead"]


def test_a_receipt_of_another_namespace_settles_nothing(acme: HttpStore, other: HttpStore) -> None:
    acme.execute(Put("jobs", [Item("a", ONE)]))
    (message,) = acme.execute(Claim("jobs", "me", 60.0)).messages
    assert other.execute(Settle([message.receipt])).held == [False]
    assert acme.execute(Settle([message.receipt])).held == [True]


def test_a_command_of_another_namespace_under_the_same_id_is_another_command(acme: HttpStore, other: HttpStore, default: HttpStore) -> None:
    for store in (acme, other, default):
        assert store.execute(Put("jobs", [Item("a", ONE)], id="same")).created == [True]
        assert store.execute(Count("jobs")).ready == 1


def test_a_name_may_be_as_long_as_the_namespace_leaves_room_for(acme: HttpStore, default: HttpStore) -> None:
    longest = "é" * (ACME.name_bytes // 2)
    acme.execute(Put(longest, [Item("a", ONE)]))
    with pytest.raises(ValueError, match=r"the limit of 194 in namespace acme"):
        acme.execute(Put(f"{longest}x", [Item("a", ONE)]))
    assert acme.about.limits.name_bytes == ACME.name_bytes == 194
    default.execute(Put("x" * 200, [Item("a", ONE)]))
    with pytest.raises(ValueError, match=r"the limit of 394 in namespace acme"):
        acme.execute(Acquire(None, "x" * 395, "me", "l", 60.0))


def test_a_token_acts_only_in_its_own_namespaces(served: Served, inner: Store) -> None:
    cases = {
        ("acme",): {"": True, "/ns/acme": True, "/ns/acme-2": False, "/ns/default": False},
        ("default",): {"": True, "/ns/default": True, "/ns/acme": False},
        ("acme", "b"): {"": False, "/ns/acme": True, "/ns/b": True, "/ns/c": False},
        ("team-*",): {"": False, "/ns/team-a": True, "/ns/team": False},
        ("*",): {"": True, "/ns/acme": True, "/ns/anything": True},
    }
    for namespaces, paths in cases.items():
        token = make(inner, "admin", namespaces=namespaces)
        for path, allowed in paths.items():
            store = HttpStore(served.url + path, token=token)
            if allowed:
                store.execute(Put("jobs", [Item("a", ONE)]))
            else:
                with pytest.raises(NotAllowed, match="namespace"):
                    store.execute(Put("jobs", [Item("a", ONE)]))
            store.close()
    assert inner.execute(Count(" acme/jobs")).total == inner.execute(Count("jobs")).total == 1


@pytest.mark.parametrize("name", ["", "A", "a b", "%20", "a" * 33, "-a", "/tokens", "%2Ftokens"])
def test_what_is_no_namespace_is_refused(served: Served, name: str) -> None:
    reply = urllib3.request("POST", f"{served.url}/ns/{name}/v1/count", body=b'{"queue":"jobs"}', headers=JSON, retries=False)
    assert reply.status in (404, 422), reply.data


def test_the_default_namespace_is_what_a_store_has_without_a_server(default: HttpStore, inner: Store) -> None:
    inner.execute(Put("jobs", [Item("a", ONE)]))
    assert default.execute(Count("jobs")).ready == 1
    assert DEFAULT.inside("jobs") == "jobs"


def test_all_commands_that_list_names_hide_those_of_other_namespaces_from_the_default_one() -> None:
    listing = {route.command for route in ROUTES if "listed" in route.command.named.__code__.co_names}
    assert listing == {Names, Leases, Counts} < set(LISTING) == {Names, Leases, Counts, Together}


def test_a_url_with_a_namespace_works_wherever_a_url_does(served: Served, acme: HttpStore) -> None:
    store = connect(f"{served.url}/ns/acme")
    store.execute(Put("jobs", [Item("a", ONE)]))
    assert acme.execute(Count("jobs")).ready == 1
    store.close()
