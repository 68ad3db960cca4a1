"""Copy commands on a store in memory."""

from holdfast.commands import Copying
from holdfast.errors import StoreError
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

    def raise_numbers(self, number: int, n: int, *, lost: bool) -> None:
        del lost  # What was in memory is gone with it.
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
