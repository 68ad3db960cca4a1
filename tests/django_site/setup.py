"""Sets Django up, once in a process."""

import os
from functools import cache

import django


@cache
def set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_site.settings")
    django.setup()
