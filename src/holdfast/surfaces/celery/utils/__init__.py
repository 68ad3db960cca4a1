"""`celery.utils`."""

from holdfast.ids import new_id as uuid

__all__ = ["uuid"]
