"""What is stored of a durable job: a head, one row for each step, timers and signals."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Literal

from msgspec import Raw, Struct, json

from holdfast.codec import check_name, encode_key, key_prefix
from holdfast.codec.limits import DURATION_MAX_S
from holdfast.errors import ChildFailed, StepFailed, StepTooLarge
from holdfast.records import MaybeRaw

NAME_CHARACTERS: Final = 100
"""How long the name of a step, a signal or a branch may be."""

CANCELS: Final = "holdfast-cancels"
"""The dict of requests to cancel jobs, by queue and id."""

FOREVER_S: Final = DURATION_MAX_S / 2
"""How long a job sleeps that time alone does not wake."""

CHILDREN: Final = "~children"
"""Under this name it is counted how many children of a job have ended."""

CHILD: Final = "~child"
"""Under this name children report how they ended, each by its id."""

HASH_CHARACTERS: Final = 16

LONG: Final = "~"
"""Stands before the hash of an id that is too long for the name of a dict."""

RowState = Literal["done", "begun", "failed", "retry", "timer", "called", "timeout", "cancelled"]

Key = tuple[str, str, str, int]
"""Which step it is: branch, name, hash of the arguments, and the number among equal ones."""


class Row(Struct, frozen=True, omit_defaults=True):
    """What is recorded of one step.

    `done` has its result. `begun` is a step that must happen once and has no result yet. `retry` failed and is tried again, `failed` is
    not. `timer` is a wait that has begun, `called` a child that was put; `timeout` and `cancelled` are how a wait ended.
    """

    state: RowState
    result: MaybeRaw = None
    failures: int = 0
    type: str | None = None
    """The name of the exception's class."""
    message: str | None = None
    by: str | None = None
    """The claim under which it was begun."""
    child: tuple[str, str] | None = None
    """The queue and id of the child that was put."""
    at: float | None = None
    """When it was written, in seconds of the wall clock."""
    count: int = 0
    """How many children a map has put."""

    @property
    def raw(self) -> Raw:
        """The row as it is stored."""
        return Raw(json.encode(self))

    @property
    def reason(self) -> str:
        """Why it failed, in one line."""
        return f"{self.type}: {self.message}" if self.message else self.type or "a try that was not recorded"

    def error(self, name: str) -> Exception:
        """What a step that failed for good raises, each time that it is asked for."""
        if self.child is not None:
            return ChildFailed(self.message or "", *self.child)
        if self.type == StepTooLarge.__name__:
            return StepTooLarge(self.message or "")
        return StepFailed(name, self.type or "Exception", self.message or "")


class Head(Struct, frozen=True, omit_defaults=True):
    """What is recorded of a durable job as a whole."""

    run: int
    """The token of the claim with which its history began; its rows are kept under it."""
    version: Any = None
    """The version of the code that it began with."""
    args: MaybeRaw = None
    """The arguments that it goes on with, if they are not those it was put with."""
    waits: tuple[str, ...] = ()
    """What it waits for while it sleeps."""
    looks: bool = False
    """Whether time alone wakes it only to look at its children."""
    is_cancelled: bool = False
    """Whether a request to cancel it was delivered."""
    redriven: int = 0
    """The token of the last burial after which its failed steps were dropped."""

    @property
    def raw(self) -> Raw:
        """The head as it is stored."""
        return Raw(json.encode(self))


decode_row: Callable[[bytes], Row] = json.Decoder(Row).decode
decode_head: Callable[[bytes], Head] = json.Decoder(Head).decode


class Report(Struct, frozen=True, omit_defaults=True):
    """How a child ended, for its parent."""

    state: Literal["done", "failed", "cancelled"]
    result: MaybeRaw = None
    error: str | None = None

    @property
    def raw(self) -> Raw:
        """The report as it is stored."""
        return Raw(json.encode(self))


class Parent(Struct, frozen=True, array_like=True):
    """The job that waits for a child."""

    queue: str
    id: str
    marks: str | None = None
    """The dict in which the children of a map or of a flow report, each by its number."""
    number: int | None = None
    """Its number among these; that of a child of a map ends its id instead, so that all of them have the same metadata."""
    total: int = 0
    """How many children a map has: when that many have reported the parent is woken. Others wake it each."""


