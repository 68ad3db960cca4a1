"""Dict: keys and values that processes share, with leases on keys."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar, Unpack, overload

from holdfast._async.flows.naming import all_named, entries_of
from holdfast._async.flows.watching import watch
from holdfast._async.handles.keyleases import AsyncDictLeases
from holdfast.aio_attribute import Twin
from holdfast.arguments.dict_changes import change_of, expectation, pairs_of, raise_refused, same_keys
from holdfast.arguments.options import show_options
from holdfast.arguments.value_type import Value
from holdfast.arguments.where import Where, reach
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, decode_key, encode_key, key_prefix, typed
from holdfast.codec.call_fields import SIZE
from holdfast.codec.fields import LIMIT
from holdfast.commands import Change, Clear, Configure, Length, LowerFences, Read, Write, Written
from holdfast.errors import Refused
from holdfast.results import MISSING, DictCompareAndSetResult, DictEntry, DictResponse, Missing, WatchEvent, wall_time
from holdfast.stores import AsyncExecutor, AsyncStore
from holdfast.stores.caller_transaction import AsyncConnection
from holdfast.views.watch_subjects import DictSubject, narrowing

W = TypeVar("W")

# Said here because inside the class `list` is a method.
Items = list[tuple[Any, Value]]
Dicts = list["AsyncDict[Any]"]

PAGE = 1_000
TRIES = 1_000
"""How often `update_with` begins again before it gives up."""


class AsyncKeyOptions(Where, total=False):
    """The options of every change of one key."""

    lease_id: str | None
    """The change is made only while this lease on the key is held, else `LeaseLost`."""
    fence: int | None
    """The token of a lease or a claim of this store: `Refused` once a higher one has changed the key; an equal one passes."""
    connection: AsyncConnection | None
    """A connection of yours to the same database, whose open transaction the change becomes part of."""


class AsyncWriteOptions(AsyncKeyOptions, total=False):
    """The options of everything that writes a value under a key."""

    ttl_s: float | None
    """After how long the key is gone again; None, the default, is never."""


@show_options
class AsyncDict(AsyncDictLeases[Value]):
    """A dict by name, shared by everyone who reaches the same store.

    Keys are str, int, float, bool, None, bytes, UUID, date, datetime and tuples of these, each type apart: `1`, `1.0`, `True` and `"1"`
    are four keys. Every call takes `client=` or `base_url=`, else the handle's own are used, else `HOLDFAST_URL`, else a file in the user's
    data folder. What writes takes `connection=`, too, a connection of yours to the same database: the write is then part of its open
    transaction, and is committed, or vanishes, with it.
    """

    aio: ClassVar[Twin] = Twin()

    @overload
    @classmethod
    def from_name(cls, name: str, *, type: type[W], **where: Unpack[Where]) -> "AsyncDict[W]": ...
    @overload
    @classmethod
    def from_name(cls, name: str, *, codec: Codec = ..., **where: Unpack[Where]) -> "AsyncDict[Any]": ...
    @classmethod
    def from_name(cls, name: str, *, type: Any = None, codec: Codec = JSON, **where: Unpack[Where]) -> "AsyncDict[Any]":
        """Make a handle, and touch nothing."""
        return cls(name, codec=codec if type is None else typed(type), **where)

    @overload
    @classmethod
    async def create(cls, name: str, *, type: type[W], **where: Unpack[Where]) -> "AsyncDict[W]": ...
    @overload
    @classmethod
    async def create(cls, name: str, *, codec: Codec = ..., **where: Unpack[Where]) -> "AsyncDict[Any]": ...
    @classmethod
    async def create(cls, name: str, *, type: Any = None, codec: Codec = JSON, **where: Unpack[Where]) -> "AsyncDict[Any]":
        """Create the dict if it is not there, and make a handle of it. What is in it stays.

        With `type=` values come back as that type: a msgspec Struct, a dataclass, a pydantic model.
        """
        made = cls(name, codec=codec if type is None else typed(type), **where)
        await made._reach().async_store.execute(Configure("dict", name))
        return made

    @classmethod
    async def list(cls, *, prefix: str = "", **where: Unpack[Where]) -> "Dicts":
        """Every dict there is, in order of their names."""
        return [cls(one.name, **where) async for one in all_named(reach(**where).async_store, "dict", prefix)]

    async def delete(
        self, key: Hashable | Missing = MISSING, *, revision: int | None = None, **options: Unpack[AsyncKeyOptions]
    ) -> DictResponse:
        """Remove one key; without a key remove the dict, in one step, with everything in it and all its leases.

        With `revision=` only what still has that revision: the answer's `count` says whether it was. Raises `LeaseLost` and `Refused` as
        `put` does.
        """
        store, conditions = self._conditions(ttl_s=None, **options)
        if isinstance(key, Missing):
            if any(one is not None for one in (revision, *conditions.values())):
                raise ValueError("revision=, lease_id= and fence= are about one key: give the key, too")
            return DictResponse(await store.execute(Clear("dict", self.name, drop=True)))
        written = await self._write_one(store, change_of(key, do="delete", revision=revision, **conditions))
        return DictResponse(int(written.written and written.entry is not None))

    async def clear(
        self,
        *,
        prefix: str | tuple[Hashable, ...] | None = None,
        connection: AsyncConnection | None = None,
        **where: Unpack[Where],
    ) -> DictResponse:
        """Remove every key, or with `prefix=` those that `items` lists under it, in one step; leases stay."""
        command = Clear("dict", self.name, prefix=None if prefix is None else key_prefix(prefix))
        return DictResponse(await self._reach(**where).async_store_on(connection).execute(command))

    async def lower_fences(self, **where: Unpack[Where]) -> DictResponse:
        """Lower every fence that stands above the newest token of the store to it, so that holders can write again; for administrators.

        Such a fence was written by an older version, or came with a copy. All others stay. `count` is how many were lowered; a holder of
        one of their keys acquires it again.
        """
        store, command, count = self._reach(**where).async_store, LowerFences(self.name), 0
        while True:
            lowered = await store.execute(command)
            count += lowered
            if lowered < command.limit:
                return DictResponse(count)

    async def length(self, **where: Unpack[Where]) -> int:
        """How many keys there are."""
        return await self._reach(**where).async_store.execute(Length(self.name))

    async def put(self, key: Hashable, value: Value, **options: Unpack[AsyncWriteOptions]) -> Value:
        """Store a value, and give it back; with `ttl_s` it is gone after that time.

        With `lease_id=` it is stored only while that lease on the key is held, else `LeaseLost`. With `fence=`, the token of a lease or a
        claim of this store, it is `Refused` once a higher token has written the key; an equal one passes.
        """
        store, conditions = self._conditions(**options)
        await self._write_one(store, change_of(key, value=self._codec.encode(value), **conditions))
        return value

    async def put_if_absent(self, key: Hashable, value: Value, **options: Unpack[AsyncWriteOptions]) -> DictCompareAndSetResult:
        """Store a value if the key is absent; `updated` says whether it was, and `current_value` what is there now."""
        return await self.compare_and_set(key, MISSING, value, revision=None, **options)

    async def update(
        self,
        values: Mapping[Any, Value] | Iterable[tuple[Any, Value]],
        *,
        ttl_s: float | None = None,
        fence: int | None = None,
        connection: AsyncConnection | None = None,
        **where: Unpack[Where],
    ) -> dict[Any, Value]:
        """Store several values, all or none, and give them back as a dict."""
        pairs = pairs_of(values)
        changes = [Change(text, value=self._codec.encode(value), fence=fence, ttl_s=ttl_s) for text, (_, value) in pairs.items()]
        if changes:
            await self._reach(**where).async_store_on(connection).execute(Write(self.name, changes, all_or_none=True))
        return dict(pairs.values())

    async def get(self, key: Hashable, *, default: Any = None, **where: Unpack[Where]) -> Value | Any:
        """The value under a key, or the default."""
        found = await self._reach(**where).async_store.execute(Read(self.name, [encode_key(key)]))
        return self._codec.decode(found.entries[0].value) if found.entries else default

    async def get_many(self, keys: Iterable[Hashable], **where: Unpack[Where]) -> dict[Any, Value]:
        """The values under several keys, as of one moment, unless they are more than 16 MiB; what is missing is left out."""
        texts = same_keys(keys)
        if not texts:
            return {}
        pages = entries_of(self._reach(**where).async_store, self.name, [*texts])
        return {texts[entry.key]: self._codec.decode(entry.value) async for page in pages for entry in page}

    async def get_entry(self, key: Hashable, **where: Unpack[Where]) -> DictEntry | None:
        """The value under a key with its revision, which grows with every write; None if it is missing."""
        reached = self._reach(**where)
        found = (await reached.async_store.execute(Read(self.name, [encode_key(key)]))).entries
        if not found:
            return None
        expires_at = wall_time(found[0].expires_at, reached.store.wall_offset_us())
        return DictEntry(key, self._codec.decode(found[0].value), found[0].revision, found[0].fence, expires_at)

    async def items(
        self,
        *,
        prefix: str | tuple[Hashable, ...] | None = None,
        after: Hashable | Missing = MISSING,
        limit: int | None = None,
        **where: Unpack[Where],
    ) -> Items[Value]:
        """Keys with their values, in order of the keys' text; under a prefix, after a key, up to a limit.

        Under a str are the str keys that begin with it, under a tuple the longer tuples. More than 10,000 are read page by page, and may
        change in between.
        """
        found: Items[Value] = []
        limit = None if limit is None else LIMIT.check(limit)
        most = self._reach(**where).async_store.limits.batch_items
        size = most if limit is None else min(limit, most)
        async for page in self.pages(prefix=prefix, after=after, size=size, **where):
            found += page
            if limit is not None and len(found) >= limit:
                break
        return found if limit is None else found[:limit]

    def pages(
        self,
        *,
        prefix: str | tuple[Hashable, ...] | None = None,
        after: Hashable | Missing = MISSING,
        size: int = PAGE,
        **where: Unpack[Where],
    ) -> AsyncIterator[Items[Value]]:
        """`items`, page by page."""
        store, size = self._reach(**where).async_store, SIZE.check(size)
        begins = "" if prefix is None else key_prefix(prefix)
        return self._pages(store, begins, None if isinstance(after, Missing) else encode_key(after), size)

    async def _pages(self, store: AsyncStore, begins: str, last: str | None, size: int) -> AsyncIterator[Items[Value]]:
        more = True
        while more:
            page = await store.execute(Read(self.name, None, begins, last, size))
            if page.entries:
                last = page.entries[-1].key
                yield [(decode_key(entry.key), self._codec.decode(entry.value)) for entry in page.entries]
            more = page.more

    async def pop(self, key: Hashable, *, default: Any = None, **options: Unpack[AsyncKeyOptions]) -> Value | Any:
        """Remove a key, and give the value it had, or the default."""
        store, conditions = self._conditions(ttl_s=None, **options)
        written = await self._write_one(store, change_of(key, do="delete", **conditions))
        return self._codec.decode(written.entry.value) if written.entry is not None else default

    async def increment(self, key: Hashable, by: float = 1, **options: Unpack[AsyncWriteOptions]) -> Any:
        """Add to the number under a key, from 0 where it is missing, and give the sum. `Refused` where there is no number."""
        store, conditions = self._conditions(**options)
        written = await self._write_one(store, change_of(key, do="increment", by=by, **conditions))
        return None if written.entry is None else self._codec.decode(written.entry.value)

    async def compare_and_set(
        self,
        key: Hashable,
        expected: Value | Missing | None,
        value: Value,
        *,
        revision: int | None = None,
        **options: Unpack[AsyncWriteOptions],
    ) -> DictCompareAndSetResult:
        """Store a value if the key holds the expected one.

        `expected=None` stands for None and for no entry, `MISSING` for no entry alone. With `revision=` that decides instead, and
        `expected` is not looked at; 0 is a missing key. A lease that is lost, or a fence that is too low, is `updated=False` too.
        """
        store, conditions = self._conditions(**options)
        if revision is None:
            conditions |= expectation(expected, self._codec)
        change = change_of(key, value=self._codec.encode(value), revision=revision, **conditions)
        (written,) = await store.execute(Write(self.name, [change]))
        current = None if written.entry is None else self._codec.decode(written.entry.value)
        return DictCompareAndSetResult(written.written, current, 0 if written.entry is None else written.entry.revision)

    async def update_with(
        self, key: Hashable, change: Callable[[Any], Value], *, default: Any = None, **options: Unpack[AsyncWriteOptions]
    ) -> Value:
        """Store what `change` makes of the value, and give it back; nothing that others write meanwhile is overwritten.

        `change` gets the default where the key is missing. It is called again, with the newer value, as long as others were faster, so
        it must only compute. Raises `LeaseLost` and `Refused` as `put` does.
        """
        store, conditions = self._conditions(**options)
        text = encode_key(key)
        for _ in range(TRIES):
            found = (await store.execute(Read(self.name, [text]))).entries
            value = change(self._codec.decode(found[0].value) if found else default)
            revision = found[0].revision if found else 0
            step = change_of(key, value=self._codec.encode(value), revision=revision, **conditions)
            if (await self._write_one(store, step)).written:
                return value
        raise Refused(f"key {key!r} of dict {self.name!r} was changed by others {TRIES:,} times in a row; nothing was written: use a lease")

    def watch(
        self,
        *,
        key: Hashable | Missing = MISSING,
        prefix: str | tuple[Hashable, ...] | None = None,
        last_index: int = -1,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        snapshot: bool = False,
        **where: Unpack[Where],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow what happens to the dict, to one key, or to the keys under a prefix.

        Begins after `last_index`, -1 being the oldest event that is still there; with `snapshot` an event `snapshot` for each key comes
        first, then `synced`. Ends when nothing came for `timeout_s`; None follows for ever, 0.0 gives what is there. Raises `Compacted`
        when the events asked for are gone.
        """
        subject = DictSubject(self.name, self._codec, *narrowing(key, prefix))
        store = self._reach(**where).async_store
        return watch(store, subject, last_index=last_index, timeout_s=timeout_s, poll_s=poll_interval_s, snapshot=snapshot)

    def _conditions(
        self,
        *,
        lease_id: str | None = None,
        fence: int | None = None,
        ttl_s: float | None = None,
        connection: AsyncConnection | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> tuple[AsyncExecutor, dict[str, Any]]:
        """What executes a change, and what else is said of it."""
        return self._reach(client, base_url).async_store_on(connection), {"lease": lease_id, "fence": fence, "ttl_s": ttl_s}

    async def _write_one(self, store: AsyncExecutor, change: Change) -> Written:
        """Make one change; what its lease or fence refuses is raised, a comparison that failed is answered."""
        (written,) = await store.execute(Write(self.name, [change]))
        raise_refused(self.name, change, written)
        return written
