"""Flows of 10,000 random nodes, through deaths of their workers, poison and redrives."""

import random
from pathlib import Path

import pytest

from holdfast.testing.clock import FakeClock
from tests.stores_by_name import factory_of
from tests.workers.flow_graphs import GraphRun, graph, run_through

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3_600)]

SIZE = 10_000


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_ten_thousand_nodes_run_in_order_whatever_dies(kind: str, tmp_path: Path) -> None:
    clock, chosen = FakeClock(), random.Random(2_026)
    store = factory_of(kind, tmp_path).make(clock)
    try:
        poison = set(chosen.sample(range(SIZE), 5))
        run_through(GraphRun(store, clock, graph(chosen, SIZE), poison=poison), chosen, deaths=20)
    finally:
        store.close()
