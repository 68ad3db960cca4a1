"""The store in an LMDB environment, which needs the extra `lmdb`."""

from holdfast.errors import MissingExtra

try:
    from holdfast.stores.lmdb.store import LmdbStore
except ModuleNotFoundError as error:
    if error.name != "lmdb":
        raise
    message = "lmdb:// needs the package 'lmdb': pip install 'holdfast[lmdb]'"
    raise MissingExtra(message) from error

__all__ = ["LmdbStore"]
