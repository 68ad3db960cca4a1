"""`celery.result`."""

from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from holdfast.surfaces.celery.group_results import GroupResult
from holdfast.surfaces.celery.refusals import refused
from holdfast.surfaces.celery.results import AsyncResult, EagerResult

REFUSED = ("ResultSet", "result_from_tuple")


def allow_join_result() -> AbstractContextManager[None]:
    """A task may always wait for another one; the worker needs a free thread for that."""
    return nullcontext()


def __getattr__(name: str) -> NoReturn:
    if name not in REFUSED:
        raise AttributeError(f"celery.result has no {name} here")
    raise refused("celery.result", name, __all__)


__all__ = ["AsyncResult", "EagerResult", "GroupResult", "allow_join_result"]
