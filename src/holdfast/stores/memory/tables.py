"""The data of a memory store."""

from holdfast.codec import Limits
from holdfast.commands import Copying
from holdfast.records import Lease, Message
from holdfast.records.policies import Kind, Settings
from holdfast.stores.memory.browsing import Browsing
from holdfast.stores.memory.dicts import Dicts
from holdfast.stores.memory.log import Answers, Log
from holdfast.stores.memory.queue import MemoryQueue
from holdfast.stores.memory.shares import Shares


class Tables:
    """The tables of one store, which its lock guards."""

    def __init__(self, limits: Limits, *, by_reference: bool, keeps_events: bool = True) -> None:
        self.by_reference = by_reference
        self.value_bytes: int = min(limits.value_bytes, limits.batch_bytes)
        self.messages: dict[int, Message] = {}
        """Every message of every queue, by its number."""
        self.last_number = 0
        self.queues: dict[str, MemoryQueue] = {}
        self.settings: dict[Kind, dict[str, Settings]] = {"queue": {}, "dict": {}}
        self.dicts: Dicts = Dicts()
        self.leases: dict[str | None, dict[str, Lease]] = {}
        """The last lease of each key, by dict."""
        self.shares: Shares = Shares()
        self.browsing: Browsing = Browsing()
        self.log: Log = Log(by_reference=by_reference, keeps=keeps_events)
        self.answers: Answers = Answers()
        self.copying: Copying | None = None
        """The copy that this store is the target of."""
        self.moved_to: str | None = None
        """Where everything was copied to."""

    def queue(self, name: str) -> MemoryQueue:
        """The queue's messages; a new, empty queue if need be."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = MemoryQueue(name, self.messages)
            queue.obey(self.settings["queue"].get(name))
        return queue

    def save_settings(self, settings: Settings) -> None:
        self.settings[settings.kind][settings.name] = settings
        if settings.kind == "queue":
            self.queue(settings.name).obey(settings)

    def drop_settings(self, kind: Kind, name: str) -> None:
        self.settings[kind].pop(name, None)
        if kind == "queue" and name in self.queues:
            self.queues[name].obey(None)
