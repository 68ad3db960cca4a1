"""Queues and dicts as a whole: empty, remove, list."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name
from holdfast.codec.fields import AFTER_NAME, CLEARED_PREFIX, DROP, EXACT, LIMIT, NAME_PREFIX, Field, check_fields
from holdfast.commands.argument_checks import KINDS, check_choice
from holdfast.commands.command import Command, Resource
from holdfast.commands.hints import ALL
from holdfast.commands.lanes import save_refreshed
from holdfast.commands.leases import end_leases
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.rebuilding import NO_POLICY
from holdfast.commands.topics import TOPICS, room_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import Entry, Lease
from holdfast.records.policies import Kind, Lane, Settings


class Clear(Command[int], frozen=True):
    """Empty a queue or a dict in one step, or with `drop` remove it with all its leases; return how much was in it.

    With `prefix` only the entries of a dict whose key text begins with it are removed.
    """

    verb: ClassVar[Verb] = "manage"
    answer_type: ClassVar[Any] = int
    checked: ClassVar[tuple[Field, ...]] = (DROP, CLEARED_PREFIX)

    kind: Kind
    name: str
    drop: bool = False
    prefix: str | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, KINDS, "kind")
        check_name(self.name, self.kind)
        check_fields(self, self.checked)
        if self.prefix is not None and (self.kind != "dict" or self.drop):
            raise ValueError("prefix is about the entries of a dict that stays: give kind='dict', without drop")

    def named(self, names: Renamer) -> Self:
        return renamed(self, name=names.object(self.kind, self.name, self.verb))

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield (self.kind, self.name), True

    def check(self, tx: Transaction) -> tuple[Settings | None, list[Lease]]:
        leases = list(tx.leases_of(self.name)) if self.kind == "dict" and self.drop else []
        return tx.settings(self.kind, self.name), leases

    def write(self, tx: Transaction, plan: tuple[Settings | None, list[Lease]]) -> int:
        settings, leases = plan
        if settings is None and not leases:
            return 0
        if leases:
            end_leases(tx, leases)
        if self.prefix is not None:
            return self._clear_prefix(tx, self.prefix)
        lanes = tx.find_lanes(self.name, "name", ALL) if self.kind == "queue" else []
        count = tx.clear(self.kind, self.name, drop=self.drop)
        tx.append([Draft(TOPICS[self.kind](self.name), "cleared", {"count": count, "dropped": self.drop})])
        if not self.drop and settings is not None and (settings.maxsize is not None or settings.policy is not None):
            tx.save([replace(settings, size=0, live=0)])
        if lanes:
            self._clear_lanes(tx, lanes, settings)
        if self.kind == "queue":
            tx.hints.wake(room_topic(self.name), ALL)
        return count

    def _clear_lanes(self, tx: Transaction, lanes: list[Lane], settings: Settings | None) -> None:
        if self.drop or settings is None:
            tx.save([lane.gone() for lane in lanes])
        else:
            save_refreshed(tx, settings.policy or NO_POLICY, [replace(lane, live=0) for lane in lanes])

    def _clear_prefix(self, tx: Transaction, prefix: str) -> int:
        entries: list[Entry] = list(tx.scan(self.name, prefix, None, ALL))
        tx.append([Draft(TOPICS[self.kind](self.name), "cleared", {"count": len(entries), "dropped": False, "prefix": prefix})])
        tx.save([entry.deleted() for entry in entries])
        return len(entries)


class Named(Struct, frozen=True, gc=False, omit_defaults=True):
    """Queues or dicts in order of their names."""

    settings: list[Settings]
    more: bool = False


class Names(Command[Named], frozen=True):
    """List queues or dicts by name, page by page, or with `exact` the one whose name is the prefix."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Named
    checked: ClassVar[tuple[Field, ...]] = (NAME_PREFIX, AFTER_NAME, LIMIT, EXACT)

    kind: Kind
    prefix: str = ""
    after: str | None = None
    limit: int = 1_000
    exact: bool = False

    def __post_init__(self) -> None:
        check_choice(self.kind, KINDS, "kind")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        prefix, after = names.listed(self.kind, self.prefix, self.after, self.verb, exact=self.exact)
        return renamed(self, prefix=prefix, after=after)

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Named:
        page = tx.names(self.kind, self.prefix, self.after, self.limit + 1)
        if self.exact:
            page = [one for one in page if one.name == self.prefix]
        return Named(page[: self.limit], len(page) > self.limit)

    def write(self, tx: Transaction, plan: Named) -> Named:
        del tx
        return plan
