"""`celery.result`."""

from holdfast.surfaces.celery.results import AsyncResult, EagerResult

__all__ = ["AsyncResult", "EagerResult"]
