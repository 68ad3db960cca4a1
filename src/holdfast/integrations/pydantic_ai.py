"""Pydantic AI agents whose model requests and tool calls are steps of a durable job.

agent = Agent("openai:gpt-5", name="support", capabilities=[HoldfastDurability()])

Run the agent in an async task of Holdfast. Every model request, tool call and MCP call is recorded; when the job is run again, what is
recorded is not asked for again. Outside of a job the capability changes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, ClassVar, cast

from holdfast.errors import MissingExtra
from holdfast.integrations.agent_jobs import durable_job, next_number, short
from holdfast.workers.handlers.jobs import current_job
from holdfast.workers.steps.options import StepOptions

try:
    from pydantic_ai.agent import EventStreamHandler
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.durable_exec import (
        JSON_CODEC,
        BaseDurabilityCapability,
        DurabilityEngineSpec,
        DurableOperationId,
        JournalCallableOperationBackend,
        ModelRequestId,
        RoleBasedOperationConfig,
        ToolsetCallToolId,
        conversation_id_from_run_id,
    )
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import AgentDepsT, RunContext
except ImportError as _error:
    raise MissingExtra("holdfast.integrations.pydantic_ai needs Pydantic AI: pip install 'holdfast[pydantic-ai]'") from _error

_branch: ContextVar[str | None] = ContextVar("holdfast_agent_branch", default=None)
"""The branch of the job in which an agent runs; None outside of an agent's run."""

_is_in_step: ContextVar[bool] = ContextVar("holdfast_agent_step", default=False)
"""Whether a step of an agent runs here: what it calls belongs to it."""


class HoldfastDurability(BaseDurabilityCapability[AgentDepsT]):
    """Makes the runs of an agent durable, inside of an async task of Holdfast.

    `model` and `tools` are options of the steps, as `JobContext.options` takes them: `HoldfastDurability(tools={"max_attempts": 1})`.
    An agent needs a name, and keeps it while jobs are in flight. Steps happen at least once: a tool that must not be called twice
    uses an idempotency key.
    """

    engine_spec: ClassVar[DurabilityEngineSpec] = DurabilityEngineSpec(
        engine_name="Holdfast",
        durable_unit_noun="step",
        durable_container_noun="job",
        codec=JSON_CODEC,
        tool_config_key="holdfast",
        cancellation_error_types=(),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        model: StepOptions | None = None,
        tools: StepOptions | None = None,
    ) -> None:
        super().__init__(models=models, event_stream_handler=event_stream_handler, name=name)
        self._model_options: StepOptions = model or {}
        self._tool_options: StepOptions = tools or {}

    @property
    def in_durable_context(self) -> bool:
        """Whether an agent that runs here is part of a job; inside of a step it is part of that step."""
        return current_job() is not None and not _is_in_step.get()

    def get_durable_operation_backend(self) -> "StepBackend":
        """What makes steps of the agent's calls."""
        return StepBackend(self.name, self._model_options, self._tool_options)

    def get_default_run_id(self) -> str | None:
        """The same id whenever the job is run again."""
        if not self.in_durable_context:
            return None
        job = durable_job()
        return f"{job.id}:{self.name}:{next_number(job, f'{self.name} id')}"

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """The same id whenever the job is run again."""
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        """When the agent first began: recorded, so a time limit counts from there."""
        del run_id
        return await durable_job().branch(short(self.name)).now() if self.in_durable_context else None

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Run the agent in a branch of its own, so that agents may run side by side."""
        if not self.in_durable_context:
            return await super().wrap_run(ctx, handler=handler)
        token = _branch.set(short(f"{self.name} {next_number(durable_job(), self.name)}"))
        try:
            return await super().wrap_run(ctx, handler=handler)
        finally:
            _branch.reset(token)


class StepBackend(JournalCallableOperationBackend[StepOptions]):
    """Makes one step of each call of an agent."""

    def __init__(self, agent_name: str, model: StepOptions, tools: StepOptions) -> None:
        def tool_options(operation_id: DurableOperationId, tool: object | None, tool_name: str) -> Any:
            del operation_id, tool_name
            own = _metadata(tool).get("holdfast", {})
            return False if own is False else cast("StepOptions", {**tools, **own})

        config = RoleBasedOperationConfig(model=model, event=StepOptions(), capability=StepOptions(), tool=tools, resolve_tool=tool_options)
        super().__init__(agent_name=agent_name, config=config)

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: StepOptions,
    ) -> object:
        """Run a call as one step; where it is part of another step, or of no job, directly."""
        if current_job() is None or _is_in_step.get():
            return await body()

        async def call(*arguments: object) -> object:
            del arguments  # They are part of what the step is told apart by.
            token = _is_in_step.set(True)
            try:
                return await body()
            finally:
                _is_in_step.reset(token)

        named, arguments = _named(operation_id, name, cache_key)
        job = durable_job().branch(_branch.get() or "agent").options(**config)
        return await job.step(short(named), call, *arguments)


def _named(operation_id: DurableOperationId, name: str, cache_key: tuple[object, ...]) -> tuple[str, list[object]]:
    """What a step is called, and what tells it apart from others of the name."""
    if isinstance(operation_id, ModelRequestId):
        return "model", []
    if isinstance(operation_id, ToolsetCallToolId):
        # Tools may be called side by side: their arguments come from a recorded answer of the model.
        plain: list[object] = [part for part in cache_key if isinstance(part, str | dict)]
        tool = plain[0] if plain and isinstance(plain[0], str) else name.rpartition(":")[2]
        return f"tool {tool}", plain
    return name, []


def _metadata(tool: object) -> Mapping[str, Any]:
    definition = getattr(tool, "tool_def", None)
    return getattr(definition, "metadata", None) or {}
