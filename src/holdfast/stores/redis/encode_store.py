"""Encodes commands on whole queues and dicts, and on the log, for Redis, and decodes their results."""

from typing import Any, Final

from msgspec import UNSET, Raw, Struct, json, msgpack

from holdfast.commands import Changes, Clear, Configure, Named, Names, Page, Prune
from holdfast.policy_records import Settings
from holdfast.records import Event, moment_in
from holdfast.stores.redis.encode_dicts import start_of
from holdfast.stores.redis.plans import Fields, Object, Plan, Plans, given

FACTS = (
    *("ids", "keys", "updated", "updated_keys", "started", "to", "dead_letter"),
    *("paused", "maxsize", "count", "dropped", "key", "value", "holder", "weight", "capacity"),
)
"""What an event may tell, in the order in which it is told."""
FLAGS = frozenset({"started", "paused", "dropped"})


class _Configured(Struct, frozen=True):
    """The settings of a queue or dict."""

    paused: bool
    size: int
    created_at: int
    maxsize: int | None = None
    name: str = ""

    def settings(self, kind: Any, name: str) -> Settings:
        return Settings(kind, name, self.paused, self.maxsize, self.size, self.created_at)


class _Listed(Struct, frozen=True):
    settings: list[_Configured]
    more: bool


class _Told(Struct, frozen=True):
    index: int
    event: str
    at: int
    data: Any


class _Page(Struct, frozen=True):
    events: list[_Told]
    upto: int
    latest: int


def _configure(command: Configure) -> Fields:
    fields: Fields = {"kind": command.kind, "name": command.name}
    if command.paused is not UNSET:
        fields["paused"] = command.paused
    if command.maxsize is not UNSET:
        fields["maxsize"] = False if command.maxsize is None else command.maxsize
    return fields


def _list(command: Names) -> Fields:
    start = start_of(command.prefix, command.after)
    return {**given(command, "after"), "from": start}


def log_of(topic: str) -> Object:
    """The object whose log a topic is."""
    kind, _, name = topic.partition(":")
    return (kind, name.removeprefix(":")) if kind == "lease" else (kind, name)


def _changes(command: Changes) -> Fields:
    kind, name = log_of(command.topic)
    return {**given(command), "kind": kind, "name": name}


def facts(data: Any) -> Raw:
    """What an event tells, as JSON text in one order of words."""
    told: dict[str, object] = {}
    for fact in FACTS:
        if fact in data:
            told[fact] = _fact(fact, data[fact])
    return Raw(json.encode(told))


def _fact(fact: str, content: Any) -> object:
    if fact == "value":
        return Raw(content)
    if fact == "keys":
        return [key or None for key in content]
    return None if content is False and fact not in FLAGS else content


_decode_configured = msgpack.Decoder(_Configured).decode
_decode_listed = msgpack.Decoder(_Listed).decode
_decode_page = msgpack.Decoder(_Page).decode
_decode_int = msgpack.Decoder(int).decode


def _named(command: Names, reply: bytes) -> Named:
    found = _decode_listed(reply)
    return Named([one.settings(command.kind, one.name) for one in found.settings], found.more)


def _page(command: Changes, reply: bytes) -> Page:
    page = _decode_page(reply)
    events = [Event(one.index, command.topic, one.event, facts(one.data), one.at) for one in page.events]
    return Page(events, page.upto, page.latest)


PLANS: Final[Plans] = {
    Configure: Plan(_configure, lambda command, reply: _decode_configured(reply).settings(command.kind, command.name)),
    Clear: Plan(given, lambda _, reply: _decode_int(reply)),
    Names: Plan(_list, _named),
    Changes: Plan(_changes, _page),
    Prune: Plan(
        lambda command: {**given(command, "keep_s"), "keep_for": moment_in(command.keep_s)},
        lambda _, reply: _decode_int(reply),
    ),
}
