"""Setting the capacity of a lease."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from holdfast.codec.fields import CAPACITY, Field, check_fields
from holdfast.commands.argument_checks import check_key
from holdfast.commands.command import Command, Resource
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.refusal_errors import plain_lease
from holdfast.commands.shares import Swept, new_shared, wake_line
from holdfast.commands.topics import log_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records.shares import Shared


class Resized(Struct, frozen=True, gc=False, omit_defaults=True):
    """The capacity that counts now, None where the first caller to ask says so, and how much of it is in use."""

    capacity: int | None = None
    used: int = 0


class Resize(Command[Resized], frozen=True):
    """Set the capacity of a name, whatever those who use it say; or, with None, let them say so again.

    No holder loses its share: with less than is in use, nothing is granted until it fits. It stays set while the name is not in use.
    """

    verb: ClassVar[Verb] = "manage"
    answer_type: ClassVar[Any] = Resized
    checked: ClassVar[tuple[Field, ...]] = (CAPACITY,)

    key: str
    capacity: int | None

    def __post_init__(self) -> None:
        check_key(self.key)
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        _, key = names.lease(None, self.key, self.verb)
        return renamed(self, key=key)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("lease", None, self.key), True

    def check(self, tx: Transaction) -> Swept | None:
        current = tx.leases([(None, self.key)]).get((None, self.key))
        if isinstance(current, Shared):
            swept = Swept.of(tx, current)
            capacity = current.capacity if self.capacity is None else self.capacity
            return replace(swept, shared=replace(swept.shared, capacity=capacity, resized=self.capacity is not None))
        if current is not None and current.held_at(tx.now):
            raise plain_lease(current)
        return None if self.capacity is None else Swept(replace(new_shared(self.key, self.capacity), resized=True), [])

    def write(self, tx: Transaction, plan: Swept | None) -> Resized:
        if plan is None:
            return Resized()
        plan.write(tx)
        tx.append([Draft(log_topic(None, self.key), "resized", {"key": self.key, "capacity": self.capacity})])
        wake_line(tx, plan.shared)
        return Resized(None if plan.shared.is_gone else plan.shared.capacity, plan.shared.used)
