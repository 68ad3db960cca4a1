"""The claims of a channel, as a mapping that a test may write to."""

from collections.abc import Iterator, MutableMapping

from holdfast._sync.flows.browsing import pages
from holdfast.client import ControlPlaneClient
from holdfast.clock import wall_s
from holdfast.commands import Browse, Extend, Settle
from holdfast.records import Message
from holdfast.results import wall_time


class Claims(MutableMapping[str, tuple[str, float]]):
    """Message id → (worker, when it claimed the message, in seconds since 1970).

    Setting the moment back ends a claim early, as a test of a stuck worker wants; deleting gives the message back. It asks the store, and
    blocks until it answers.
    """

    def __init__(self, client: ControlPlaneClient, queue: str, lease_s: float) -> None:
        self._client = client
        self._queue = queue
        self._lease_s = lease_s

    def __getitem__(self, message_id: str) -> tuple[str, float]:
        message = self._held(message_id)
        since = wall_time(message.since, self._client.store.wall_offset_us())
        return message.holder, 0.0 if since is None else since.timestamp()

    def __setitem__(self, message_id: str, claim: tuple[str, float]) -> None:
        worker, claimed_at = claim
        message = self._held(message_id)
        if message.holder != worker:
            raise ValueError(f"message {message_id} is claimed by {message.holder!r}, not by {worker!r}: only read() makes claims")
        left_s = claimed_at + self._lease_s - wall_s()
        self._client.store.execute(Extend([message.receipt], max(0.0, left_s)))

    def __delitem__(self, message_id: str) -> None:
        self._client.store.execute(Settle([self._held(message_id).receipt], "ready", "place"))

    def __iter__(self) -> Iterator[str]:
        for page in pages(self._client.store, self._queue, "leased"):
            yield from (message.id for message in page.messages if message.held_at(page.now))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _held(self, message_id: str) -> Message:
        found = self._client.store.execute(Browse(self._queue, ids=[message_id]))
        for message in found.messages:
            if message.held_at(found.now):
                return message
        raise KeyError(message_id)