class _Family(Struct, frozen=True):
    parent: Parent | None = None


decode_report: Callable[[bytes], Report] = json.Decoder(Report).decode
_decode_family = json.Decoder(_Family).decode


def parent_in(metadata: Raw | None) -> Parent | None:
    """The parent that the metadata of a message names."""
    if metadata is None or b'"parent"' not in (text := bytes(metadata)):
        return None
    return _parent_in(text)


@lru_cache
def _parent_in(text: bytes) -> Parent | None:
    """The children of a map have the same metadata, and each is looked at several times."""
    try:
        return _decode_family(text).parent
    except (ValueError, RecursionError):
        return None


def number_of(parent: Parent, child_id: str) -> int:
    """The number of a child among those that report in one dict."""
    if parent.number is not None:
        return parent.number
    number = child_id.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def steps_of(queue: str) -> str:
    """The dict of the steps of a queue's jobs."""
    return f"{queue}-steps"


def signals_of(queue: str) -> str:
    """The dict of the signals for a queue's jobs."""
    return f"{queue}-signals"


def map_of(queue: str, job_id: str, digested: str) -> str:
    """The dict in which the children of a map report to a job."""
    return f"{maps_prefix(queue)}{job_id if len(job_id) <= NAME_CHARACTERS else LONG + digest(job_id.encode())}-{digested}"


def maps_prefix(queue: str) -> str:
    """What the names of such dicts begin with."""
    return f"{queue}-map-"


def head_key(job_id: str) -> str:
    """Where the head of a job is kept."""
    return encode_key((job_id,))


def job_prefix(job_id: str) -> str:
    """What the keys of all rows of a job begin with; its head's does not."""
    return key_prefix((job_id,))


def row_key(job_id: str, run: int, key: Key) -> str:
    """Where a row is kept."""
    return encode_key((job_id, run, *key))


def timer_key(job_id: str, run: int, key: Key) -> str:
    """Where the timer of a row is kept: as long as it runs."""
    return encode_key((job_id, run, *key, "~"))


def signal_key(job_id: str, name: str, number: int | None = None) -> str:
    """Where a signal is kept; without a number, how many of the name were sent."""
    return encode_key((job_id, name) if number is None else (job_id, name, number))


def sent_key(job_id: str, name: str, sent_id: str) -> str:
    """Where it is remembered that a signal of this id was sent."""
    return encode_key((job_id, name, "id", sent_id))


def report_key(job_id: str, child_id: str) -> str:
    """Where a child reports to its parent how it ended."""
    return encode_key((job_id, CHILD, child_id))


def check_step_name(name: object, what: str) -> str:
    """Give the name back if it can be one."""
    found = check_name(name, what)
    if len(found) > NAME_CHARACTERS:
        raise ValueError(f"{what} name {found[:30]!r}… has {len(found)} characters, more than the limit of {NAME_CHARACTERS}")
    if found.startswith("~"):
        raise ValueError(f"{what} name {found!r} begins with ~, which is reserved: choose another")
    return found


def hash_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A short hash of the arguments of a step; those that are not plain data are left out of it."""
    if not args and not kwargs:
        return ""
    parts = [_text_of(value) for value in args] + [name.encode() + b"=" + _text_of(kwargs[name]) for name in sorted(kwargs)]
    return digest(b"\0".join(parts))


def text_of_arguments(arguments: Mapping[str, Any]) -> bytes:
    """What stands for the arguments of a call where many are hashed together."""
    try:
        return encode_plain(arguments)
    except Exception:  # noqa: BLE001 - foreign classes, see `hash_of`
        return hash_of((), arguments).encode()


def digest(text: bytes) -> str:
    """A short hash of a text."""
    return sha256(text).hexdigest()[:HASH_CHARACTERS]


encode_plain: Callable[[Any], bytes] = json.Encoder(order="sorted", enc_hook=lambda value: value.model_dump(mode="json")).encode


def _text_of(value: Any) -> bytes:
    try:
        return encode_plain(value)
    except Exception:  # noqa: BLE001 - foreign classes; what has no stable text does not take part
        return b"?"
