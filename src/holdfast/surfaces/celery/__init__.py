"""The API of Celery on the stores of Holdfast: change the imports, and tasks, calls, results and periodic tasks stay as they are.

What is not here is refused with the remedy; nothing is ignored. Messages of Celery's brokers are not read.
"""

from holdfast.surfaces.celery.app import Celery, current_app, shared_task
from holdfast.surfaces.celery.canvas import chain, chord, group
from holdfast.surfaces.celery.group_results import GroupResult
from holdfast.surfaces.celery.results import AsyncResult, EagerResult
from holdfast.surfaces.celery.signatures import Signature, signature
from holdfast.surfaces.celery.task import Task

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
    "group",
    "shared_task",
    "signature",
]
