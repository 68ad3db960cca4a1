# Generated from src/holdfast/_async/handles/groups.py by tools/unasync.py; do not edit.
"""The groups of a queue: their settings, and what is known of each."""

from typing import ClassVar, Unpack

from holdfast._sync.flows.browsing import count
from holdfast._sync.handles.naming import NamedQueue
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.policy_options import GroupSettings, QueueSettings, configuration, group_configuration
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, check_duration, check_name
from holdfast.commands import Configure, Filter, Groups, Names, Stats
from holdfast.results import GroupInfo
from holdfast.stores import Store
from holdfast.views.groups import groups_seen

NO_GROUP = ""
"""Stands for the messages of a queue that were put without a group."""


@show_options
class QueueGroup(StoreHandle):
    """One group of a queue: what `queue.group(name)` gives. Making one touches nothing; "" are the messages without a group."""

    aio: ClassVar[Twin] = Twin()

    queue: str
    name: str

    def __init__(self, queue: str, name: str, **where: Unpack[Where]) -> None:
        self.queue = check_name(queue, "queue")
        self.name = name if name == NO_GROUP else check_name(name, "group")
        super().__init__(JSON, **where)

    def configure(self, **settings: Unpack[GroupSettings]) -> None:
        """Change what is given; what is left out stays. `GroupSettings` explains the settings."""
        self._store().execute(group_configuration(self.queue, self.name, settings))

    def pause(self, **where: Unpack[Where]) -> None:
        """Hand nothing of the group out until `resume`; puts, claims that run, and other groups go on."""
        self._store(**where).execute(Configure("queue", self.queue, group=self.name, paused=True))

    def resume(self, **where: Unpack[Where]) -> None:
        """Hand out again, also after a dead message has held the group."""
        self._store(**where).execute(Configure("queue", self.queue, group=self.name, paused=False))

    def throttle(self, delay_s: float, **where: Unpack[Where]) -> None:
        """Hand nothing of the group out for so many seconds, from now on; 0 ends that."""
        self._store(**where).execute(Configure("queue", self.queue, group=self.name, throttle_s=check_duration(delay_s, "delay_s")))

    def forget(self, **where: Unpack[Where]) -> None:
        """Take away all settings of the group's own; its messages stay."""
        self._store(**where).execute(Configure("queue", self.queue, group=self.name, forget=True))

    def stats(self, **where: Unpack[Where]) -> Stats:
        """Sizes, ages and holders of the group, counted as `Queue.stats` counts what a filter finds."""
        return count(self._store(**where), self.queue, Filter(group=self.name))

    def info(self, **where: Unpack[Where]) -> GroupInfo | None:
        """What is known of the group; None while it has nothing in line, nothing claimed and no settings of its own."""
        store = self._store(**where)
        settings = (store.execute(Names("queue", self.queue, limit=1, exact=True))).settings
        found = store.execute(Groups(self.queue, prefix=self.name, exact=True))
        seen = groups_seen(found, settings[0] if settings else None, store.wall_offset_us())
        return seen[0] if seen else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.queue!r}, {self.name!r})"

    def _store(self, client: ControlPlaneClient | None = None, base_url: str | None = None) -> Store:
        return self._reach(client, base_url).store


@show_options
class QueueGroups(NamedQueue):
    """The part of a queue's handle that sets what holds for all of its messages and for each group."""

    def configure(
        self, *, client: ControlPlaneClient | None = None, base_url: str | None = None, **settings: Unpack[QueueSettings]
    ) -> None:
        """Change what is given; what is left out stays. `QueueSettings` explains the settings.

        The store keeps them, so they hold for every producer and every worker. Raises `Refused` where the change would have to rearrange
        more than 10,000 messages.
        """
        self._store(client, base_url).execute(configuration(self.name, settings))

    def throttle(self, delay_s: float, **where: Unpack[Where]) -> None:
        """Hand nothing out for so many seconds, from now on, to no worker; 0 ends that. Puts and claims that run go on."""
        self._store(**where).execute(Configure("queue", self.name, throttle_s=check_duration(delay_s, "delay_s")))

    def group(self, name: str, **where: Unpack[Where]) -> QueueGroup:
        """Make a handle of one group; "" are the messages that were put without a group."""
        reached: Where = where or {"client": self._client, "base_url": self._base_url}
        return QueueGroup(self.name, name, **reached)

    def groups(self, *, prefix: str = "", after: GroupInfo | None = None, limit: int = 1_000, **where: Unpack[Where]) -> list[GroupInfo]:
        """Look at the groups by name: those with something in line or claimed, or with settings of their own.

        For the next page give the last one as `after`.
        """
        store = self._store(**where)
        settings = (store.execute(Names("queue", self.name, limit=1, exact=True))).settings
        found = store.execute(Groups(self.name, prefix, after.name if after else None, limit))
        return groups_seen(found, settings[0] if settings else None, store.wall_offset_us())
