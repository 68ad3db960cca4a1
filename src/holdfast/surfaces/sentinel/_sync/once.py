# Generated from src/holdfast/surfaces/sentinel/_async/once.py by tools/unasync.py; do not edit.
"""Doing something once, as sentinel's later releases have it, on the ledger that workers use."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast._sync.flows.once import OnceRun
from holdfast._sync.handles.once import Once
from holdfast.codec import JSON, encode_key
from holdfast.errors import ExecutionRunning, ExecutionUnknown, ResultNotKept
from holdfast.holding.hold import this_process
from holdfast.holding.keepalive import Keepalive
from holdfast.surfaces.sentinel._sync.calls import borrowed
from holdfast.surfaces.sentinel.connections import Lent, OnDemand, opener
from holdfast.surfaces.sentinel.results import OnceResult, seconds
from holdfast.workers.once_record import OnceRecord


class Sentinel:
    """Does things once, each under a key of a namespace, on connections that `get_conn` makes.

    A connection is closed after each call unless `owns_connection` is false; while a function runs, another like it keeps its key.
    """

    def __init__(
        self,
        get_conn: "Callable[[], Any]",
        default_ttl_ms: float = 3_000,
        namespace: str | None = None,
        owns_connection: bool = True,  # noqa: FBT001, FBT002 - as documented
    ) -> None:
        self.reconcile: Reconciliation = Reconciliation(self)
        self._get_conn = get_conn
        self._ttl_ms = default_ttl_ms
        self._ledger = "sentinel" if namespace is None else f"sentinel:{namespace}"
        self._owns_connection = owns_connection

    def once(
        self,
        key: str,
        fn: Callable[..., Any],
        ttl_ms: float | None = None,
        hard_ttl_ms: float | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> OnceResult:
        """Call the function unless it was done under this key, and return what became of it; its exception is in the answer.

        While it runs its key is kept for `ttl_ms` at a time, and for `hard_ttl_ms` at most.
        """
        calls = list[str]()

        def called() -> Any:
            calls.append(key)
            return fn(**(kwargs or {}))

        lease_s, max_hold_s = seconds(self._ttl_ms if ttl_ms is None else ttl_ms), None if hard_ttl_ms is None else hard_ttl_ms / 1000
        run: OnceRun | None = None
        try:
            with self.lent() as client:
                run = OnceRun(client, self._ledger, encode_key(key), this_process(), lease_s, max_hold_s=max_hold_s)
                response = run.run(called, JSON, timeout_s=0.0, keep_s=None)
        except ExecutionRunning:
            return OnceResult(success=False, status="executing", execution_alive=True)
        except ExecutionUnknown:
            return OnceResult(success=False, status="uncertain", uncertain=True)
        except ResultNotKept as error:
            if calls:  # Of another ledger, inside the function.
                return OnceResult(success=False, status="failed", exception=error)
            return OnceResult(success=True, status="completed", cached=True, exception=error)
        except Exception as error:
            if not calls:
                raise
            return OnceResult(success=False, status="failed", exception=error)
        except BaseException:
            # Cancelled or interrupted. Its own connection may be of no use any more.
            if run is not None and not calls:
                with self.lent() as client:
                    run.take_back(client.store)
            raise
        return OnceResult(success=True, status="completed", response=response, cached=not calls)

    @contextmanager
    def lent(self) -> Iterator[Lent]:
        """A client on a connection of the caller's making."""
        conn = self._get_conn()
        heartbeats = OnDemand(opener(conn, None))
        keepalive = Keepalive(heartbeats)
        try:
            with borrowed(conn) as store:
                yield Lent(store, keepalive)
        finally:
            keepalive.close(wait=False)
            if self._owns_connection:
                conn.close()

    @contextmanager
    def ledger(self) -> Iterator[Once]:
        """The ledger of the namespace."""
        with self.lent() as client:
            yield Once(self._ledger, client=client)


class Reconciliation:
    """For a person who has looked whether something happened; each raises `ExecutionRunning` while it is being executed."""

    def __init__(self, sentinel: Sentinel) -> None:
        self._sentinel = sentinel

    def reconcile(self, key: str) -> OnceRecord | None:
        """What is known under a key, None if nothing is."""
        with self._sentinel.ledger() as ledger:
            return ledger.get(key)

    def force_complete(self, key: str, response: Any = None) -> bool:
        """Say that it happened; False if nothing is known under the key."""
        with self._sentinel.ledger() as ledger:
            return ledger.resolve(key, response)

    def reset(self, key: str) -> bool:
        """Say that it did not happen, and may; False if nothing is known under the key."""
        with self._sentinel.ledger() as ledger:
            return ledger.forget(key)
