"""Decorators that make a function a worker, and the relay of what commits left to do; needs the extra `retry`."""

from holdfast.errors import MissingExtra

try:
    from holdfast.surfaces.localqueue._async.relay import relay_commits as relay_commits_async
    from holdfast.surfaces.localqueue._async.worker_calls import AsyncWorkerCalls, persistent_async_worker
    from holdfast.surfaces.localqueue._sync.relay import relay_commits
    from holdfast.surfaces.localqueue._sync.worker_calls import WorkerCalls, persistent_worker
except ModuleNotFoundError as _missing:
    if _missing.name != "tenacity":
        raise
    raise MissingExtra(
        "the workers of holdfast.surfaces.localqueue need the package 'tenacity': pip install 'holdfast[retry]'"
    ) from _missing

__all__ = ["AsyncWorkerCalls", "WorkerCalls", "persistent_async_worker", "persistent_worker", "relay_commits", "relay_commits_async"]
