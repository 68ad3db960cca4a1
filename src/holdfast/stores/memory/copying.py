"""Copy commands on a store in memory."""

from heapq import nsmallest
from itertools import islice

from holdfast.commands import Copying
from holdfast.commands.transaction import Fenced
from holdfast.errors import StoreError
from holdfast.records import Lease
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.undo import Undo


class Copies:
    """The copying half of a transaction."""

    tables: Tables
    now: int
    undo: Undo

    def next_n(self) -> int:
        if self.tables.by_reference:
            raise StoreError("values by reference are objects of this process and cannot be copied: put them into a store by value")
        return self.tables.last_number + 1

    def held_leases(self, limit: int) -> list[Lease]:
        leases = (lease for group in self.tables.leases.values() for lease in group.values())
        return list(islice((lease for lease in leases if lease.held_at(self.now)), limit))

    def fenced(self, after: tuple[str, str], limit: int) -> list[Fenced]:
        found = ((name, key, fence) for name, one in self.tables.dicts.each() for key, fence in one.fences.items() if (name, key) > after)
        return [Fenced(*row) for row in nsmallest(limit, found)]

    def raise_numbers(self, number: int, n: int) -> None:
        self.tables.last_number = max(self.tables.last_number, n)
        self.tables.log.raise_floors(max(number, self.tables.log.latest + 1), self.now)

    def copying(self) -> Copying | None:
        return self.tables.copying

    def save_copying(self, copying: Copying | None) -> None:
        self.tables.copying = copying

    def seal(self, to: str, target_at: int | None) -> None:
        del target_at  # What was in memory is gone, and no seal can be taken off it.
        for name in self.tables.queues:
            self.undo.note(self.tables.queues, name)
        self.tables.moved_to = to
        # Native answers, which ask nobody, find no queue from now on.
        self.tables.queues.clear()
