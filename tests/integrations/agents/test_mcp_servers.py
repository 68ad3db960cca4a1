"""Agents with an MCP server in a process of its own, over its standard streams and over HTTP: nothing is paid or called twice."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import OpenAIResponsesModel, RunConfig
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from fastmcp.client.transports import StdioTransport
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast.integrations.openai_agents import run as run_agent
from holdfast.integrations.pydantic_ai import HoldfastDurability
from holdfast.testing.servers.program import answers_at, free_port
from tests.integrations.agents.agents_that_die import ANSWER, Ask, Lives
from tests.integrations.agents.stub_model import CITIES, REQUESTS, StubModel
from tests.workers.mortal_store import Fate

pytestmark = pytest.mark.verify

SERVER = Path(__file__).with_name("weather_server.py")
Make = Callable[[StubModel, Counter[str]], Ask]


@pytest.fixture
def model() -> Iterator[StubModel]:
    stub = StubModel()
    yield stub
    stub.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "called"


@pytest.fixture(params=["stdio", "http"])
def place(request: pytest.FixtureRequest, file: Path) -> Iterator[list[str] | str]:
    """The command of a server, or the URL of one that runs."""
    if request.param == "stdio":
        yield [str(SERVER), str(file)]
        return
    port = free_port()
    server = subprocess.Popen([sys.executable, str(SERVER), str(file), str(port)], stderr=subprocess.DEVNULL)
    try:
        while not answers_at(port):
            assert server.poll() is None
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.kill()
        server.wait()


def pydantic_ai(place: list[str] | str) -> Make:
    def make(model: StubModel, _: Counter[str]) -> Ask:
        chat = OpenAIChatModel("stub", provider=OpenAIProvider(base_url=model.url, api_key="none"))
        client: Any = place if isinstance(place, str) else StdioTransport(sys.executable, place, keep_alive=False)
        agent = Agent(chat, name="forecast", toolsets=[MCPToolset(client, id="weather")], capabilities=[HoldfastDurability()])

        async def ask(question: str) -> str:
            async with agent:
                return (await agent.run(question)).output

        return ask

    return make


def openai_agents(place: list[str] | str) -> Make:
    def make(model: StubModel, _: Counter[str]) -> Ask:
        client = AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0)

        async def ask(question: str) -> str:
            server: Any = (
                MCPServerStreamableHttp({"url": place})
                if isinstance(place, str)
                else MCPServerStdio({"command": sys.executable, "args": place})
            )
            async with server:
                agent = OpenAIAgent("forecast", mcp_servers=[server], model=OpenAIResponsesModel("stub", client))
                return str((await run_agent(agent, question, run_config=RunConfig(tracing_disabled=True))).final_output)

        return ask

    return make


@pytest.mark.parametrize("kind", [pydantic_ai, openai_agents])
def test_a_worker_killed_after_any_record_pays_for_no_request_twice(
    kind: Callable[[list[str] | str], Make], place: list[str] | str, file: Path, model: StubModel
) -> None:
    undisturbed, fate = Lives(kind(place), model), Fate()
    undisturbed.live(fate)
    assert undisturbed.finish() == ANSWER
    for number in range(1, fate.commands + 1):
        model.paid.clear()
        file.unlink()
        lives = Lives(kind(place), model)
        lives.live(Fate(number, after=True))
        file.touch()
        assert lives.finish() == ANSWER
        assert (sum(model.paid.values()), Counter(file.read_text().split())) == (REQUESTS, dict.fromkeys(CITIES, 1)), number
