"""The subjects of a watch: reading their state, and converting their events."""

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from msgspec import Raw, Struct, json

from holdfast.codec import JSON, Codec, decode_key, decode_key_prefix, encode_key, key_prefix
from holdfast.commands import Browse, Browsed, Command, Entries, Filter, Read
from holdfast.commands.topics import dict_topic, queue_topic
from holdfast.commands.transaction import Cursor
from holdfast.records import Entry, Event, Message, State
from holdfast.results import Missing, WatchEvent, wall_time

STATES: tuple[State, ...] = ("buffered", "leased", "ready", "dead")
"""Buffered first: a copy that takes the place of another meanwhile is then known, and read again."""

PAGE = 1_000

PAIRS = {"ids": "keys", "updated": "updated_keys"}
"""In the events of a queue: where the keys of the messages stand that are named by id."""

PAIRED = {*PAIRS, *PAIRS.values(), "groups"}

Facts = dict[str, Any]
"""The data of an event; keys and values in it are still text."""


def narrowing(key: Hashable | Missing, prefix: str | tuple[Hashable, ...] | None) -> tuple[str | None, str]:
    """The only key that is to be watched, and what the watched keys begin with, as text; by default all."""
    if not isinstance(key, Missing) and prefix is not None:
        raise ValueError("give key= or prefix=, not both")
    return None if isinstance(key, Missing) else encode_key(key), "" if prefix is None else key_prefix(prefix)


class QueueSubject(Struct, frozen=True):
    """A queue, or the messages in it under one key, or under the keys whose text begins with a prefix.

    Its items have names: here the ids of messages. Its events name messages by id and key, and only a snapshot shows values.
    """

    name: str
    codec: Codec = JSON
    key: str | None = None
    """The text of the only key that matters."""
    prefix: str = ""

    @property
    def topic(self) -> str:
        """Where its events are written."""
        return queue_topic(self.name)

    def first_pages(self) -> list[Command[Any]]:
        """What to ask for the present state, each the first page of a part."""
        return [self._page(state) for state in STATES]

    def next_page(self, asked: Browse, page: Browsed) -> Command[Any] | None:
        """What to ask after that page, None after the last."""
        return self._page(asked.state, page.after) if page.after else None

    def _page(self, state: State, after: Cursor | None = None) -> Browse:
        beginning = self.prefix if self.key is None else self.key
        return Browse(self.name, state=state, which=Filter(key_prefix=beginning or None), after=after, limit=PAGE)

    def again(self, names: list[str]) -> Command[Any]:
        """What to ask for these items alone."""
        return Browse(self.name, ids=names)

    def items(self, page: Browsed) -> dict[str, Any]:
        """The items of a page by name."""
        return {message.id: message for message in page.messages if self._is_meant(message.key)}

    def last(self, page: Browsed) -> str:
        """The name of the last thing on a page, whether it is meant or not."""
        return page.messages[-1].id

    def touched(self, facts: Iterable[tuple[int, Facts]], known: Mapping[str, Any]) -> dict[str, int]:
        """The names of items, known or new, that events may have changed, each with the number of the last of these events."""
        names: dict[str, int] = {}
        keys: dict[str, int] = {}
        for index, everything in facts:
            data = self._narrowed(everything)
            names |= dict.fromkeys((*data.get("ids", ()), *data.get("updated", ())), index)
            keys |= {key: index for key in data.get("keys", ()) if key is not None}
        # No event names the buffered copy that takes the place of a message under the same key.
        behind = {message.id: keys[message.key] for message in known.values() if message.key in keys} if keys else {}
        return {name: max(names.get(name, 0), behind.get(name, 0)) for name in names | behind}

    def concerns(self, facts: Facts) -> bool:
        """Whether a watch of this subject reports the event."""
        if self._is_whole or "ids" not in facts:
            return True
        return any(self._is_meant(key) for keys in PAIRS.values() for key in facts.get(keys, ()))

    def tell(self, event: Event, facts: Facts) -> Facts:
        """The data of an event as users see it."""
        facts = self._narrowed(facts)
        facts |= {keys: [shown(key) for key in facts[keys]] for keys in PAIRS.values() if keys in facts}
        if event.event == "claimed":
            facts["token"] = event.token
        return facts

    def tell_item(self, item: Message) -> Facts:
        """The data of a snapshot's event."""
        facts: Facts = {"ids": [item.id]}
        if item.key is not None:
            facts["keys"] = [shown(item.key)]
        if item.group is not None:
            facts["groups"] = [item.group]
        facts |= {"state": item.state, "value": self.codec.decode(item.value)}
        return facts | {"holder": item.holder, "token": item.token} if item.state == "leased" else facts

    @property
    def _is_whole(self) -> bool:
        return self.key is None and not self.prefix

    def _is_meant(self, key: str | None) -> bool:
        return self._is_whole or (key is not None and is_meant(key, self.key, self.prefix))

    def _narrowed(self, facts: Facts) -> Facts:
        """The facts without the messages that others watch."""
        if self._is_whole or "ids" not in facts:
            return facts
        narrow = {name: fact for name, fact in facts.items() if name not in PAIRED} | {"ids": []}
        for ids, keys in PAIRS.items():
            # Where no message has a key there are no keys.
            named = zip(facts.get(ids, ()), facts.get(keys, ()), strict=False)
            meant = [(one, key) for one, key in named if self._is_meant(key)]
            narrow |= {ids: [one for one, _ in meant], keys: [key for _, key in meant]} if meant else {}
        if "groups" in facts:
            narrow["groups"] = [group for group, key in zip(facts["groups"], facts.get("keys", ()), strict=False) if self._is_meant(key)]
        return narrow


