"""The groups of a queue: their settings, and what is known of each."""

from typing import ClassVar, Unpack

from holdfast._async.flows.browsing import count
from holdfast._async.handles.naming import AsyncNamedQueue
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.policy_options import GroupSettings, QueueSettings, configuration, group_configuration
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, check_duration, check_name
from holdfast.commands import Configure, Filter, Groups, Names, Stats
from holdfast.results import GroupInfo
from holdfast.stores import AsyncStore
from holdfast.views.groups import groups_seen

NO_GROUP = ""
"""Stands for the messages of a queue that were put without a group."""


@show_options
class AsyncQueueGroup(StoreHandle):
    """One group of a queue: what `queue.group(name)` gives. Making one touches nothing; "" are the messages without a group."""

    aio: ClassVar[Twin] = Twin()

    queue: str
    name: str

    def __init__(self, queue: str, name: str, **where: Unpack[Where]) -> None:
        self.queue = check_name(queue, "queue")
        self.name = name if name == NO_GROUP else check_name(name, "group")
        super().__init__(JSON, **where)

    async def configure(self, **settings: Unpack[GroupSettings]) -> None:
        """Change what is given; what is left out stays. `GroupSettings` explains the settings."""
        await self._store().execute(group_configuration(self.queue, self.name, settings))

    async def pause(self, **where: Unpack[Where]) -> None:
        """Hand nothing of the group out until `resume`; puts, claims that run, and other groups go on."""
        await self._store(**where).execute(Configure("queue", self.queue, group=self.name, paused=True))

    async def resume(self, **where: Unpack[Where]) -> None:
        """Hand out again, also after a dead message has held the group."""
        await self._store(**where).execute(Configure("queue", self.queue, group=self.name, paused=False))

    async def throttle(self, delay_s: float, **where: Unpack[Where]) -> None:
        """Hand nothing of the group out for so many seconds, from now on; 0 ends that."""
        await self._store(**where).execute(Configure("queue", self.queue, group=self.name, throttle_s=check_duration(delay_s, "delay_s")))

    async def forget(self, **where: Unpack[Where]) -> None:
        """Take away all settings of the group's own; its messages stay."""
        await self._store(**where).execute(Configure("queue", self.queue, group=self.name, forget=True))

    async def stats(self, **where: Unpack[Where]) -> Stats:
        """Sizes, ages and holders of the group, counted as `Queue.stats` counts what a filter finds."""
        return await count(self._store(**where), self.queue, Filter(group=self.name))

    async def info(self, **where: Unpack[Where]) -> GroupInfo | None:
        """What is known of the group; None while it has nothing in line, nothing claimed and no settings of its own."""
        store = self._store(**where)
        settings = (await store.execute(Names("queue", self.queue, limit=1, exact=True))).settings
        found = await store.execute(Groups(self.queue, prefix=self.name, exact=True))
        seen = groups_seen(found, settings[0] if settings else None, store.wall_offset_us())
        return seen[0] if seen else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.queue!r}, {self.name!r})"

    def _store(self, client: ControlPlaneClient | None = None, base_url: str | None = None) -> AsyncStore:
        return self._reach(client, base_url).async_store


@show_options
class AsyncQueueGroups(AsyncNamedQueue):
    """The part of a queue's handle that sets what holds for all of its messages and for each group."""

    async def configure(
        self, *, client: ControlPlaneClient | None = None, base_url: str | None = None, **settings: Unpack[QueueSettings]
    ) -> None:
        """Change what is given; what is left out stays. `QueueSettings` explains the settings.

        The store keeps them, so they hold for every producer and every worker. Raises `Refused` where the change would have to rearrange
        more than 10,000 messages.
        """
        await self._store(client, base_url).execute(configuration(self.name, settings))

    async def throttle(self, delay_s: float, **where: Unpack[Where]) -> None:
        """Hand nothing out for so many seconds, from now on, to no worker; 0 ends that. Puts and claims that run go on."""
        await self._store(**where).execute(Configure("queue", self.name, throttle_s=check_duration(delay_s, "delay_s")))

    def group(self, name: str, **where: Unpack[Where]) -> AsyncQueueGroup:
        """Make a handle of one group; "" are the messages that were put without a group."""
        reached: Where = where or {"client": self._client, "base_url": self._base_url}
        return AsyncQueueGroup(self.name, name, **reached)

    async def groups(
        self, *, prefix: str = "", after: GroupInfo | None = None, limit: int = 1_000, **where: Unpack[Where]
    ) -> list[GroupInfo]:
        """Look at the groups by name: those with something in line or claimed, or with settings of their own.

        For the next page give the last one as `after`.
        """
        store = self._store(**where)
        settings = (await store.execute(Names("queue", self.name, limit=1, exact=True))).settings
        found = await store.execute(Groups(self.name, prefix, after.name if after else None, limit))
        return groups_seen(found, settings[0] if settings else None, store.wall_offset_us())
