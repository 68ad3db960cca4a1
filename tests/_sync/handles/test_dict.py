# Generated from tests/_async/handles/test_dict.py by tools/unasync.py; do not edit.
"""Dict: reading and writing, conditions, paging, types."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast._sync.handles.mapping import Dict
from holdfast.client import ControlPlaneClient
from holdfast.errors import LeaseLost, Refused
from holdfast.results import MISSING, DictCompareAndSetResult, DictResponse
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import token
from tests.runners import Runner


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(client: ControlPlaneClient) -> Dict[Any]:
    return Dict.from_name("shared", client=client)


def test_create_is_listed_and_empties_nothing(client: ControlPlaneClient) -> None:
    first = Dict.create("shared", client=client)
    first.put("a", 1)
    second = Dict.create("shared", client=client)
    assert second.get("a") == 1
    assert [one.name for one in Dict.list(client=client)] == ["shared"]


def test_a_handle_touches_nothing_and_reads_what_is_not_there_as_empty(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    assert shared.items() == []
    assert shared.length() == 0
    assert shared.get("a", default="none") == "none"
    assert Dict.list(client=client) == []


def test_put_gives_the_value_and_update_the_mapping(shared: Dict[Any]) -> None:
    assert shared.put("alpha", {"score": 1}) == {"score": 1}
    assert shared.update({"beta": {"score": 2}}) == {"beta": {"score": 2}}
    assert shared.update([("gamma", 3), ("gamma", 4)]) == {"gamma": 4}
    assert shared.items() == [("alpha", {"score": 1}), ("beta", {"score": 2}), ("gamma", 4)]
    assert shared.update({}) == {}


def test_get_many_leaves_out_what_is_missing(shared: Dict[Any]) -> None:
    shared.update({"a": 1, "b": None})
    assert shared.get_many(["b", "a", "c", "a"]) == {"a": 1, "b": None}
    assert shared.get_many([]) == {}


@pytest.mark.parametrize("key", ["1", 1, 1.0, True, None, b"1", ("1", 1), ()])
def test_a_key_comes_back_as_it_was(shared: Dict[Any], key: Hashable) -> None:
    shared.put(key, "here")
    ((found, value),) = shared.items()
    assert (found, type(found), value) == (key, type(key), "here")


def test_keys_that_a_python_dict_would_merge_are_four_keys_and_refused_in_one_answer(shared: Dict[Any]) -> None:
    for key in (1, 1.0, True, "1"):
        shared.put(key, repr(key))
    assert sorted(value for _, value in shared.items()) == ["'1'", "1", "1.0", "True"]
    with pytest.raises(ValueError, match="two keys here"):
        shared.get_many([1, True])
    with pytest.raises(ValueError, match="two keys here"):
        shared.update([(1, "a"), (1.0, "b")])
    assert shared.get(1) == "1"


def test_several_keys_are_not_one_text(shared: Dict[Any]) -> None:
    with pytest.raises(TypeError, match="must be a list"):
        shared.get_many("alpha")


def test_delete_removes_a_key_or_everything(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    shared.update({"a": 1, "b": 2, None: 3})
    assert shared.delete("a") == DictResponse(1)
    assert shared.delete("a") == DictResponse(0)
    assert shared.delete(None) == DictResponse(1)
    assert shared.items() == [("b", 2)]
    assert shared.delete() == DictResponse(1)
    assert Dict.list(client=client) == []


def test_delete_of_everything_takes_no_conditions(shared: Dict[Any]) -> None:
    with pytest.raises(ValueError, match="about one key"):
        shared.delete(fence=1)


def test_delete_by_revision_spares_what_is_newer(shared: Dict[Any]) -> None:
    shared.put("a", 1)
    entry = shared.get_entry("a")
    assert entry is not None
    shared.put("a", 2)
    assert shared.delete("a", revision=entry.revision) == DictResponse(0)
    assert shared.get("a") == 2


def test_clear_leaves_the_dict(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    shared.update({"a": 1, "b": 2})
    assert shared.clear() == DictResponse(2)
    assert [one.name for one in Dict.list(client=client)] == ["shared"]


def test_clear_with_a_prefix_removes_what_items_lists_under_it(shared: Dict[Any]) -> None:
    shared.update([("a", 1), ("a/1", 1), (("a", 1), 1), (("a", 2), 1), (("b", 1), 1), (1, 1)])
    assert shared.clear(prefix="a/") == DictResponse(1)
    assert shared.clear(prefix=("a",)) == DictResponse(2)
    assert [key for key, _ in shared.items()] == ["a", 1, ("b", 1)]
    assert shared.clear(prefix="") == DictResponse(1)
    assert shared.clear(prefix=()) == DictResponse(1)
    assert [key for key, _ in shared.items()] == [1]
    with pytest.raises(TypeError, match="must be a str or a tuple"):
        shared.clear(prefix=1)  # type: ignore[arg-type]


def test_pop_gives_what_it_removes(shared: Dict[Any]) -> None:
    shared.put("a", 1)
    assert shared.pop("a") == 1
    assert shared.pop("a", default="gone") == "gone"


def test_compare_and_set_tells_what_is_there(shared: Dict[Any]) -> None:
    shared.put("alpha", {"score": 1})
    done = shared.compare_and_set("alpha", {"score": 1}, {"score": 2})
    assert done.updated
    again = shared.compare_and_set("alpha", {"score": 1}, {"score": 3})
    assert again == DictCompareAndSetResult(updated=False, current_value={"score": 2}, revision=done.revision)


def test_none_matches_a_missing_key_or_a_stored_none_and_missing_only_the_former(shared: Dict[Any]) -> None:
    assert (shared.compare_and_set("a", None, None)).updated
    assert not (shared.compare_and_set("a", MISSING, 1)).updated
    assert (shared.compare_and_set("a", None, 1)).updated
    assert not (shared.compare_and_set("a", None, 2)).updated
    assert (shared.compare_and_set("b", MISSING, 1)).updated


def test_compare_and_set_by_revision(shared: Dict[Any]) -> None:
    made = shared.compare_and_set("a", MISSING, 1, revision=0)
    assert made.updated
    assert (shared.compare_and_set("a", MISSING, 2, revision=made.revision)).updated
    assert not (shared.compare_and_set("a", MISSING, 3, revision=made.revision)).updated


def test_put_if_absent_keeps_what_is_there(shared: Dict[Any]) -> None:
    assert (shared.put_if_absent("a", 1)).updated
    kept = shared.put_if_absent("a", 2)
    assert (kept.updated, kept.current_value) == (False, 1)


def test_increment_counts_from_nothing(shared: Dict[Any]) -> None:
    assert shared.increment("n") == 1
    assert shared.increment("n", 5) == 6
    assert shared.increment("n", -0.5) == 5.5
    shared.put("text", "x")
    with pytest.raises(Refused, match="is not a number"):
        shared.increment("text")
    with pytest.raises(ValueError, match="finite"):
        shared.increment("n", float("nan"))
    with pytest.raises(TypeError, match="number"):
        shared.increment("n", True)


def test_an_entry_is_gone_after_its_time(shared: Dict[Any], clock: FakeClock) -> None:
    shared.put("a", 1, ttl_s=10)
    entry = shared.get_entry("a")
    assert entry is not None
    assert entry.expires_at is not None
    clock.advance(10)
    assert shared.get("a") is None
    assert (shared.put_if_absent("a", 2)).updated


def test_revisions_grow_over_deletion(shared: Dict[Any]) -> None:
    shared.put("a", 1)
    first = shared.get_entry("a")
    shared.delete("a")
    assert shared.get_entry("a") is None
    shared.put("a", 1)
    second = shared.get_entry("a")
    assert first is not None
    assert second is not None
    assert second.revision > first.revision


def test_a_prefix_finds_what_is_under_it_and_pages_go_on(shared: Dict[Any]) -> None:
    shared.update({"job:1": 1, "job:2": 2, "job:3": 3, "other": 4, ("job", 1): 5, ("job", 2): 6})
    assert shared.items(prefix="job:") == [("job:1", 1), ("job:2", 2), ("job:3", 3)]
    assert shared.items(prefix=("job",)) == [(("job", 1), 5), (("job", 2), 6)]
    assert shared.items(prefix="job:", limit=2) == [("job:1", 1), ("job:2", 2)]
    assert shared.items(prefix="job:", after="job:2") == [("job:3", 3)]
    assert [len(page) for page in shared.pages(prefix="job:", size=2)] == [2, 1]


def test_a_lower_fence_is_refused_and_an_equal_one_passes(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    shared.put("a", "new", fence=later)
    with pytest.raises(Refused, match=f"higher token than {earlier}"):
        shared.put("a", "stale", fence=earlier)
    assert not (shared.compare_and_set("a", "new", "stale", fence=earlier)).updated
    with pytest.raises(Refused):
        shared.delete("a", fence=earlier)
    assert shared.put("a", "same", fence=later) == "same"
    assert shared.put("a", "plain") == "plain"


def test_an_update_under_a_fence_is_all_or_nothing(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    shared.put("b", "new", fence=later)
    with pytest.raises(Refused):
        shared.update({"a": 1, "b": 1}, fence=earlier)
    assert shared.get("a") is None


def test_a_write_under_a_lease_happens_only_while_it_is_held(shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("a", holder="w", lease_s=10)
    shared.put("a", 1, lease_id=lease.lease_id)
    clock.advance(10)
    with pytest.raises(LeaseLost, match="no longer held"):
        shared.put("a", 2, lease_id=lease.lease_id)
    assert not (shared.compare_and_set("a", 1, 2, lease_id=lease.lease_id)).updated
    with pytest.raises(LeaseLost):
        shared.increment("a", lease_id=lease.lease_id)
    assert shared.get("a") == 1


def count_up(shared: Dict[Any], times: int) -> None:
    for _ in range(times):
        shared.update_with("n", lambda count: count + 1, default=0)


def test_update_with_loses_nothing_that_others_write(shared: Dict[Any]) -> None:
    with Runner() as runner:
        counters = [runner.start(count_up, shared, 25) for _ in range(4)]
        for counter in counters:
            counter.result()
    assert shared.get("n") == 100


def test_a_change_that_fails_writes_nothing(shared: Dict[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        shared.update_with("n", lambda count: 1 // count, default=0)
    assert shared.get("n") is None


class Job(msgspec.Struct):
    image: str
    size: int = 0


@dataclass
class Person:
    name: str


def test_a_typed_dict_gives_its_type_back(client: ControlPlaneClient) -> None:
    jobs = Dict.create("jobs", type=Job, client=client)
    jobs.put("a", Job("x.png", 3))
    assert jobs.get("a") == Job("x.png", 3)
    assert (jobs.compare_and_set("a", Job("x.png", 3), Job("y.png"))).current_value == Job("y.png")
    with pytest.raises(TypeError, match="is not Job"):
        jobs.put("a", Person("x"))  # type: ignore[arg-type]


def test_without_a_type_objects_are_refused(shared: Dict[Any]) -> None:
    with pytest.raises(TypeError, match="type="):
        shared.put("a", Job("x.png"))


def test_a_name_must_be_one() -> None:
    with pytest.raises(ValueError, match="empty"):
        Dict.from_name("")


def test_a_call_may_go_elsewhere(shared: Dict[Any]) -> None:
    with ControlPlaneClient("memory://") as other:
        shared.put("a", "there", client=other)
        assert shared.get("a") is None
        assert shared.get("a", client=other) == "there"
    shared.put("a", "named", base_url="memory://test-dict")
    assert Dict.from_name("shared", base_url="memory://test-dict").get("a") == "named"
    shared.delete(base_url="memory://test-dict")


def test_the_twin_for_tasks_is_the_same_dict(shared: Dict[Any]) -> None:
    twin = shared.aio
    assert twin.aio is twin
    assert twin.name == "shared"