class DictSubject(Struct, frozen=True):
    """A dict, one key of it, or the keys whose text begins with a prefix, with the methods of `QueueSubject`; its events show values."""

    name: str
    codec: Codec = JSON
    key: str | None = None
    """The text of the only key that matters."""
    prefix: str = ""

    @property
    def topic(self) -> str:
        return dict_topic(self.name)

    def first_pages(self) -> list[Command[Any]]:
        return [Read(self.name, prefix=self.prefix, limit=PAGE, anchor=True) if self.key is None else self.again([self.key])]

    def next_page(self, asked: Read, page: Entries) -> Command[Any] | None:
        if asked.keys is not None or not page.more:
            return None
        return Read(self.name, prefix=self.prefix, after=page.entries[-1].key, limit=PAGE, anchor=True)

    def again(self, names: list[str]) -> Command[Any]:
        return Read(self.name, names, anchor=True)

    def items(self, page: Entries) -> dict[str, Any]:
        return {entry.key: entry for entry in page.entries}

    def last(self, page: Entries) -> str:
        return page.entries[-1].key

    def touched(self, facts: Iterable[tuple[int, Facts]], known: Mapping[str, Any]) -> dict[str, int]:
        del known
        return {data["key"]: index for index, data in facts if "key" in data and self.concerns(data)}

    def concerns(self, facts: Facts) -> bool:
        if "key" in facts:
            return is_meant(facts["key"], self.key, self.prefix)
        watched, cleared = self.prefix if self.key is None else self.key, facts.get("prefix", "")
        return watched.startswith(cleared) or (self.key is None and cleared.startswith(watched))

    def tell(self, event: Event, facts: Facts) -> Facts:
        if "key" in facts:
            facts["key"] = shown(facts["key"])
        if "prefix" in facts:
            facts["prefix"] = decode_key_prefix(facts["prefix"])
        if event.event == "written":
            value = _read_value(event.data).value if "value" in facts else None
            facts |= {"value": None if value is None else self.codec.decode(value), "revision": event.token}
        return facts | {"token": event.token} if event.event == "acquired" else facts

    def tell_item(self, item: Entry) -> Facts:
        return {"key": shown(item.key), "value": self.codec.decode(item.value), "revision": item.revision}


Subject = QueueSubject | DictSubject


class _Value(Struct, frozen=True, gc=False):
    """The one part of an event's data that a codec reads."""

    value: Raw


_read_facts = json.Decoder(Facts).decode
_read_value = json.Decoder(_Value).decode


def facts_of(event: Event) -> Facts:
    """The data of an event, read."""
    return _read_facts(event.data)


def is_meant(key: str, only: str | None, prefix: str) -> bool:
    """Whether a watch of only one key, or of the keys whose text begins with a prefix, reports this key."""
    return key.startswith(prefix) if only is None else key == only


def shown(key: Any) -> Any:
    """A key as its owner wrote it. By reference it is that already."""
    return decode_key(key) if type(key) is str else key


def told(subject: Subject, event: Event, facts: Facts, wall_offset_us: int) -> WatchEvent:
    """An event of the log as users see it."""
    at = cast("datetime", wall_time(event.at, wall_offset_us))
    return WatchEvent(event.index, event.event, subject.tell(event, facts), at)


def told_now(index: int, event: str, data: Facts) -> WatchEvent:
    """An event of a snapshot, which is in no log."""
    return WatchEvent(index, event, data, datetime.now(UTC))
