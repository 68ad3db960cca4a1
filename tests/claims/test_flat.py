"""A claim costs as much with a thousand groups as with ten, full ones included: counted in steps of the machine, not in time."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.commands.transaction import OpenLanes
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.stores.lmdb.lanes import Lanes
from holdfast.stores.memory.ordered import Ordered
from holdfast.stores.sqlite.statements import SQL
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of

FEW, MANY = 10, 1_000
CLAIMS = 10
FAIR: dict[str, Any] = {"groups": "fair"}
LIMITED: dict[str, Any] = {"groups": "fair", "group_limit": 1}
STRICT: dict[str, Any] = {"groups": "strict"}


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(FakeClock())
    yield made
    made.close()


@contextmanager
def counting(store: Store) -> Iterator[list[int]]:
    """How many steps are taken meanwhile: of SQLite's machine, else of Python's."""
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count[0] += event == "opcode"
        return trace

    if isinstance(store, SqliteStore):
        store._writer.connection.set_progress_handler(step, 1)
        yield count
        store._writer.connection.set_progress_handler(None, 1)
        return
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def put(store: Store, queue: str, groups: int, each: int, prefix: str = "g") -> None:
    items = [Item(new_id(), Raw(b"1"), group=f"{prefix}{number % groups}") for number in range(groups * each)]
    store.execute(Put(queue, items))


def cost_of_claims(store: Store, queue: str) -> int:
    def claim_and_settle() -> None:
        (message,) = store.execute(Claim(queue, "w", 600.0)).messages
        store.execute(Settle([message.receipt]))

    for _ in range(CLAIMS):
        claim_and_settle()
    with counting(store) as steps:
        for _ in range(CLAIMS):
            claim_and_settle()
    return steps[0]


def ratios(store: Store, mode: dict[str, Any]) -> tuple[float, float]:
    """What claims cost with many groups, and with full ones before the first that is open, beside few."""
    for queue in ("few", "many", "full"):
        store.execute(Configure("queue", queue, **mode))
    put(store, "few", FEW, 5 * CLAIMS // FEW)
    put(store, "many", MANY, 1)
    if mode.get("group_limit") or mode["groups"] == "strict":
        put(store, "full", MANY, 2)
        assert len(store.execute(Claim("full", "w", 600.0, MANY)).messages) == MANY
    put(store, "full", FEW, 5 * CLAIMS // FEW, "open")
    few, many, full = (cost_of_claims(store, queue) for queue in ("few", "many", "full"))
    return many / few, full / few


@pytest.mark.parametrize("mode", [FAIR, LIMITED, pytest.param(STRICT, marks=pytest.mark.verify)])
def test_a_claim_costs_no_more_with_many_groups_or_full_ones_before_it(store: Store, mode: dict[str, Any]) -> None:
    assert max(ratios(store, mode)) <= 1.5


def steps_of(store: Store, act: Callable[[], object]) -> int:
    with counting(store) as steps:
        act()
    return steps[0]


def cost_of_settings(store: Store) -> float:
    for queue, groups in (("few", FEW), ("many", MANY)):
        store.execute(Configure("queue", queue, groups="fair", group_limit=1))
        put(store, queue, groups, 1)
    few, many = (steps_of(store, lambda queue=queue: store.execute(Configure("queue", queue, group_limit=5))) for queue in ("few", "many"))  # type: ignore[misc]
    return many / few


def test_a_change_of_a_limit_costs_no_more_with_many_groups(store: Store) -> None:
    assert cost_of_settings(store) <= 1.5


def test_control_settings_that_walk_the_groups_are_noticed(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    write = Configure.write

    def write_and_walk(command: Configure, tx: Any, plan: Any) -> None:
        write(command, tx, plan)
        tx.save(tx.find_lanes(command.name, "name", 10_000))

    monkeypatch.setattr(Configure, "write", write_and_walk)
    assert cost_of_settings(store) > 10


def test_control_open_groups_found_by_a_filter_are_noticed_on_sqlite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SQL, "open_lanes", SQL["open_lanes"].replace("and l.open = 1", "and +l.open = 1"))
    with_filter = factory_of("sqlite", tmp_path).make(FakeClock())
    assert max(ratios(with_filter, LIMITED)) > 10
    with_filter.close()


def test_control_groups_that_are_written_by_a_walk_are_noticed_on_sqlite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As SQLite does it where lanes are joined with a set."""
    monkeypatch.setitem(SQL, "delete_lane", "delete from holdfast_lanes where queue || '' = ? and lane || '' = ?")
    with_walk = factory_of("sqlite", tmp_path).make(FakeClock())
    assert max(ratios(with_walk, FAIR)) > 10
    with_walk.close()


def test_control_open_groups_found_by_a_filter_are_noticed_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = Ordered.first

    def filtered(order: Ordered[Any], limit: int, *rest: Any) -> list[Any]:
        return [one for one in first(order, 10**6, *rest) if one is not None][:limit]

    monkeypatch.setattr(Ordered, "first", filtered)
    with_filter = factory_of("memory", tmp_path).make(FakeClock())
    assert max(ratios(with_filter, FAIR)) > 10
    with_filter.close()


def test_control_open_groups_found_by_a_filter_are_noticed_on_lmdb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_lanes = Lanes.open_lanes

    def filtered(tx: Lanes, queue: str, limit: int) -> OpenLanes:
        assert [lane for lane in tx.find_lanes(queue, "name", 10**6) if lane.open]
        return open_lanes(tx, queue, limit)

    monkeypatch.setattr(Lanes, "open_lanes", filtered)
    with_filter = factory_of("lmdb", tmp_path).make(FakeClock())
    assert max(ratios(with_filter, FAIR)) > 5
    with_filter.close()
