"""Where localqueue's stores keep what they keep: any store that Holdfast can open, opened at the first use."""

import os
import sqlite3
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from holdfast.client import ControlPlaneClient, client_for
from holdfast.errors import MissingExtra, StoreError, StoreUnavailable

TABLES = ("queue_messages", "retry_records", "idempotency_records", "queue_results")
"""What tells a file of localqueue."""

LOCAL = ("memory", "sqlite", "lmdb")
"""Stores of one host."""

KEY_BYTES = 200
"""A longer key is kept under its hash."""

Target = str | ControlPlaneClient | None


class LmdbMissing(MissingExtra, RuntimeError):  # noqa: N818 - what happened, as in `holdfast.errors`
    """The package that an LMDB folder needs is not installed; localqueue raises a RuntimeError."""


class Place:
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
        """Give back what the store holds; a later use raises `Closed`. What other places share stays open."""
        if not self._is_shared:
            self.client.close()

    def prepare(self) -> None:
        """Refuse a path that cannot be this store, and make the folder it is in: localqueue's constructors do both."""
        if self._path is None:
            return
        if self._url is not None and self._url.startswith("lmdb"):
            _import_lmdb()
            if self._path.is_file():
                raise StoreError(f"{self._path} is a file, and an LMDB store is a folder: choose another path")
        elif self._path.is_dir():
            raise StoreError(f"{self._path} is a folder, and a SQLite store is a file: choose another path")
        refuse_original(self._path)
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


def sqlite_url(path: str | PathLike[str], timeout: float = 15.0) -> str:
    """The URL of a SQLite file. Writers take turns in order of arrival, so `timeout` is only checked."""
    if not timeout >= 0:
        raise ValueError(f"timeout cannot be negative, and is {timeout}")
    return f"sqlite:///{quote(str(Path(path).absolute()))}"


def lmdb_url(path: str | PathLike[str], map_size: int) -> str:
    """The URL of an LMDB folder. It grows by itself, so `map_size` is only checked."""
    if map_size < 1:
        raise ValueError(f"map_size must be positive, and is {map_size}")
    return f"lmdb:///{quote(str(Path(path).absolute()))}"


def refuse_original(path: Path) -> None:
    """Refuse a file that localqueue itself wrote: it has no tokens, no clock and no events."""
    if (path.is_file() and _is_original_file(path)) or (path.is_dir() and _is_original_folder(path)):
        raise StoreError(
            f"{path} was written by localqueue: copy what is in it with `holdfast import localqueue {path} --to URL`, "
            "and open that, or choose another path; the file was not changed"
        )


def _is_original_file(path: Path) -> bool:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        names = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.Error:
        return False  # No SQLite file, or a damaged one: opening it says what is wrong.
    finally:
        connection.close()
    return "holdfast_meta" not in names and any(table in names for table in TABLES)


def _is_original_folder(path: Path) -> bool:
    if not (path / "data.mdb").is_file():
        return False
    lmdb = _import_lmdb()
    try:
        environment = lmdb.open(str(path), readonly=True, lock=False, create=False)
    except lmdb.Error:
        return False  # Open in this process, so ours; or damaged, which opening it says.
    with environment, environment.begin() as txn:
        return bool(txn.stat()["entries"]) and txn.get(b"about") is None


def _import_lmdb() -> Any:
    try:
        import lmdb  # noqa: PLC0415 - the extra is needed only here
    except ModuleNotFoundError as error:
        raise LmdbMissing("an LMDB store needs the package 'lmdb': pip install 'holdfast[lmdb]'") from error
    return lmdb


def fitting(key: str) -> str:
    """The key, or where a dict could not hold it, its hash."""
    return key if len(key.encode()) <= KEY_BYTES else f"sha256:{sha256(key.encode()).hexdigest()}"


def microseconds(moment: float) -> int:
    """A Unix timestamp as a whole number."""
    return max(0, round(moment * 1_000_000))
