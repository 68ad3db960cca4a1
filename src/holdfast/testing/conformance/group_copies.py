"""Groups, policies and history in copies."""

from holdfast._sync.flows.copying import copy_all
from holdfast.commands import Configure, Groups
from holdfast.rates import Rate
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, browse, claim, claim_one, ids, put, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure, taken
from holdfast.testing.conformance.limits import settings
from holdfast.testing.lane_rules import broken_rules


class GroupCopyConformance(Conformance):
    """A copy goes on as its source would have."""

    def test_groups_are_copied_to_another_store(self, store: Store, clock: FakeClock) -> None:
        fill(store, clock)
        target = MemoryStore(clock=clock)
        copy_all(store, target, "source", "target")
        check(target, clock)

    def test_groups_are_copied_from_another_store(self, store: Store, clock: FakeClock) -> None:
        source = MemoryStore(clock=clock)
        fill(source, clock)
        copy_all(source, store, "source", "target")
        check(store, clock)


def fill(store: Store, clock: FakeClock) -> None:
    """A queue of strict groups: one is held up by a retry, one paused, one throttled; some messages are done, or late, or buffered."""
    configure(store, groups="strict", keep_done_s=600.0, max_attempts=5, limit=9, rate=Rate(100, per_s=1.0, burst=50))
    store.execute(Configure("queue", "stack", order="lifo"))
    for name in ("x", "y"):
        put(store, name, queue="stack")
        clock.advance(1)
    put(store, "a1", "a2", group="a")
    settle(store, [claim_one(store)], to="ready", counts=True, delay_s=50.0)
    put(store, "d1", "d2", group="d")
    settle(store, [claim_one(store)])
    put(store, "b1", group="b")
    configure(store, group="b", paused=True, weight=4)
    put(store, "c1", group="c")
    configure(store, group="c", throttle_s=20.0)
    put(store, "none")


def check(store: Store, clock: FakeClock) -> None:
    """What there must be in a copy of that."""
    assert broken_rules(store, JOBS, clock.now_us()) == []
    policy = settings(store).policy
    assert policy is not None
    assert (policy.groups, policy.max_attempts) == ("strict", 5)
    own = {lane.name: lane.own for lane in store.execute(Groups(JOBS)).lanes}
    assert (own["b"].paused, own["b"].weight) == (True, 4)
    assert ids(browse(store, "done")) == ["d1"]
    assert sorted(taken(store, 9)) == ["d2", "none"]
    clock.advance(20)
    assert taken(store, 9) == ["c1"]
    clock.advance(30)
    assert taken(store, 9) == ["a1", "a2"]
    configure(store, group="b", paused=False)
    assert taken(store, 9) == ["b1"]
    assert ids(claim(store, 5, queue="stack")) == ["y", "x"]
