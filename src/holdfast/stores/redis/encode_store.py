"""Encodes commands on whole queues and dicts, and on the log, for Redis, and decodes their results."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, convert, json, msgpack

from holdfast.commands import Changes, Clear, Configure, Grouped, Groups, Named, Names, Page, Prune
from holdfast.commands.configuring import OF_GROUPS, POLICIES
from holdfast.rates import Rate
from holdfast.records import Event, moment_in
from holdfast.records.policies import NO_SETTINGS, Lane, OwnSettings, Policy, Settings
from holdfast.stores.redis.plans import Fields, Object, Plan, Plans, given, listed_from

FACTS = (
    *("ids", "keys", "groups", "updated", "updated_keys", "started", "to", "failed", "dead_letter"),
    *("group", "paused", "maxsize", "limit", "count", "dropped", "prefix", "key", "value", "holder", "weight", "rate", "capacity"),
    *("because", "held", "policy", "throttle_s", "reason"),
)
"""What an event may tell, in the order in which it is told."""
FLAGS = frozenset({"started", "failed", "paused", "dropped"})


class _Configured(Struct, frozen=True):
    """The settings of a queue or dict."""

    paused: bool
    size: int
    created_at: int
    maxsize: int | None = None
    name: str = ""
    policy: Policy | None = None
    live: int = 0
    tat: int = 0
    last: int = 0
    throttled_until: int = 0

    def settings(self, kind: Any, name: str) -> Settings:
        gate = self.live, self.tat, self.last, self.throttled_until
        return Settings(kind, name, self.paused, self.maxsize, self.size, self.created_at, self.policy, *gate)


class _Lane(Struct, frozen=True):
    """A lane, without its queue."""

    name: str
    turn: int
    place: int
    open: bool
    live: int
    credit: int
    tat: int
    last: int
    throttled_until: int
    wakes: int | None = None
    own: OwnSettings = NO_SETTINGS

    def of(self, queue: str) -> Lane:
        gate = self.tat, self.last, self.throttled_until
        return Lane(queue, self.name, self.turn, self.place, self.open, self.live, self.credit, self.wakes, *gate, self.own)


class _Grouped(Struct, frozen=True):
    lanes: list[_Lane]
    more: bool
    now: int
    ahead: int
    head: str | None = None


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
    if command.throttle_s is not UNSET:
        fields["throttle"] = moment_in(command.throttle_s)
    if command.group is not None:
        own = _changes_of(command, [name for name in OF_GROUPS if name not in ("throttle_s", "forget")])
        return {**fields, "group": command.group, "own": own, "forget": command.forget}
    fields |= _changes_of(command, ("paused", "maxsize"))
    policies = _changes_of(command, POLICIES)
    if policies:
        fields["policies"] = policies
    return fields


def _changes_of(command: Configure, names: Sequence[str]) -> Fields:
    """What a command changes of these settings; False stands for None."""
    contents = {name: getattr(command, name) for name in names}
    return {name: False if content is None else content for name, content in contents.items() if content is not UNSET}


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
    if fact in ("keys", "groups"):
        return [one or None for one in content]
    if fact == "policy" and content:
        return convert(content, Policy)
    if fact == "rate" and content:
        return convert(content, Rate)
    return None if content is False and fact not in FLAGS else content


_decode_configured = msgpack.Decoder(_Configured).decode
_decode_listed = msgpack.Decoder(_Listed).decode
_decode_page = msgpack.Decoder(_Page).decode
_decode_grouped = msgpack.Decoder(_Grouped).decode
_decode_int = msgpack.Decoder(int).decode


def _named(command: Names, reply: bytes) -> Named:
    found = _decode_listed(reply)
    return Named([one.settings(command.kind, one.name) for one in found.settings], found.more)


def _grouped(command: Groups, reply: bytes) -> Grouped:
    found = _decode_grouped(reply)
    return Grouped([one.of(command.queue) for one in found.lanes], found.more, found.now, found.head, found.ahead)


def _page(command: Changes, reply: bytes) -> Page:
    page = _decode_page(reply)
    events = [Event(one.index, command.topic, one.event, facts(one.data), one.at) for one in page.events]
    return Page(events, page.upto, page.latest)


PLANS: Final[Plans] = {
    Configure: Plan(_configure, lambda command, reply: _decode_configured(reply).settings(command.kind, command.name)),
    Clear: Plan(given, lambda _, reply: _decode_int(reply)),
    Names: Plan(listed_from, _named),
    Groups: Plan(listed_from, _grouped),
    Changes: Plan(_changes, _page),
    Prune: Plan(
        lambda command: {**given(command, "keep_s"), "keep_for": moment_in(command.keep_s)},
        lambda _, reply: _decode_int(reply),
    ),
}
