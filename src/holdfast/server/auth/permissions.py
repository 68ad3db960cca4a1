"""The rights that a command needs: a verb on each object it names."""

import re
from collections.abc import Collection
from typing import Any, Final, Literal

from msgspec import DecodeError, Struct, json

from holdfast.commands import Command
from holdfast.commands.names import Listable, Verb, Whole
from holdfast.records.policies import Kind as ObjectKind

Kind = Literal["queue", "dict", "lease", "server"]


class Need(Struct, frozen=True):
    """A verb on one thing."""

    kind: Kind
    name: str
    verb: Verb

    @property
    def scope(self) -> str:
        """The scope that allows just this."""
        return "admin" if self.verb == "admin" else f"{self.kind}:{self.name}:{self.verb}"


_NAMED_LEASE = re.compile(r'\["(?:lock|election|semaphore|rwlock)",(".*")\]', re.DOTALL)
_NAMED_PREFIX = re.compile(r'\["(?:lock|election|semaphore|rwlock)","(.*)', re.DOTALL)

AUDIT: Final = Need("server", "audit", "read")
METRICS: Final = Need("server", "metrics", "read")
SERVER: Final = Need("server", "", "admin")
COPY: Final = Need("server", "copy", "admin")


def needs_of(command: Command[Any]) -> Collection[Need]:
    """Everything that the command takes."""
    needs = _Needs()
    command.named(needs)
    return needs.found


class _Needs:
    """Collects the needs of a command from the names in it, and leaves them as they are."""

    def __init__(self) -> None:
        self.found: dict[Need, None] = {}

    def object(self, kind: ObjectKind, name: str, verb: Verb) -> str:
        self.found[Need(kind, name, verb)] = None
        return name

    def later(self, queue: str) -> str:
        # Whoever names a dead-letter queue puts into it, if later.
        return self.object("queue", queue, "put")

    def lease(self, name: str | None, key: str, verb: Verb) -> tuple[str | None, str]:
        self.found[Need("lease", lease_name(key), verb) if name is None else Need("dict", name, verb)] = None
        return name, key

    def listed(self, kind: Listable, prefix: str, after: str | None, verb: Verb, *, exact: bool) -> tuple[str, str | None]:
        # A pattern that allows every name with this prefix matches the prefix with a star, too.
        shown = lease_prefix(prefix) if kind == "lease" else prefix
        self.found[Need(kind, prefix if exact else f"{shown}*", verb)] = None
        return prefix, after

    def topic(self, topic: str, verb: Verb) -> str:
        subject = about(topic)
        # No event is ever written to a topic that can be read in more than one way.
        self.found[SERVER if subject is None or subject.name is None else Need(subject.kind, subject.name, verb)] = None
        return topic

    def whole(self, what: Whole) -> None:
        self.found[COPY if what == "copy" else SERVER] = None


class Subject(Struct, frozen=True):
    """What a topic is about: one thing by its name, or one of the things whose name and a colon the text begins with."""

    kind: Kind
    name: str | None
    text: str = ""


def about(topic: str) -> Subject | None:
    """What the topic is about; None where only an administrator can know."""
    kind, _, name = topic.partition(":")
    while kind == "watch":
        kind, _, name = name.partition(":")
    if kind in ("queue", "room"):
        return Subject("queue", name)
    if kind == "dict":
        return Subject("dict", name)
    if kind == "lease" and name.startswith(":"):
        return Subject("lease", lease_name(name[1:]))
    if kind == "line" and ":" in name:
        return Subject("lease", lease_name(name.partition(":")[2]))
    if kind in ("key", "lease") and ":" in name[1:]:
        return Subject("queue" if kind == "key" else "dict", None, name)
    return None


def lease_prefix(prefix: str) -> str:
    """What the names, as scopes call them, of all leases begin with whose keys begin with this."""
    found = _NAMED_PREFIX.fullmatch(prefix)
    if found is None:
        return "" if prefix.startswith("[") else prefix
    try:
        return json.decode(f'"{found[1]}"', type=str)
    except DecodeError:
        return ""  # It ends within an escaped character.


def lease_name(key: str) -> str:
    """What a scope calls a lease that is of no dict: a lock, a semaphore or an election by its name, any other by its key."""
    found = _NAMED_LEASE.fullmatch(key)
    if found is None:
        return key
    try:
        return json.decode(found[1], type=str)
    except DecodeError:
        return key
