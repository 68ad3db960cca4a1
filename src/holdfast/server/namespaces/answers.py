"""Translates names in results and errors back to the caller's."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import DecodeError, Raw, json
from msgspec.structs import replace

from holdfast.commands import Acquired, Broken, Browsed, Claimed, Counted, Entries, Listed, Looked, Named, Page, Renewed, Written
from holdfast.errors import ClaimLost, LeaseHeld
from holdfast.records import Entry, Event, Lease, Message, Receipt
from holdfast.records.policies import Settings
from holdfast.server.namespaces.names import Namespace

_parts_of: Callable[[bytes | Raw], dict[str, Raw]] = json.Decoder(dict[str, Raw]).decode


def outside(answer: Any, namespace: Namespace) -> Any:
    """The same answer with the caller's names."""
    turn = _OUTSIDE.get(type(answer))
    return answer if turn is None else turn(answer, namespace)


def error_outside(error: Exception, namespace: Namespace) -> None:
    """Let the error speak of the caller's names."""
    error.args = (namespace.text_outside(str(error)),)
    if isinstance(error, ClaimLost):
        error.lost = [outside(receipt, namespace) for receipt in error.lost]
    if isinstance(error, LeaseHeld):
        error.lease = outside(error.lease, namespace)
        error.holders = _list(error.holders, namespace)


def _list(answers: list[Any], namespace: Namespace) -> list[Any]:
    return [outside(answer, namespace) for answer in answers]


def _messages(answer: Claimed | Browsed, namespace: Namespace) -> Any:
    return replace(answer, messages=_list(answer.messages, namespace))


def _message(message: Message, namespace: Namespace) -> Message:
    return replace(
        message,
        queue=namespace.outside(message.queue),
        dead_letter=None if message.dead_letter is None else namespace.outside(message.dead_letter),
        metadata=_metadata(message.metadata, namespace),
    )


def _metadata(metadata: Raw | None, namespace: Namespace) -> Raw | None:
    """A dead letter's report names the queue that it came from."""
    if metadata is None or namespace.prefix.encode() not in bytes(metadata):
        return metadata
    try:
        parts = _parts_of(metadata)
        report = _parts_of(parts["dead_letter"])
        parts["dead_letter"] = _renamed(report, ("queue",), namespace)
    except (DecodeError, KeyError):
        return metadata  # The caller's own, then.
    return Raw(json.encode(parts))


def _renamed(parts: dict[str, Raw], fields: tuple[str, ...], namespace: Namespace) -> Raw:
    """The object with the names in these fields as the caller knows them, and all else as it was, to the letter."""
    for field in fields:
        if field in parts:
            parts[field] = Raw(json.encode(namespace.outside(json.decode(parts[field], type=str))))
    return Raw(json.encode(parts))


def _receipt(receipt: Receipt, namespace: Namespace) -> Receipt:
    return replace(receipt, queue=namespace.outside(receipt.queue))


def _settings(settings: Settings, namespace: Namespace) -> Settings:
    return replace(settings, name=namespace.outside(settings.name))


def _named(answer: Named, namespace: Namespace) -> Named:
    return replace(answer, settings=_list(answer.settings, namespace))


def _counted(answer: Counted, namespace: Namespace) -> Counted:
    return replace(answer, queues=[replace(one, name=namespace.outside(one.name)) for one in answer.queues])


def _entry(entry: Entry, namespace: Namespace) -> Entry:
    return replace(entry, dict=namespace.outside(entry.dict))


def _entries(answer: Entries, namespace: Namespace) -> Entries:
    return replace(answer, entries=_list(answer.entries, namespace))


def _written(answer: Written, namespace: Namespace) -> Written:
    return replace(answer, entry=outside(answer.entry, namespace))


def _lease(lease: Lease, namespace: Namespace) -> Lease:
    if lease.dict is None:
        return replace(lease, key=namespace.outside(lease.key))
    return replace(lease, dict=namespace.outside(lease.dict))


def _acquired(answer: Acquired, namespace: Namespace) -> Acquired:
    holders = _list(answer.holders, namespace)
    return replace(answer, lease=outside(answer.lease, namespace), entry=outside(answer.entry, namespace), holders=holders)


def _leases(answer: Renewed | Looked | Broken, namespace: Namespace) -> Any:
    return replace(answer, leases=_list(answer.leases, namespace))


def _listed(answer: Listed, namespace: Namespace) -> Listed:
    held = [replace(one, leases=_list(one.leases, namespace)) for one in answer.held]
    if answer.dict is not None:
        return replace(answer, held=held, dict=namespace.outside(answer.dict))
    # The keys are names then, and so is where to go on.
    held = [replace(one, key=namespace.outside(one.key)) for one in held]
    return replace(answer, held=held, after=None if answer.after is None else namespace.outside(answer.after))


def _page(answer: Page, namespace: Namespace) -> Page:
    return replace(answer, events=_list(answer.events, namespace))


def _event(event: Event, namespace: Namespace) -> Event:
    data = event.data
    if namespace.prefix.encode() in bytes(data):
        # The key of a lease that is of no dict, and the queue of a dead letter, are names; the key of an entry is none.
        data = _renamed(_parts_of(data), ("key",) if event.topic.startswith("lease::") else ("dead_letter",), namespace)
    return replace(event, topic=namespace.topic_outside(event.topic), data=data)


_OUTSIDE: Final[dict[type[Any], Callable[[Any, Namespace], Any]]] = {
    list: _list,
    Claimed: _messages,
    Browsed: _messages,
    Message: _message,
    Receipt: _receipt,
    Settings: _settings,
    Named: _named,
    Counted: _counted,
    Entry: _entry,
    Entries: _entries,
    Written: _written,
    Lease: _lease,
    Acquired: _acquired,
    Renewed: _leases,
    Looked: _leases,
    Broken: _leases,
    Listed: _listed,
    Page: _page,
    Event: _event,
}
"""What carries a name; all other answers are the same for everyone."""
