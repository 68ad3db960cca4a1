"""What a request takes, worked out of the command itself: a verb on each thing it names."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

from msgspec import DecodeError, Struct, json

from holdfast.commands import (
    Acquire,
    BeginImport,
    Browse,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    EndImport,
    Extend,
    Fences,
    Import,
    LeaseName,
    Length,
    Look,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Release,
    Renew,
    Seal,
    Settle,
    Survey,
    Together,
    Write,
)
from holdfast.stores.http.protocol import ROUTES, Verb

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


_NAMED_LEASE = re.compile(r'\["(?:lock|election)",(".*")\]', re.DOTALL)

AUDIT: Final = Need("server", "audit", "read")
METRICS: Final = Need("server", "metrics", "read")
SERVER: Final = Need("server", "", "admin")
COPY: Final = Need("server", "copy", "admin")
VERBS: Final[dict[type[Command[Any]], Verb]] = {route.command: route.verb for route in ROUTES}


def needs_of(command: Command[Any]) -> Iterable[Need]:
    """Everything that the command takes."""
    return _NEEDS[type(command)](command, VERBS[type(command)])


class Subject(Struct, frozen=True):
    """What a topic is about: one thing by its name, or one of the things whose name and a colon the text begins with."""

    kind: Kind
    name: str | None
    text: str = ""


def about(topic: str) -> Subject | None:
    """What the topic is about; None where nobody but an administrator can tell."""
    kind, _, name = topic.partition(":")
    while kind == "watch":
        kind, _, name = name.partition(":")
    if kind in ("queue", "room"):
        return Subject("queue", name)
    if kind == "dict":
        return Subject("dict", name)
    if kind == "lease" and name.startswith(":"):
        return Subject("lease", lease_name(name[1:]))
    if kind in ("key", "lease") and ":" in name[1:]:
        return Subject("queue" if kind == "key" else "dict", None, name)
    return None


def lease_name(key: str) -> str:
    """What a scope calls a lease that is of no dict: a lock or an election by its name, any other by its key."""
    found = _NAMED_LEASE.fullmatch(key)
    if found is None:
        return key
    try:
        return json.decode(found[1], type=str)
    except DecodeError:
        return key


def _queues(verb: Verb, *queues: str | None) -> list[Need]:
    return [Need("queue", queue, verb) for queue in dict.fromkeys(queues) if queue is not None]


def _put(command: Put, verb: Verb) -> list[Need]:
    # Whoever names a dead-letter queue puts into it, if later.
    return _queues(verb, command.queue, *[item.dead_letter for item in command.items])


def _claim(command: Claim, verb: Verb) -> list[Need]:
    return _queues(verb, command.queue) + _queues("put", command.dead_letter)


def _extend(command: Extend | Settle, verb: Verb) -> list[Need]:
    return _queues(verb, *[receipt.queue for receipt in command.receipts])


def _settle(command: Settle, verb: Verb) -> list[Need]:
    return _extend(command, verb) + _queues("put", command.dead_letter)


def _move(command: Move, verb: Verb) -> list[Need]:
    return _queues(verb, command.queue) + _queues("put", command.to_queue)


def _queue(command: Browse | Count, verb: Verb) -> list[Need]:
    return _queues(verb, command.queue)


def _dict(command: Read | Length | Write, verb: Verb) -> Iterator[Need]:
    yield Need("dict", command.dict, verb)


def _lease(name: str | None, key: str, verb: Verb) -> Need:
    return Need("lease", lease_name(key), verb) if name is None else Need("dict", name, verb)


def _acquire(command: Acquire, verb: Verb) -> Iterator[Need]:
    yield _lease(command.dict, command.key, verb)
    if command.default is not None:
        yield _lease(command.dict, command.key, "write")


def _names(command: Renew | Release, verb: Verb) -> Iterator[Need]:
    def need(name: LeaseName) -> Need:
        return _lease(name.dict, name.key, verb)

    return iter(dict.fromkeys(map(need, command.names)))


def _look(command: Look, verb: Verb) -> Iterator[Need]:
    return iter(dict.fromkeys(_lease(command.dict, key, verb) for key in command.keys))


def _whole(command: Configure | Clear, verb: Verb) -> Iterator[Need]:
    yield Need(command.kind, command.name, verb)


def _list(command: Names, verb: Verb) -> Iterator[Need]:
    # A pattern that allows every name with this prefix matches the prefix with a star, too.
    yield Need(command.kind, command.prefix if command.exact else f"{command.prefix}*", verb)


def _changes(command: Changes, verb: Verb) -> Iterator[Need]:
    subject = about(command.topic)
    # No event is ever written to a topic that can be read in more than one way.
    yield SERVER if subject is None or subject.name is None else Need(subject.kind, subject.name, verb)


def _prune(command: Prune, verb: Verb) -> Iterator[Need]:
    del command, verb
    yield SERVER


def _copy(command: Survey | Fences | BeginImport | EndImport | Seal, verb: Verb) -> Iterator[Need]:
    del command, verb
    yield COPY


def _import(command: Import, verb: Verb) -> Iterator[Need]:
    yield COPY
    for settings in command.settings:
        yield Need(settings.kind, settings.name, verb)
    yield from _queues(verb, *[name for message in command.messages for name in (message.queue, message.dead_letter)])
    for name in {entry.dict for entry in command.entries} | {fenced.dict for fenced in command.fences}:
        yield Need("dict", name, verb)


def _together(command: Together, verb: Verb) -> Iterator[Need]:
    del verb
    for step in command.commands:
        yield from needs_of(step)


_NEEDS: Final[dict[type[Command[Any]], Callable[[Any, Verb], Iterable[Need]]]] = {
    Put: _put,
    Claim: _claim,
    Extend: _extend,
    Settle: _settle,
    Move: _move,
    Browse: _queue,
    Count: _queue,
    Read: _dict,
    Length: _dict,
    Write: _dict,
    Acquire: _acquire,
    Renew: _names,
    Release: _names,
    Look: _look,
    Configure: _whole,
    Clear: _whole,
    Names: _list,
    Changes: _changes,
    Prune: _prune,
    Survey: _copy,
    Fences: _copy,
    BeginImport: _copy,
    Import: _import,
    EndImport: _copy,
    Seal: _copy,
    Together: _together,
}
