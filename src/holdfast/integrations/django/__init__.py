"""Holdfast in Django: a backend of `django.tasks`, its worker and its admin pages.

TASKS = {"default": {"BACKEND": "holdfast.integrations.django.HoldfastBackend", "OPTIONS": {"url": "database:default"}}}
"""

from holdfast.errors import MissingExtra

try:
    import django.core.exceptions  # noqa: F401 - only whether it is there
except ImportError as _error:
    raise MissingExtra("holdfast.integrations.django needs Django: pip install 'holdfast[django]'") from _error

from holdfast.integrations.django.backend import HoldfastBackend, HoldfastTask
from holdfast.integrations.django.declaring import task

__all__ = ["HoldfastBackend", "HoldfastTask", "task"]
