"""How long messages that were claimed ahead may wait."""

from typing import Any

import pytest
from msgspec import Raw

from holdfast.codec import JSON
from holdfast.holding.hold import Hold
from holdfast.records import Message
from holdfast.workers.handlers.handler import Performance, Rules
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.orders import make_options
from holdfast.workers.running.prefetch import WAIT_S, Ahead
from holdfast.workers.running.runs import Run


def test_it_counts_from_when_they_came_not_from_when_a_slow_store_was_asked() -> None:
    asked_at, came_at = 100.0, 110.0
    message = Message("jobs", "one", Raw(b"1"))
    ahead = Ahead(None, 1)
    options = make_options(print, "jobs")
    hold, performance = Hold(message.receipt, 60.0, asked_at), Performance(options.handler, Rules())
    crew: Any = None
    ahead.claimed([Run(message, hold, JobContext(message, JSON), options, performance=performance, crew=crew)], came_at, is_all=True)
    assert ahead.due_in_s(came_at) == pytest.approx(WAIT_S)
