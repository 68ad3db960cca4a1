"""Agents in durable jobs: whatever dies, a recorded request is not paid again, and a recorded tool call not repeated."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import JobContext, JobFailed, Tasks
from tests.integrations.agents.agents_that_die import (
    ANSWER,
    Lives,
    openai_agents,
    openai_agents_with_mcp,
    pydantic_ai,
    pydantic_ai_with_mcp,
)
from tests.integrations.agents.stub_model import CITIES, REQUESTS, StubModel
from tests.workers.mortal_store import Fate

AGENTS = pytest.mark.parametrize("make", [pydantic_ai, openai_agents])


@pytest.fixture
def model() -> Iterator[StubModel]:
    stub = StubModel()
    yield stub
    stub.close()


def commands_of(make: Any, model: StubModel) -> int:
    """How many commands that write an undisturbed run has."""
    lives, fate = Lives(make, model), Fate()
    lives.live(fate)
    assert lives.finish() == ANSWER
    assert list(lives.called.values()) == [1, 1]
    assert sum(model.paid.values()) == REQUESTS
    model.paid.clear()
    return fate.commands


@pytest.mark.parametrize("make", [pydantic_ai, openai_agents, openai_agents_with_mcp])
def test_a_worker_killed_after_any_record_pays_for_no_request_twice(make: Any, model: StubModel) -> None:
    for number in range(1, commands_of(make, model) + 1):
        model.paid.clear()
        lives = Lives(make, model)
        lives.live(Fate(number, after=True))
        assert lives.finish() == ANSWER
        assert sum(model.paid.values()) == REQUESTS, number
        assert lives.called == dict.fromkeys(CITIES, 1)


def test_calls_of_an_mcp_server_are_recorded_like_those_of_other_tools(model: StubModel) -> None:
    lives = Lives(pydantic_ai_with_mcp, model)
    lives.live(Fate(6, after=True))  # Behind the record of the first call.
    assert [step.name for step in lives.job.steps()].count("tool weather") == 1
    assert lives.finish() == ANSWER
    assert sum(model.paid.values()) == REQUESTS
    assert lives.called == dict.fromkeys(CITIES, 1)


@AGENTS
def test_a_worker_killed_before_a_record_repeats_only_what_was_not_recorded(make: Any, model: StubModel) -> None:
    for number in range(1, commands_of(make, model) + 1):
        model.paid.clear()
        lives = Lives(make, model)
        lives.live(Fate(number))
        assert lives.finish() == ANSWER
        assert sum(model.paid.values()) <= REQUESTS + 1, number


@AGENTS
def test_agents_that_run_side_by_side_keep_their_own_answers(make: Any, model: StubModel) -> None:
    for number in range(2, 14, 3):
        model.paid.clear()
        lives = Lives(make, model, questions=3)
        lives.live(Fate(number, after=True))
        assert lives.finish() == " and ".join([ANSWER] * 3)
        # What ran beside the one that was recorded last was not.
        assert 3 * REQUESTS <= sum(model.paid.values()) <= 3 * REQUESTS + 2


@AGENTS
def test_the_steps_of_an_agent_are_seen(make: Any, model: StubModel) -> None:
    lives = Lives(make, model)
    lives.live(Fate(8))
    names = [step.name for step in lives.job.steps()]
    assert {"model", "tool weather"} <= set(names)
    lives.store.close()


@AGENTS
def test_a_request_that_fails_is_tried_again_and_then_fails_the_job(make: Any, model: StubModel) -> None:
    lives = Lives(make, model)
    model.fails = 1
    assert lives.finish() == ANSWER
    failing = Lives(make, model)
    model.fails = 100
    with pytest.raises(JobFailed, match="StepFailed"):
        failing.finish()


@AGENTS
def test_outside_of_an_async_job_it_says_so_or_changes_nothing(make: Any, model: StubModel, drain: Any, holdfast_client: Any) -> None:
    app = Tasks("agents", client=holdfast_client)

    @app.task(name="sync")
    def forecast(job: JobContext) -> str:
        return str(asyncio.run(make(model, Counter())("How?")))

    job = forecast.put()
    drain(app, delayed=True)
    assert "async task alone" in (job.status().error or "")
