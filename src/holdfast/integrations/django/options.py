"""The OPTIONS of a backend, checked."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from holdfast.integrations.django.compat import InvalidTaskBackend

DATABASE = "database:"
WEEK_S = 604_800.0

Outside = Literal["now", "on_commit"]


class TaskOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be said about a single task, by its path, in `OPTIONS["tasks"]`."""

    max_attempts: int | None = None
    if_present: Literal["keep", "update", "reject", "buffer"] | None = None
    start_within_s: float | None = None
    soft_limit_s: float | None = None
    hard_limit_s: float | None = None


class ScheduleOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule of a task, in `OPTIONS["schedules"]` under its name."""

    task: str
    """The path of the task."""
    rule: str
    """A cron expression, or an interval as in `every 300 s`."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    tz: str = "UTC"
    overlap: Literal["skip", "queue", "replace", "allow"] = "skip"


class BackendOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What OPTIONS may have."""

    url: str = "database:default"
    """A store, or `database:ALIAS` for the database of Django: then a job is part of the transaction in which it is enqueued."""
    max_attempts: int = 3
    keep_result_s: float = WEEK_S
    """How long the result of a job that has ended can be read."""
    outside: Outside | None = None
    """When a job is put into a store that is not a database of Django's: at once, or after the commit. By default at once."""
    using: str = "default"
    """The database whose commit `outside="on_commit"` waits for."""
    modules: tuple[str, ...] = ()
    """Modules with tasks that a worker imports, besides the modules `tasks` of the installed apps."""
    tasks: dict[str, TaskOptions] = {}
    schedules: dict[str, ScheduleOptions] = {}

    @property
    def database(self) -> str | None:
        """The alias of Django's database in which the store is, if it is in one."""
        return self.url.removeprefix(DATABASE) if self.url.startswith(DATABASE) else None


def read_options(alias: str, given: dict[str, Any]) -> BackendOptions:
    """Read them; raises what says which is wrong."""
    try:
        return msgspec.convert(given, BackendOptions)
    except msgspec.ValidationError as error:
        known = ", ".join(BackendOptions.__struct_fields__)
        raise InvalidTaskBackend(f"TASKS[{alias!r}]['OPTIONS']: {error}; the options are {known}") from error
