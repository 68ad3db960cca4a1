"""`task_routes`: the queue of a task by its name."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from holdfast.surfaces.celery.exceptions import ImproperlyConfigured
from holdfast.surfaces.celery.refusals import refuse_unknown

Pattern = str | re.Pattern[str]

PAIR: Final = 2


def routes_of(given: Any) -> list[tuple[Pattern, Any]]:
    """The routes in order, each a name or a pattern, and where it leads."""
    if isinstance(given, Mapping):
        return [(_pattern(key), route) for key, route in given.items()]
    parts = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if isinstance(given, tuple) and len(parts) == PAIR and isinstance(parts[0], str | re.Pattern):
        return [(parts[0], parts[1])]
    if any(isinstance(part, str) or not isinstance(part, Iterable) for part in parts):
        raise ImproperlyConfigured(
            f"task_routes={given!r} is not supported; give a mapping of names or patterns to queues, {{'shop.*': {{'queue': 'shop'}}}}, "
            "or a list of such pairs; a function that routes is none of them: give queue= to apply_async or @app.task"
        )
    return [route for part in parts for route in routes_of(part)]


def _pattern(key: Any) -> Pattern:
    if not isinstance(key, str | re.Pattern):
        raise ImproperlyConfigured(f"task_routes: {key!r} is neither the name of a task nor a pattern")
    return key


def route_of(given: Any, name: str) -> str | None:
    """The queue of a task; None if no route is for it. A route of its own name comes before the patterns."""
    routes = routes_of(given)
    exact = [route for route in routes if route[0] == name]
    for pattern, route in exact + routes:
        if fnmatchcase(name, pattern) if isinstance(pattern, str) else pattern.match(name):
            return queue_in(pattern, route)
    return None


def queue_in(pattern: Pattern, route: Any) -> str | None:
    """The queue to which a route leads."""
    if isinstance(route, str):
        return route
    refuse_unknown(f"task_routes[{pattern!r}]", route, ("queue",))
    found: str | None = route.get("queue")
    return found
