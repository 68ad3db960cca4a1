"""The store in an LMDB environment, which needs the extra `lmdb`."""

from holdfast.errors import MissingExtra

try:
    from holdfast.stores.lmdb.store import LmdbStore
except ModuleNotFoundError as _error:
    if _error.name != "lmdb":
        raise
    message = "lmdb:// needs the package 'lmdb': pip install 'holdfast[lmdb]'"
    raise MissingExtra(message) from _error

__all__ = ["LmdbStore"]
