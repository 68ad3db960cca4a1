"""Where localqueue's stores keep what they keep: any store that Holdfast can open, opened at the first use."""

import os
from os import PathLike
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from holdfast.client import ControlPlaneClient, client_for
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.surfaces.localqueue.legacy_files import import_lmdb, refuse_legacy

LOCAL = ("memory", "sqlite", "lmdb")
"""Stores of one host."""

Target = str | ControlPlaneClient | None


class StoreLockedError(StoreUnavailable, RuntimeError):
    """LMDB reports that another process has locked the store."""

    kind: ClassVar[str] = "store"

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"the {self.kind} {path} is locked by another process: stop that one, or choose another path")
        self.path: str = str(path)


class StoreLocation:
    """A store by URL, or a client of one; without either, that of `HOLDFAST_URL`, else a SQLite file in the user's data folder.

    It is opened at the first use.
    """

    locked: ClassVar[type[Exception]] = StoreUnavailable
    """What is raised where the store is locked by another process."""

    def __init__(self, target: Target = None, *, path: Path | None = None) -> None:
        if not isinstance(target, str | ControlPlaneClient | None):
            raise TypeError(f"a store is named by its URL or a ControlPlaneClient, not by {target!r}")
        self._client = target if isinstance(target, ControlPlaneClient) else None
        self._url = target if isinstance(target, str) else None
        self._is_shared = target is None
        self._path = path

    @property
    def is_remote(self) -> bool:
        """Whether the store is beyond a network, as far as its URL says."""
        url = os.environ.get("HOLDFAST_URL") if self._is_shared else self._url
        url = url if self._client is None else self._client.url
        return url is not None and url.partition(":")[0] not in LOCAL

    @property
    def client(self) -> ControlPlaneClient:
        """What reaches the store; the first time it is opened, and a file of localqueue's own is refused."""
        if self._is_shared:
            return client_for(self._url)
        if self._client is None:
            self._client = self._open()
        return self._client

    def close(self) -> None:
        """Give back what the store holds; a later use raises `Closed`. What others share stays open."""
        if not self._is_shared:
            self.client.close()

    def prepare(self) -> None:
        """Refuse a path that cannot be this store, and make the folder it is in: localqueue's constructors do both."""
        if self._path is None:
            return
        if self._url is not None and self._url.startswith("lmdb"):
            import_lmdb()
            if self._path.is_file():
                raise StoreError(f"{self._path} is a file, and an LMDB store is a folder: choose another path")
        elif self._path.is_dir():
            raise StoreError(f"{self._path} is a folder, and a SQLite store is a file: choose another path")
        refuse_legacy(self._path)
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def _open(self) -> ControlPlaneClient:
        self.prepare()
        client = ControlPlaneClient(self._url)
        try:
            client.store  # noqa: B018 - opens it
        except StoreUnavailable as error:
            if self._path is None or self.locked is StoreUnavailable:
                raise
            raise self.locked(self._path) from error
        return client


class InSqliteFile(StoreLocation):
    """A SQLite file, made at the first use."""

    def __init__(self, path: str | PathLike[str], timeout: float = 15.0) -> None:
        super().__init__(sqlite_url(path, timeout), path=Path(path).absolute())
        self.prepare()


class InLmdbFolder(StoreLocation):
    """An LMDB folder, made at the first use. It grows by itself, so `map_size` is only checked."""

    def __init__(self, path: str | PathLike[str], *, map_size: int = 10_000_000) -> None:
        if map_size < 1:
            raise ValueError(f"map_size must be positive, and is {map_size}")
        super().__init__(f"lmdb:///{quote(str(Path(path).absolute()))}", path=Path(path).absolute())
        self.prepare()


class InMemory(StoreLocation):
    """The memory of this process, a new store each time."""

    def __init__(self) -> None:
        super().__init__("memory://")


def sqlite_url(path: str | PathLike[str], timeout: float = 15.0) -> str:
    """The URL of a SQLite file. Writers take turns in order of arrival, so `timeout` is only checked."""
    if not timeout >= 0:
        raise ValueError(f"timeout cannot be negative, and is {timeout}")
    return f"sqlite:///{quote(str(Path(path).absolute()))}"
