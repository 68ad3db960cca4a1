"""The settings of an app: `app.conf`."""

from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from holdfast.surfaces.celery.rate_limits import rate_of
from holdfast.surfaces.celery.refusals import JSON_ONLY, only, refuse_unknown, refused
from holdfast.surfaces.celery.routes import routes_of

DEFAULTS: dict[str, Any] = {
    "broker_url": None,
    "result_backend": None,
    "task_serializer": "json",
    "result_serializer": "json",
    "accept_content": ["json"],
    "result_accept_content": ["json"],
    "timezone": "UTC",
    "enable_utc": True,
    "result_expires": timedelta(days=1),
    "task_default_queue": "celery",
    "task_default_priority": 0,
    "task_routes": {},
    "task_always_eager": False,
    "task_eager_propagates": False,
    "task_ignore_result": False,
    "task_default_rate_limit": None,
    "task_acks_late": True,
    "task_time_limit": None,
    "task_soft_time_limit": None,
    "beat_schedule": {},
    "imports": (),
    "include": (),
    "worker_concurrency": 4,
}


class Config:
    """Settings by their names, as attributes and as items; one that is not supported is refused."""

    def __init__(self, **given: Any) -> None:
        self.__dict__["_set"] = {}
        self.update(given)

    def update(self, *others: Mapping[str, Any], **given: Any) -> None:
        """Set several."""
        for name, value in {**{key: one for other in others for key, one in other.items()}, **given}.items():
            self[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> Any:
        if name not in DEFAULTS:
            raise refused("app.conf", name, DEFAULTS)
        return self.__dict__["_set"].get(name, DEFAULTS[name])

    def __setitem__(self, name: str, value: Any) -> None:
        refuse_unknown("app.conf", {name: value}, DEFAULTS)
        match name:
            case "task_serializer" | "result_serializer":
                only("app.conf", name, value, ["json"], JSON_ONLY)
            case "accept_content" | "result_accept_content":
                for one in value or ():
                    only("app.conf", name, one, ["json", "application/json"], JSON_ONLY)
            case "task_routes":
                routes_of(value)
            case "task_default_rate_limit":
                rate_of(value)
            case "task_acks_late":
                only("app.conf", name, value, [True], "a job is always acknowledged after it ran: remove it")
        self.__dict__["_set"][name] = value


def settings_of(source: Any, namespace: str = "") -> dict[str, Any]:
    """The settings of a module, an object or a mapping; with a namespace those whose name begins with it, as in `CELERY_TIMEZONE`."""
    if isinstance(source, str):
        source = _imported(source)
    found = dict(source) if isinstance(source, Mapping) else {name: getattr(source, name) for name in dir(source)}
    if namespace:
        prefix = f"{namespace}_"
        return {name.removeprefix(prefix).lower(): value for name, value in found.items() if name.startswith(prefix)}
    return {name: value for name, value in found.items() if not name.startswith("_") and not _is_code(value)}


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def _is_code(value: Any) -> bool:
    return isinstance(value, type) or callable(value) or type(value).__name__ == "module"


def seconds(given: float | timedelta | None) -> float | None:
    """A time span in seconds."""
    return given.total_seconds() if isinstance(given, timedelta) else given
