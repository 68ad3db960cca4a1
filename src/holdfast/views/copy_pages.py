"""The pages of a copy: their order and size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from holdfast.commands import Copying, Fenced
from holdfast.commands.transaction import Cursor
from holdfast.records import Entry, Message, State
from holdfast.records.policies import Lane, Settings

PAGE = 500
PAGE_BYTES = 4 * 2**20
"""What is sent at once: well below every store's limits."""

STATES: tuple[State, ...] = ("buffered", "leased", "ready", "dead", "done")
SECTIONS = ("", "settings", "groups", "messages", "fences", "entries", "capacities")

R = TypeVar("R", Message, Entry)

Record = Message | Entry


class Place(Struct, frozen=True, array_like=True):
    """How far a copy has come; its text is what the target remembers."""

    section: str = ""
    name: str = ""
    state: State | None = None
    after: Cursor | None = None

    @property
    def text(self) -> str:
        return json.encode(self).decode() if self.section else ""

    @classmethod
    def parse(cls, text: str) -> "Place":
        return json.decode(text, type=cls) if text else cls()

    @property
    def part(self) -> tuple[int, str, int]:
        """Sorts places by section, queue or dict, and state."""
        return SECTIONS.index(self.section), self.name, 0 if self.state is None else STATES.index(self.state)

    def within(self, section: str, name: str = "", state: State | None = None) -> "Place | None":
        """Where to go on in a part: at its beginning, somewhere in it, or, None, no more."""
        beginning = Place(section, name, state)
        if self.part < beginning.part:
            return beginning
        return self if self.part == beginning.part else None


BEGINNING = Place()


class Page(Struct, frozen=True):
    """What one command takes into the target, and how far that is."""

    place: Place
    settings: Sequence[Settings] = ()
    messages: Sequence[Message] = ()
    fences: Sequence[Fenced] = ()
    entries: Sequence[Entry] = ()
    lanes: Sequence[Lane] = ()
    capacities: Mapping[str, int] = {}
    """By the keys of leases those that were set."""

    @property
    def records(self) -> list[Record]:
        return [*self.messages, *self.entries]

    def for_target(self, copying: Copying) -> "Page":
        """The page as it will be in the target."""
        return Page(
            self.place,
            [copying.settings(one) for one in self.settings],
            [copying.message(one) for one in self.messages],
            self.fences,
            [copying.entry(one) for one in self.entries],
            [copying.lane(one) for one in self.lanes],
            self.capacities,
        )

    def lasting(self, there: Sequence[Record]) -> list[Record]:
        """The records without entries that expired before they were read."""
        keys = {one.key for one in there}
        return [one for one in self.records if not isinstance(one, Entry) or one.expires_at is None or one.key in keys]


def without_fences(records: Sequence[Record]) -> list[Record]:
    """The records without the fences of entries: these are records of their own, and a store may show them in its entries or not."""
    return [replace(one, fence=0) if isinstance(one, Entry) else one for one in records]


def in_portions(records: Sequence[R]) -> Iterator[Sequence[R]]:
    """The records in their order, as many at a time as may be sent at once."""
    portion: list[R] = []
    size = 0
    for record in records:
        bytes_more = len(memoryview(record.value))
        if portion and size + bytes_more > PAGE_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(record)
        size += bytes_more
    if portion:
        yield portion
