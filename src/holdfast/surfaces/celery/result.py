"""`celery.result`."""

from holdfast.surfaces.celery.group_results import GroupResult
from holdfast.surfaces.celery.results import AsyncResult, EagerResult

__all__ = ["AsyncResult", "EagerResult", "GroupResult"]
