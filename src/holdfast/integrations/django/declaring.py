"""The decorator that makes a function a task."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from holdfast.integrations.django import compat
from holdfast.integrations.django.backend import HoldfastTask, known

OWN: Final = {field.name for field in fields(HoldfastTask)} - {field.name for field in fields(compat.Task)}


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a task, as Django's `task` does; with the options of `HoldfastTask`, which Django 6.0 itself does not take."""
    own = {name: options.pop(name) for name in OWN & options.keys()}
    declare = compat.task(**options)

    def declared(function: Callable[..., Any]) -> Any:
        plain = declare(function)
        if not own:
            return plain
        made = known[plain.module_path] = replace(plain, **own)
        return made

    return declared if function is None else declared(function)
