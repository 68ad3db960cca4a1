"""A folder with an LMDB environment that threads, tasks and processes share."""

import os
import threading
import weakref
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import lmdb

from holdfast.clock import HOST, AnchoredClock, Clock, Host
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import StoreError
from holdfast.process.forks import call_in_child
from holdfast.stores import Guarantees
from holdfast.stores.files import Durability
from holdfast.stores.files.beside import sync_folder
from holdfast.stores.files.store import SharedFileStore
from holdfast.stores.group_commit import Job
from holdfast.stores.lmdb.anchor import note_file, read_anchor
from holdfast.stores.lmdb.environment import Environment, check_names, refuse_if_missing
from holdfast.stores.lmdb.failures import UNREADABLE, translate
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.lmdb.writer import Writer

R = TypeVar("R")

MAP_BYTES = 2**36
"""How large an environment may grow, unless told otherwise."""

_open_stores: "weakref.WeakSet[LmdbStore]" = weakref.WeakSet()
_beginning = threading.Lock()
"""Held while a store is opened again in a child."""


class LmdbStore(SharedFileStore):
    """A store in one LMDB environment.

    `durability="power"` survives a loss of power; `"process"` survives the death of every process, but a loss of power may then damage the
    environment, so all its processes should choose the same. `map_size` is how many bytes it may take; what is acknowledged, removed or
    pruned finds room even beyond.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "power",
        limits: Limits = Limits(),
        map_size: int = MAP_BYTES,
        clock: Clock | None = None,
        host: Host = HOST,
        create: bool = True,
    ) -> None:
        super().__init__(path, durability, limits, clock, host)
        if not create:
            refuse_if_missing(self.path)
        self.url: str = f"lmdb:///{quote(self.path)}?durability={durability}"
        version = ".".join(str(part) for part in lmdb.version())
        self.guarantees: Guarantees = Guarantees(durability, "processes", "the host's, since its boot", f"LMDB {version}")
        self.map_size = map_size
        self._open_folder()
        _open_stores.add(self)

    def _open_folder(self) -> None:
        is_new = not self._data.exists()
        self._make_folder()
        # The side file and the sockets stand in the folder, beside the data.
        self._open(self._data)
        if is_new and self.durability == "power":
            sync_folder(self.path)
            sync_folder(Path(self.path).parent)

    @property
    def _data(self) -> Path:
        return Path(self.path, "data.mdb")

    def _make_folder(self) -> None:
        check_names(self.path)
        try:
            Path(self.path).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            message = f"the folder {self.path} cannot be made: create it, or its parent, where you may write ({error})"
            raise StoreError(message) from error

    def _connect(self) -> None:
        """Open or create the environment."""
        try:
            self._environment = Environment.share(self.path, self.durability, self.map_size)
        except UNREADABLE as error:
            raise translate(error, self.path) from error
        try:
            anchored = self._anchored_clock()
            self.clock: Clock = self._given_clock or anchored
        except BaseException as error:
            self._environment.release()
            if isinstance(error, UNREADABLE):
                raise translate(error, self.path) from error
            raise
        self._writer = Writer(self._environment, self.clock, self.map_size)

    def _anchored_clock(self) -> AnchoredClock:
        environment = self._environment
        with environment.gate.place(), environment.lmdb.begin(write=True) as txn:
            note_file(txn, environment.tables, self._data)
            anchor, is_new_boot = read_anchor(txn, environment.tables, self._host)
            if is_new_boot:
                self._refuse_two_kernels()
        return AnchoredClock(anchor, self._host)

    def close(self) -> None:
        _open_stores.discard(self)
        super().close()

    def _release(self) -> None:
        self._environment.release()

    def _read(self, command: Command[R]) -> R:
        """Answer from what is committed, without a turn."""
        self._refuse_if_closed()
        if self._environment.is_broken:
            return self._committer.execute(command)
        try:
            return self._read_once(command)
        except (lmdb.MapResizedError, lmdb.ReadersFullError, lmdb.PanicError):
            # The map is larger, the places of readers are taken, or a commit failed: with the turn that can be mended.
            return self._committer.execute(command)
        except UNREADABLE as error:
            raise translate(error, self.path) from error

    def _read_once(self, command: Command[R]) -> R:
        environment = self._environment
        with environment.gate.place():
            self._refuse_if_closed()
            with environment.lmdb.begin() as txn:
                tx = LmdbTransaction(txn, environment.tables, self.clock)
                try:
                    environment.refuse_if_moved(txn)
                    return command.write(tx, command.check(tx))
                finally:
                    tx.end()
                    del txn

    def _transact(self, jobs: list[Job]) -> dict[str, int]:
        """Run the jobs in one transaction; if that fails for any reason but a refusal, each in one of its own."""
        hints = self._writer.transact(jobs)
        if hints is None and len(jobs) > 1:
            left = [job for job in jobs if not job.is_done]  # One that took too long is.
            return {topic: count for job in left for topic, count in (self._writer.transact([job]) or {}).items()}
        return hints or {}

    def leave_to_parent(self) -> None:
        """In a forked child: put away what is the parent's. Most children never use the store, so nothing is opened yet."""
        self.waiters.reset()
        self._is_inherited = True

    def _begin_in_child(self) -> None:
        with _beginning:
            if self._is_inherited:
                self._open_folder()
                self._is_inherited = False


def _leave_all_to_parent() -> None:
    for store in list(_open_stores):
        store.leave_to_parent()


os.register_at_fork(before=_beginning.acquire, after_in_parent=_beginning.release, after_in_child=_beginning.release)
call_in_child(_leave_all_to_parent)
