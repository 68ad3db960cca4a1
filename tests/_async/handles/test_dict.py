"""Dict: reading and writing, conditions, paging, types."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from holdfast._async.handles.mapping import AsyncDict
from holdfast.client import ControlPlaneClient
from holdfast.errors import LeaseLost, Refused
from holdfast.results import MISSING, DictCompareAndSetResult, DictResponse
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import token
from tests.runners import AsyncRunner

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(client: ControlPlaneClient) -> AsyncDict[Any]:
    return AsyncDict.from_name("shared", client=client)


async def test_create_is_listed_and_empties_nothing(client: ControlPlaneClient) -> None:
    first = await AsyncDict.create("shared", client=client)
    await first.put("a", 1)
    second = await AsyncDict.create("shared", client=client)
    assert await second.get("a") == 1
    assert [one.name for one in await AsyncDict.list(client=client)] == ["shared"]


async def test_a_handle_touches_nothing_and_reads_what_is_not_there_as_empty(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    assert await shared.items() == []
    assert await shared.length() == 0
    assert await shared.get("a", default="none") == "none"
    assert await AsyncDict.list(client=client) == []


async def test_put_gives_the_value_and_update_the_mapping(shared: AsyncDict[Any]) -> None:
    assert await shared.put("alpha", {"score": 1}) == {"score": 1}
    assert await shared.update({"beta": {"score": 2}}) == {"beta": {"score": 2}}
    assert await shared.update([("gamma", 3), ("gamma", 4)]) == {"gamma": 4}
    assert await shared.items() == [("alpha", {"score": 1}), ("beta", {"score": 2}), ("gamma", 4)]
    assert await shared.update({}) == {}


async def test_get_many_leaves_out_what_is_missing(shared: AsyncDict[Any]) -> None:
    await shared.update({"a": 1, "b": None})
    assert await shared.get_many(["b", "a", "c", "a"]) == {"a": 1, "b": None}
    assert await shared.get_many([]) == {}


@pytest.mark.parametrize("key", ["1", 1, 1.0, True, None, b"1", ("1", 1), ()])
async def test_a_key_comes_back_as_it_was(shared: AsyncDict[Any], key: Hashable) -> None:
    await shared.put(key, "here")
    ((found, value),) = await shared.items()
    assert (found, type(found), value) == (key, type(key), "here")


async def test_keys_that_a_python_dict_would_merge_are_four_keys_and_refused_in_one_answer(shared: AsyncDict[Any]) -> None:
    for key in (1, 1.0, True, "1"):
        await shared.put(key, repr(key))
    assert sorted(value for _, value in await shared.items()) == ["'1'", "1", "1.0", "True"]
    with pytest.raises(ValueError, match="two keys here"):
        await shared.get_many([1, True])
    with pytest.raises(ValueError, match="two keys here"):
        await shared.update([(1, "a"), (1.0, "b")])
    assert await shared.get(1) == "1"


async def test_several_keys_are_not_one_text(shared: AsyncDict[Any]) -> None:
    with pytest.raises(TypeError, match="must be a list"):
        await shared.get_many("alpha")


async def test_delete_removes_a_key_or_everything(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    await shared.update({"a": 1, "b": 2, None: 3})
    assert await shared.delete("a") == DictResponse(1)
    assert await shared.delete("a") == DictResponse(0)
    assert await shared.delete(None) == DictResponse(1)
    assert await shared.items() == [("b", 2)]
    assert await shared.delete() == DictResponse(1)
    assert await AsyncDict.list(client=client) == []


async def test_delete_of_everything_takes_no_conditions(shared: AsyncDict[Any]) -> None:
    with pytest.raises(ValueError, match="about one key"):
        await shared.delete(fence=1)


async def test_delete_by_revision_spares_what_is_newer(shared: AsyncDict[Any]) -> None:
    await shared.put("a", 1)
    entry = await shared.get_entry("a")
    assert entry is not None
    await shared.put("a", 2)
    assert await shared.delete("a", revision=entry.revision) == DictResponse(0)
    assert await shared.get("a") == 2


async def test_clear_leaves_the_dict(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    await shared.update({"a": 1, "b": 2})
    assert await shared.clear() == DictResponse(2)
    assert [one.name for one in await AsyncDict.list(client=client)] == ["shared"]


async def test_clear_with_a_prefix_removes_what_items_lists_under_it(shared: AsyncDict[Any]) -> None:
    await shared.update([("a", 1), ("a/1", 1), (("a", 1), 1), (("a", 2), 1), (("b", 1), 1), (1, 1)])
    assert await shared.clear(prefix="a/") == DictResponse(1)
    assert await shared.clear(prefix=("a",)) == DictResponse(2)
    assert [key for key, _ in await shared.items()] == ["a", 1, ("b", 1)]
    assert await shared.clear(prefix="") == DictResponse(1)
    assert await shared.clear(prefix=()) == DictResponse(1)
    assert [key for key, _ in await shared.items()] == [1]
    with pytest.raises(TypeError, match="must be a str or a tuple"):
        await shared.clear(prefix=1)  # type: ignore[arg-type]


async def test_pop_gives_what_it_removes(shared: AsyncDict[Any]) -> None:
    await shared.put("a", 1)
    assert await shared.pop("a") == 1
    assert await shared.pop("a", default="gone") == "gone"


async def test_compare_and_set_tells_what_is_there(shared: AsyncDict[Any]) -> None:
    await shared.put("alpha", {"score": 1})
    done = await shared.compare_and_set("alpha", {"score": 1}, {"score": 2})
    assert done.updated
    again = await shared.compare_and_set("alpha", {"score": 1}, {"score": 3})
    assert again == DictCompareAndSetResult(updated=False, current_value={"score": 2}, revision=done.revision)


async def test_none_matches_a_missing_key_or_a_stored_none_and_missing_only_the_former(shared: AsyncDict[Any]) -> None:
    assert (await shared.compare_and_set("a", None, None)).updated
    assert not (await shared.compare_and_set("a", MISSING, 1)).updated
    assert (await shared.compare_and_set("a", None, 1)).updated
    assert not (await shared.compare_and_set("a", None, 2)).updated
    assert (await shared.compare_and_set("b", MISSING, 1)).updated


async def test_compare_and_set_by_revision(shared: AsyncDict[Any]) -> None:
    made = await shared.compare_and_set("a", MISSING, 1, revision=0)
    assert made.updated
    assert (await shared.compare_and_set("a", MISSING, 2, revision=made.revision)).updated
    assert not (await shared.compare_and_set("a", MISSING, 3, revision=made.revision)).updated


async def test_put_if_absent_keeps_what_is_there(shared: AsyncDict[Any]) -> None:
    assert (await shared.put_if_absent("a", 1)).updated
    kept = await shared.put_if_absent("a", 2)
    assert (kept.updated, kept.current_value) == (False, 1)


async def test_increment_counts_from_nothing(shared: AsyncDict[Any]) -> None:
    assert await shared.increment("n") == 1
    assert await shared.increment("n", 5) == 6
    assert await shared.increment("n", -0.5) == 5.5
    await shared.put("text", "x")
    with pytest.raises(Refused, match="is not a number"):
        await shared.increment("text")
    with pytest.raises(ValueError, match="finite"):
        await shared.increment("n", float("nan"))
    with pytest.raises(TypeError, match="number"):
        await shared.increment("n", True)


async def test_an_entry_is_gone_after_its_time(shared: AsyncDict[Any], clock: FakeClock) -> None:
    await shared.put("a", 1, ttl_s=10)
    entry = await shared.get_entry("a")
    assert entry is not None
    assert entry.expires_at is not None
    clock.advance(10)
    assert await shared.get("a") is None
    assert (await shared.put_if_absent("a", 2)).updated


async def test_revisions_grow_over_deletion(shared: AsyncDict[Any]) -> None:
    await shared.put("a", 1)
    first = await shared.get_entry("a")
    await shared.delete("a")
    assert await shared.get_entry("a") is None
    await shared.put("a", 1)
    second = await shared.get_entry("a")
    assert first is not None
    assert second is not None
    assert second.revision > first.revision


async def test_a_prefix_finds_what_is_under_it_and_pages_go_on(shared: AsyncDict[Any]) -> None:
    await shared.update({"job:1": 1, "job:2": 2, "job:3": 3, "other": 4, ("job", 1): 5, ("job", 2): 6})
    assert await shared.items(prefix="job:") == [("job:1", 1), ("job:2", 2), ("job:3", 3)]
    assert await shared.items(prefix=("job",)) == [(("job", 1), 5), (("job", 2), 6)]
    assert await shared.items(prefix="job:", limit=2) == [("job:1", 1), ("job:2", 2)]
    assert await shared.items(prefix="job:", after="job:2") == [("job:3", 3)]
    assert [len(page) async for page in shared.pages(prefix="job:", size=2)] == [2, 1]


async def test_a_lower_fence_is_refused_and_an_equal_one_passes(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    await shared.put("a", "new", fence=later)
    with pytest.raises(Refused, match=f"higher token than {earlier}"):
        await shared.put("a", "stale", fence=earlier)
    assert not (await shared.compare_and_set("a", "new", "stale", fence=earlier)).updated
    with pytest.raises(Refused):
        await shared.delete("a", fence=earlier)
    assert await shared.put("a", "same", fence=later) == "same"
    assert await shared.put("a", "plain") == "plain"


async def test_an_update_under_a_fence_is_all_or_nothing(client: ControlPlaneClient, shared: AsyncDict[Any]) -> None:
    earlier, later = token(client.store), token(client.store)
    await shared.put("b", "new", fence=later)
    with pytest.raises(Refused):
        await shared.update({"a": 1, "b": 1}, fence=earlier)
    assert await shared.get("a") is None


async def test_a_write_under_a_lease_happens_only_while_it_is_held(shared: AsyncDict[Any], clock: FakeClock) -> None:
    lease = await shared.acquire_lease("a", holder="w", lease_s=10)
    await shared.put("a", 1, lease_id=lease.lease_id)
    clock.advance(10)
    with pytest.raises(LeaseLost, match="no longer held"):
        await shared.put("a", 2, lease_id=lease.lease_id)
    assert not (await shared.compare_and_set("a", 1, 2, lease_id=lease.lease_id)).updated
    with pytest.raises(LeaseLost):
        await shared.increment("a", lease_id=lease.lease_id)
    assert await shared.get("a") == 1


async def count_up(shared: AsyncDict[Any], times: int) -> None:
    for _ in range(times):
        await shared.update_with("n", lambda count: count + 1, default=0)


async def test_update_with_loses_nothing_that_others_write(shared: AsyncDict[Any]) -> None:
    async with AsyncRunner() as runner:
        counters = [runner.start(count_up, shared, 25) for _ in range(4)]
        for counter in counters:
            await counter.result()
    assert await shared.get("n") == 100


async def test_a_change_that_fails_writes_nothing(shared: AsyncDict[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        await shared.update_with("n", lambda count: 1 // count, default=0)
    assert await shared.get("n") is None


class Job(msgspec.Struct):
    image: str
    size: int = 0


@dataclass
class Person:
    name: str


async def test_a_typed_dict_gives_its_type_back(client: ControlPlaneClient) -> None:
    jobs = await AsyncDict.create("jobs", type=Job, client=client)
    await jobs.put("a", Job("x.png", 3))
    assert await jobs.get("a") == Job("x.png", 3)
    assert (await jobs.compare_and_set("a", Job("x.png", 3), Job("y.png"))).current_value == Job("y.png")
    with pytest.raises(TypeError, match="is not Job"):
        await jobs.put("a", Person("x"))  # type: ignore[arg-type]


async def test_without_a_type_objects_are_refused(shared: AsyncDict[Any]) -> None:
    with pytest.raises(TypeError, match="type="):
        await shared.put("a", Job("x.png"))


async def test_a_name_must_be_one() -> None:
    with pytest.raises(ValueError, match="empty"):
        AsyncDict.from_name("")


async def test_a_call_may_go_elsewhere(shared: AsyncDict[Any]) -> None:
    async with ControlPlaneClient("memory://") as other:
        await shared.put("a", "there", client=other)
        assert await shared.get("a") is None
        assert await shared.get("a", client=other) == "there"
    await shared.put("a", "named", base_url="memory://test-dict")
    assert await AsyncDict.from_name("shared", base_url="memory://test-dict").get("a") == "named"
    await shared.delete(base_url="memory://test-dict")


async def test_the_twin_for_tasks_is_the_same_dict(shared: AsyncDict[Any]) -> None:
    twin = shared.aio
    assert twin.aio is twin
    assert twin.name == "shared"
