"""The API of Celery on the stores of Holdfast: change the imports, and tasks, calls, results and periodic tasks stay as they are.

What is not here is refused with the remedy; nothing is ignored. Messages of Celery's brokers are not read.
"""

from typing import NoReturn

from holdfast.ids import new_id as uuid
from holdfast.surfaces.celery.app import Celery, current_app, shared_task
from holdfast.surfaces.celery.canvas import chain, chord, group
from holdfast.surfaces.celery.group_results import GroupResult
from holdfast.surfaces.celery.refusals import refused
from holdfast.surfaces.celery.results import AsyncResult, EagerResult
from holdfast.surfaces.celery.running import current_task
from holdfast.surfaces.celery.signatures import Signature, signature
from holdfast.surfaces.celery.task import Task

REFUSED = ("chunks", "maybe_signature", "subtask", "xmap", "xstarmap")


def __getattr__(name: str) -> NoReturn:
    if name not in REFUSED:
        raise AttributeError(f"celery has no {name} here")
    raise refused("celery", name, __all__)


__all__ = [
    "AsyncResult",
    "Celery",
    "EagerResult",
    "GroupResult",
    "Signature",
    "Task",
    "chain",
    "chord",
    "current_app",
    "current_task",
    "group",
    "shared_task",
    "signature",
    "uuid",
]
