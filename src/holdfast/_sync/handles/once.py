# Generated from src/holdfast/_async/handles/once.py by tools/unasync.py; do not edit.
"""Once: a ledger of effects that must not happen twice."""

import math
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, TypeVar, Unpack

from holdfast._sync.flows.once import OnceRun, reconcile, record
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_duration, check_name, encode_key
from holdfast.commands import Change
from holdfast.holding.hold import this_process
from holdfast.workers.once_record import LedgerEntry, OnceRecord

R = TypeVar("R")


@show_options
class Once(StoreHandle):
    """A ledger: `run` calls a function unless it was done under the same key, and then returns the stored result.

    What is promised: of all who run the same key, one at a time calls the function, and once its result is stored it is not called again
    for `keep_s`. What is not: a function cannot be undone. If its caller dies, the ledger cannot know whether the effect happened, so it
    says `ExecutionUnknown` to everyone until a person looks, and calls `resolve` or `forget`. A function that raises says that nothing
    happened, and may be called again.
    """

    aio: ClassVar[Twin] = Twin()

    name: str

    def __init__(
        self,
        name: str = "once",
        *,
        holder: str | None = None,
        lease_s: float = 60.0,
        keep_s: float | None = None,
        codec: Codec = JSON,
        **where: Unpack[Where],
    ) -> None:
        self.name = check_name(name, "ledger")
        self._holder = this_process() if holder is None else check_name(holder, "holder")
        self._lease_s = check_duration(lease_s, "lease_s", zero=False)
        self._keep_s = None if keep_s is None else check_duration(keep_s, "keep_s", zero=False)
        super().__init__(codec, **where)

    def run(self, key: Hashable, function: Callable[[], R], *, timeout_s: float | None = None) -> R:
        """Call the function, or return the result of the one time it was called.

        While another caller runs it, waits; with `timeout_s` raises `ExecutionRunning` after that long,
        0 asks once. Raises `ExecutionUnknown` if the caller who ran it died, and `ResultNotKept` if it was done and its result could not be
        kept. The lease is renewed meanwhile; if it is lost, an async function is cancelled and `LeaseLost` is raised.
        """
        wait_s = math.inf if timeout_s is None else check_duration(timeout_s, "timeout_s", allow_inf=True)
        run = OnceRun(self._reach(), self.name, encode_key(key), self._holder, self._lease_s)
        result: R = run.run(function, self._codec, timeout_s=wait_s, keep_s=self._keep_s)
        return result

    def get(self, key: Hashable) -> OnceRecord | None:
        """What is known under a key, None if nothing is."""
        return record(self._reach().store, self.name, encode_key(key), self._codec)

    def resolve(self, key: Hashable, result: Any = None) -> bool:
        """Say that it happened, with this result; False if nothing is known under the key. Raises `ExecutionRunning`."""
        done = LedgerEntry("done", "resolved", self._holder, self._codec.encode(result))
        change = Change(encode_key(key), value=done.raw, ttl_s=self._keep_s)
        return reconcile(self._reach().store, self.name, change.key, change)

    def forget(self, key: Hashable) -> bool:
        """Say that it did not happen, or may happen again; False if nothing is known under the key. Raises `ExecutionRunning`."""
        return reconcile(self._reach().store, self.name, encode_key(key), Change(encode_key(key), "delete"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def once(
    key: Hashable,
    function: Callable[[], R],
    *,
    timeout_s: float | None = None,
    client: ControlPlaneClient | None = None,
    base_url: str | None = None,
) -> R:
    """Call the function unless it was done under this key before; see `Once`, of which this uses the ledger named `once`."""
    return Once(client=client, base_url=base_url).run(key, function, timeout_s=timeout_s)
