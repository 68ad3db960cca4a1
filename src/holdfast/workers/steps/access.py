"""How the steps of a job reach the store."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct

from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec, Limits
from holdfast.commands import Command
from holdfast.stores.caller_transaction import AsyncConnection, Connection

if TYPE_CHECKING:
    from holdfast.workers.orders import Options, Orders

R = TypeVar("R")


class Access(Protocol):
    """Executes commands for a handler in a thread."""

    def execute(self, command: Command[R], connection: Connection | None = None) -> R:
        """Execute it; with a connection of the handler's, in its transaction."""
        ...


class AsyncAccess(Protocol):
    """Executes commands for a handler in a task."""

    async def execute(self, command: Command[R], connection: AsyncConnection | None = None) -> R:
        """See `Access.execute`."""
        ...


class StoreAccess:
    """Executes commands through the client of the worker."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self._client = client

    def execute(self, command: Command[R], connection: Connection | None = None) -> R:
        return self._client.store_on(connection).execute(command)


class AsyncStoreAccess:
    """Executes commands through the client of the worker, for tasks."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self._client = client

    async def execute(self, command: Command[R], connection: AsyncConnection | None = None) -> R:
        return await self._client.async_store_on(connection).execute(command)


IN_PLACE_S: Final = 1.0
"""Shorter waits than this are waited in place."""


class StepSetting(Struct, frozen=True, kw_only=True):
    """What the steps of a task's jobs need to know."""

    access: Access
    async_access: AsyncAccess
    now: Callable[[], float]
    lease_s: float
    in_place_s: float
    """Shorter waits than this are waited in place, longer ones free the worker."""
    version: Any = None
    versions: tuple[Any, ...] = ()
    limits: Limits = Limits()
    codec: Codec | None = None
    """The user's codec of the task: results of steps and signals are encoded by it, too."""


def step_setting(options: "Options", orders: "Orders", client: ControlPlaneClient, limits: Limits) -> StepSetting:
    """What the steps of the jobs of one function need to know."""
    keepalive = client.keepalive
    return StepSetting(
        access=StoreAccess(client),
        async_access=AsyncStoreAccess(client),
        now=keepalive.now,
        lease_s=orders.lease_s,
        # On a clock that a test moves nothing is waited for: the test decides how long it takes.
        in_place_s=IN_PLACE_S if keepalive.clock is None else 0.0,
        version=options.versions[0] if options.versions else None,
        versions=options.versions,
        limits=limits,
        codec=options.handler.given_codec,
    )
