"""What is kept of a job for its result: one entry per job in the dict `<queue>-django`, as long as `keep_result_s`."""

from datetime import UTC, datetime
from traceback import format_exception
from typing import Any

from django.utils import timezone
from msgspec import Raw, Struct, json

from holdfast.codec import JSON, encode_key
from holdfast.commands import Browse, Browsed, Change, Read, Together, Write
from holdfast.integrations.django.compat import Task, TaskError, TaskResult, TaskResultStatus
from holdfast.records import Ending, Message
from holdfast.workers.handlers.outcomes import Bury

TRACE_MOST = 16_384
"""How many characters of a traceback are kept: the last ones."""

KEPT_ERRORS = 10


class KeptError(Struct, frozen=True):
    """An exception that ended an attempt."""

    path: str
    traceback: str


class Record(Struct, frozen=True, omit_defaults=True):
    """What a worker knew of a job when it last ended an attempt of it; moments are seconds since 1970."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    enqueued_at: float
    started_at: float
    attempted_at: float
    finished_at: float | None = None
    workers: tuple[str, ...] = ()
    errors: tuple[KeptError, ...] = ()
    is_done: bool = False
    result: Any = None


def records_of(queue: str) -> str:
    """The dict of a queue's records."""
    return f"{queue}-django"


def kept_error(error: BaseException) -> KeptError:
    """The exception as it is kept. Never with local variables, which may be secret. A `Bury` is of the class of what it was raised from."""
    kind = type(error.__cause__ if isinstance(error, Bury) and error.__cause__ is not None else error)
    return KeptError(f"{kind.__module__}.{kind.__qualname__}", "".join(format_exception(error))[-TRACE_MOST:])


def write_of(queue: str, id: str, record: Record, keep_s: float) -> Write:
    """The command that keeps a record."""
    change = Change(encode_key(id), "put", value=Raw(json.encode(record)), ttl_s=keep_s)
    return Write(records_of(queue), [change])


def look_at(queue: str, id: str) -> Together:
    """The command that reads what is known of a job."""
    return Together([Browse(queue, ids=[id]), Read(records_of(queue), [encode_key(id)])])


def read_look(answers: list[Any]) -> tuple[Message | None, int, Record | None]:
    """The message if there is one, the store's time, and the record if there is one."""
    browsed: Browsed = answers[0]
    entries = answers[1].entries
    record = json.decode(entries[0].value, type=Record) if entries else None
    living = browsed.living
    return (living[0] if living else None), browsed.now, record


def status_of(message: Message | None, now: int, record: Record | None) -> TaskResultStatus:
    """Django's word for the state of a job."""
    if message is None:
        return TaskResultStatus.SUCCESSFUL if record is not None and record.is_done else TaskResultStatus.FAILED
    if message.state == "dead":
        return TaskResultStatus.FAILED
    return TaskResultStatus.RUNNING if message.held_at(now) else TaskResultStatus.READY


def metadata_of(task: Task, result: TaskResult) -> dict[str, Any]:
    """What a message says beside the arguments: which task it is of, and the moments that its caller knows."""
    assert result.enqueued_at is not None  # noqa: S101 - it was just made
    said = {"task": task.module_path, "enqueued_at": result.enqueued_at.timestamp()}
    return said if task.run_after is None else {**said, "run_after": task.run_after.timestamp()}


def said_by(message: Message) -> dict[str, Any]:
    """The metadata of a message."""
    found: dict[str, Any] = {} if message.metadata is None else JSON.decode(message.metadata)
    return found


def enqueued_at(message: Message, offset_us: int) -> float:
    """When it was enqueued, in seconds since 1970; by the store's clock if its metadata does not say so."""
    found: float = said_by(message).get("enqueued_at", (message.created_at + offset_us) / 1e6)
    return found


def workers_of(message: Message) -> list[str]:
    """Who had the job, attempt by attempt."""
    return [*(ending.holder for ending in message.history), *([message.holder] if message.state == "leased" else [])]


def errors_of(message: Message | None, record: Record | None) -> list[TaskError]:
    """What the attempts ended with. Of a worker that died, or gave a job up, only the store knows."""
    kept = () if record is None else record.errors
    later = () if message is None else message.history[0 if record is None else len(record.workers) :]
    told = [_told_by_store(ending) for ending in later if ending.how in ("failed", "expired", "buried")]
    return [*(TaskError(exception_class_path=one.path, traceback=one.traceback) for one in kept), *told]


def _told_by_store(ending: Ending) -> TaskError:
    said = ending.error or ("the worker died, or lost the store, while it ran the job" if ending.how == "expired" else "it failed")
    return TaskError(exception_class_path="holdfast.errors.JobFailed", traceback=f"{ending.holder}: {said}")


def moment(seconds: float | None) -> datetime | None:
    """A moment as Django has them: aware if USE_TZ is set."""
    if seconds is None:
        return None
    aware = datetime.fromtimestamp(seconds, UTC)
    return aware if timezone.is_aware(timezone.now()) else timezone.make_naive(aware)


def fill_in(result: TaskResult, **fields: Any) -> TaskResult:
    """Set fields of a result, which is frozen for its users."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)
    return result
