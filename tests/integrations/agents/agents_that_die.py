"""Agents whose workers die: the programs, and the lives of a job."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from agents import Agent as OpenAIAgent
from agents import OpenAIResponsesModel, RunConfig, function_tool
from agents.mcp import MCPServer
from mcp.server.mcpserver import MCPServer as McpServer
from mcp.types import CallToolResult, TextContent, Tool
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast import AsyncJobContext, ControlPlaneClient, Tasks
from holdfast.errors import Closed
from holdfast.integrations.openai_agents import run as run_agent
from holdfast.integrations.pydantic_ai import HoldfastDurability
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.integrations.agents.stub_model import StubModel
from tests.workers.mortal_store import Fate, MortalStore

LEASE_S = 60.0
LIVES = 20
ANSWER = "sunny in Vienna; sunny in Graz"

Ask = Callable[[str], Any]


def pydantic_ai(model: StubModel, called: Counter[str]) -> Ask:
    """An agent of Pydantic AI, by chat completions."""
    provider = OpenAIProvider(base_url=model.url, api_key="none")
    agent = Agent(OpenAIChatModel("stub", provider=provider), name="forecast", capabilities=[HoldfastDurability()])

    @agent.tool_plain
    def weather(city: str) -> str:
        called[city] += 1
        return f"sunny in {city}"

    async def ask(question: str) -> str:
        return (await agent.run(question)).output

    return ask


def pydantic_ai_with_mcp(model: StubModel, called: Counter[str]) -> Ask:
    """The same with a tool of an MCP server, which the library's own client asks."""
    server = McpServer("weather server")

    @server.tool()
    def weather(city: str) -> str:
        called[city] += 1
        return f"sunny in {city}"

    chat = OpenAIChatModel("stub", provider=OpenAIProvider(base_url=model.url, api_key="none"))
    agent = Agent(chat, name="forecast", toolsets=[MCPToolset(server, id="weather")], capabilities=[HoldfastDurability()])

    async def ask(question: str) -> str:
        return (await agent.run(question)).output

    return ask


def openai_agents(model: StubModel, called: Counter[str]) -> Ask:
    """An agent of the OpenAI Agents SDK, by responses."""

    @function_tool
    def weather(city: str) -> str:
        called[city] += 1
        return f"sunny in {city}"

    client = AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0)
    expert = OpenAIAgent("expert", tools=[weather], model=OpenAIResponsesModel("stub", client))
    agent = OpenAIAgent("forecast", tools=[weather], model=OpenAIResponsesModel("stub", client), handoffs=[expert])

    async def ask(question: str) -> str:
        return str((await run_agent(agent, question, run_config=RunConfig(tracing_disabled=True))).final_output)

    return ask


class WeatherServer(MCPServer):
    """An MCP server of this process."""

    name = "weather server"

    def __init__(self, called: Counter[str]) -> None:
        super().__init__()
        self._called = called

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: object, **__: object) -> list[Tool]:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        return [Tool.model_validate({"name": "weather", "inputSchema": schema})]

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None) -> CallToolResult:
        assert (tool_name, meta) == ("weather", None)
        city = (arguments or {})["city"]
        self._called[city] += 1
        return CallToolResult(content=[TextContent(type="text", text=f"sunny in {city}")])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any: ...


def openai_agents_with_mcp(model: StubModel, called: Counter[str]) -> Ask:
    """The same with a tool of an MCP server."""
    client = AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0)
    agent = OpenAIAgent("forecast", mcp_servers=[WeatherServer(called)], model=OpenAIResponsesModel("stub", client))

    async def ask(question: str) -> str:
        return str((await run_agent(agent, question, run_config=RunConfig(tracing_disabled=True))).final_output)

    return ask


class Lives:
    """One job that asks an agent, through the lives of its workers."""

    def __init__(self, make: Callable[[StubModel, Counter[str]], Ask], model: StubModel, questions: int = 1) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.called: Counter[str] = Counter()
        self._make = make
        self._model = model
        self._questions = questions
        self.job: Any = self._tasks(Fate()).find("forecast").put("How is the weather?")

    def _tasks(self, fate: Fate) -> Tasks:
        app = Tasks("agents", client=ControlPlaneClient.on(MortalStore(self.store, fate)))
        ask = self._make(self._model, self.called)

        @app.task(name="forecast")
        async def forecast(job: AsyncJobContext, question: str) -> str:
            await job.step("begin", int)
            answers = await asyncio.gather(*(ask(f"{question} {number}") for number in range(self._questions)))
            return " and ".join(answers)

        return app

    def live(self, fate: Fate) -> None:
        """One process, until it dies or has nothing to do."""
        try:
            self._tasks(fate).run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=LEASE_S)
        except Closed:
            assert fate.is_dead
        self.clock.advance(LEASE_S + 1.0)

    def finish(self) -> Any:
        """The result, after as many lives as it takes."""
        for _ in range(LIVES):
            if self.job.status().state in ("done", "dead"):
                break
            self.live(Fate())
        return self.job.result(timeout_s=0)
