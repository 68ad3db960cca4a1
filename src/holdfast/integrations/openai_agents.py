"""Agents of the OpenAI Agents SDK whose model requests and tool calls are steps of a durable job.

result = await run(agent, "What is the weather in Vienna?")

Call `run` instead of `Runner.run` in an async task of Holdfast. Every model request, and every call of a function tool or of an MCP server,
is recorded, also those of agents that are handed over to; when the job is run again, what is recorded is not asked for again.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from holdfast.errors import HoldfastError, MissingExtra
from holdfast.integrations.agent_jobs import durable_job, next_number, short
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.steps.options import StepOptions

try:
    from agents import (
        Agent,
        FunctionTool,
        Handoff,
        Model,
        ModelProvider,
        ModelResponse,
        RunConfig,
        RunContextWrapper,
        Runner,
        RunResult,
        Tool,
    )
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter
except ImportError as _error:
    raise MissingExtra("holdfast.integrations.openai_agents needs the Agents SDK: pip install 'holdfast[openai-agents]'") from _error

_responses = TypeAdapter(ModelResponse)
_outputs: "TypeAdapter[Any]" = TypeAdapter(Any)


async def run(
    agent: "Agent[Any]",
    input: Any,
    *,
    model: StepOptions | None = None,
    tools: StepOptions | None = None,
    run_config: RunConfig | None = None,
    **options: Any,
) -> RunResult:
    """Run an agent as part of the job that runs here: `Runner.run`, each of whose requests and tool calls is a step.

    `model` and `tools` are options of these steps, as `JobContext.options` takes them; the others are those of `Runner.run`. Steps happen
    at least once: a tool that must not be called twice uses an idempotency key. Guardrails, sessions and hooks are no steps: they are run
    again with the job.
    """
    job, config = durable_job(), run_config or RunConfig()
    # In a branch of its own, so that agents may run side by side.
    steps = _AgentSteps(job.branch(short(f"{agent.name} {next_number(job, agent.name)}")), model or {}, tools or {})
    config = replace(config, model_provider=DurableModels(config.model_provider, steps), model=steps.model(config.model))
    return await Runner.run(steps.agent(agent), input, run_config=config, **options)


class DurableModels(ModelProvider):
    """Gives models whose requests are steps."""

    def __init__(self, provider: ModelProvider, steps: "_AgentSteps") -> None:
        self._provider = provider
        self._steps = steps

    def get_model(self, model_name: str | None) -> Model:
        """The model of this name."""
        return DurableModel(self._provider.get_model(model_name), self._steps)

    async def aclose(self) -> None:
        """Close what the provider has open."""
        await self._provider.aclose()


class DurableModel(Model):
    """A model whose requests are steps of a job."""

    def __init__(self, model: Model, steps: "_AgentSteps") -> None:
        self._model = model
        self._steps = steps

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """What the model answers, or what it has answered."""

        async def request() -> Any:
            return _responses.dump_python(await self._model.get_response(*args, **kwargs), mode="json", exclude_unset=False)

        found = await self._steps.job.options(**self._steps.model_options).step("model", request)
        return _responses.validate_python(found)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[ResponseStreamEvent]:
        """Refused: what was streamed cannot be replayed."""
        del args, kwargs
        raise HoldfastError("a durable run is not streamed: use run(…), and job.report in your tools to show how far it is")
        yield

    async def close(self) -> None:
        """Close what the model has open."""
        await self._model.close()


class _AgentSteps:
    """Makes agents whose requests and tool calls are steps of a job."""

    def __init__(self, job: AsyncJobContext, model_options: StepOptions, tool_options: StepOptions) -> None:
        self.job = job
        self.model_options = model_options
        self._tool_options = tool_options
        self._agents: dict[int, Agent[Any]] = {}

    def model(self, model: Any) -> Any:
        """The model, if it is one and not a name, which the provider knows."""
        return DurableModel(model, self) if isinstance(model, Model) and not isinstance(model, DurableModel) else model

    def agent(self, agent: "Agent[Any]") -> "Agent[Any]":
        """The agent with durable tools, and with durable agents to hand over to."""
        known = self._agents.get(id(agent))
        if known is not None:
            return known
        made = self._agents[id(agent)] = agent.clone(model=self.model(agent.model), tools=[self._tool(tool) for tool in agent.tools])
        self._agents[id(made)] = made

        async def mcp_tools(context: "RunContextWrapper[Any]") -> list[Tool]:
            return [self._tool(tool) for tool in await agent.get_mcp_tools(context)]

        # Not the servers: what their calls raise becomes a text for the model, also that this job is another's by now.
        made.get_mcp_tools = mcp_tools  # type: ignore[method-assign, assignment] # for this agent alone
        # Last, since agents may hand over to each other.
        made.handoffs = [self._handoff(one) if isinstance(one, Handoff) else self.agent(one) for one in agent.handoffs]
        return made

    def _handoff(self, handoff: "Handoff[Any, Any]") -> "Handoff[Any, Any]":
        async def invoke(context: Any, arguments: str) -> Any:
            return self.agent(await handoff.on_invoke_handoff(context, arguments))

        return replace(handoff, on_invoke_handoff=invoke)

    def _tool(self, tool: Tool) -> Tool:
        """The tool, if it is a function, so that its calls are steps; others are run by the model's provider."""
        if not isinstance(tool, FunctionTool):
            return tool

        async def invoke(context: "ToolContext[Any]", arguments: str) -> Any:
            async def call(_: str) -> Any:
                return _outputs.dump_python(await tool.on_invoke_tool(context, arguments), mode="json")

            return await self.job.options(**self._tool_options).step(short(f"tool {tool.name}"), call, arguments)

        return replace(tool, on_invoke_tool=invoke)
