"""The circuit breaker that all workers of a queue share: its state is in the store, and no worker remembers it.

The dict `QUEUE-breaker` counts under one key the failures in a row; the other key is there while the breaker is not closed. A lease on that
key is the cooldown, which is not renewed, and after it the right to try, which the one who tries renews. So the store's clock alone decides
when it is over, and a worker that dies while it tries blocks the others for one lease.
"""

import logging

from msgspec import Raw, json

from holdfast.client import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.commands import Acquire, Acquired, Change, LeaseName, Read, Release, Renew, Together, Write
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.errors import LeaseHeld, Refused
from holdfast.holding.hold import Hold
from holdfast.ids import new_id
from holdfast.records import Entry
from holdfast.wording import seconds
from holdfast.workers.names import breaker_of
from holdfast.workers.orders import Orders
from holdfast.workers.running.breaker import SharedCircuit

FAILURES = encode_key("failures")
OPEN = encode_key("open")

_log = logging.getLogger("holdfast.worker")


class AsyncSharedBreaker:
    """One worker's view of it: tells the store how jobs ended, and finds out how many more may begin."""

    topic: str
    """Where it is told that the state may have changed."""

    def __init__(self, client: ControlPlaneClient, orders: Orders, queue: str, claimer: str, circuit: SharedCircuit) -> None:
        self._store = client.async_store
        self._keepalive = client.keepalive
        self._claimer = claimer
        self._lease_s = orders.lease_s
        self._circuit = circuit
        self._breaker = circuit.breaker
        self._dict = breaker_of(queue)
        self._queue = queue
        self._probe: Hold | None = None
        self.topic = watch_topic(dict_topic(self._dict))

    async def look(self, running: int, *, may_claim: bool) -> None:
        """Tell the store what ended, and let the circuit see the state there; the right to try is taken only while nothing runs."""
        while not await self._looked(running, may_claim=may_claim):
            pass

    async def _looked(self, running: int, *, may_claim: bool) -> bool:
        """Look once; False if the state has changed meanwhile."""
        circuit = self._circuit
        has_failed = circuit.failures > 0
        failures, is_open = await self._exchange()
        circuit.told()
        if self._probe is not None and self._probe.lost:
            self._keepalive.drop(self._probe)
            self._probe = None
        if is_open:
            if has_failed and self._probe is not None:
                await self._begin_cooldown()
            await self._see_open(running, may_claim=may_claim)
            return True
        await self.leave()
        if failures is not None and json.decode(failures.value) >= self._breaker.failures:
            return await self._open(failures)
        circuit.saw("closed")
        return True

    async def _exchange(self) -> tuple[Entry | None, bool]:
        """The failures in a row, after those of this worker, and whether it is not closed."""
        circuit = self._circuit
        if circuit.has_succeeded:
            count = Change(FAILURES, value=Raw(json.encode(circuit.failures))) if circuit.failures else Change(FAILURES, "delete")
            written = await self._store.execute(Write(self._dict, [count, Change(OPEN, "delete")]))
            return (written[0].entry if circuit.failures else None), False
        if circuit.failures:
            changes = [Change(FAILURES, "increment", by=circuit.failures), Change(OPEN, "compare")]
            written = await self._store.execute(Write(self._dict, changes))
            return written[0].entry, written[1].entry is not None
        entries = {entry.key: entry for entry in (await self._store.execute(Read(self._dict, [FAILURES, OPEN]))).entries}
        return entries.get(FAILURES), OPEN in entries

    async def _open(self, failures: Entry) -> bool:
        """Open it for all; False if jobs ended, or another worker opened it, since these failures were counted."""
        unchanged = Change(FAILURES, "compare", expect="revision", revision=failures.revision)
        marked = Write(self._dict, [unchanged, Change(OPEN, value=Raw(b"true"), expect="absent")])
        cooldown = Acquire(self._dict, OPEN, self._claimer, new_id(), self._breaker.cooldown_s)
        try:
            _, acquired = await self._store.execute(Together([marked, cooldown]))
        except LeaseHeld as held:
            # Another worker tries, and a job that had begun before closed it meanwhile.
            await self._store.execute(marked)
            self._saw_open(held.expires_in_s)
            return True
        except Refused:
            return False
        _log.warning("worker %s opens the breaker of queue %r for %s", self._claimer, self._queue, seconds(self._breaker.cooldown_s))
        self._saw_open(acquired.ends_in_s)
        return True

    async def _see_open(self, running: int, *, may_claim: bool) -> None:
        if running:
            self._circuit.saw("open" if self._probe is None else "half-open")
            return
        if not may_claim:
            await self.leave()
            self._circuit.saw("open")
            return
        if self._probe is not None:
            self._circuit.saw("half-open")
            return
        name, started = LeaseName(self._dict, OPEN, new_id()), self._keepalive.now()
        acquired: Acquired = await self._store.execute(Acquire(self._dict, OPEN, self._claimer, name.lease_id, self._lease_s))
        if acquired.lease.lease_id != name.lease_id:
            self._saw_open(acquired.ends_in_s)
            return
        self._probe = Hold(name, self._lease_s, started, self._keepalive.now, label=f"the trial of the breaker of queue {self._queue!r}")
        self._keepalive.add(self._probe)
        self._circuit.saw("half-open")

    def _saw_open(self, ends_in_s: float | None) -> None:
        self._circuit.saw("open", None if ends_in_s is None else self._keepalive.now() + ends_in_s)

    async def _begin_cooldown(self) -> None:
        if (name := self._let_go()) is not None:
            await self._store.execute(Renew([name], self._breaker.cooldown_s))

    async def leave(self) -> None:
        """Give back the right to try, if this worker has it."""
        if (name := self._let_go()) is not None:
            await self._store.execute(Release([name]))

    def _let_go(self) -> LeaseName | None:
        """Renew the right to try no longer; returns it if this worker has it."""
        probe, self._probe = self._probe, None
        if probe is None or not isinstance(probe.name, LeaseName):
            return None
        self._keepalive.drop(probe)
        return probe.name
