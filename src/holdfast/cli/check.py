"""The command `holdfast check`."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import typer
from msgspec import DecodeError, Struct, json

from holdfast._sync.flows.copying import Contents, contents_of, pages_of
from holdfast.cli.commands import FAILED
from holdfast.cli.opening import AsJson, StoreUrl, reached
from holdfast.cli.progress import Lines, Show, progress_bar
from holdfast.cli.showing import print_result
from holdfast.commands import Survey
from holdfast.connect import BACKUPS, backups_of
from holdfast.stores import Store
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.views.copy_pages import Page

PROBLEMS: Final = 20
"""So many are named."""
TRIES: Final = 3
"""How often a store is read that is written to meanwhile."""


class Checked(Struct, frozen=True):
    """What was read, and what is wrong with it."""

    url: str
    messages: int
    entries: int
    problems: list[str]
    is_at_rest: bool
    """Whether nothing was written meanwhile; else counts were not compared."""


def check(*, url: StoreUrl = None, progress: Lines = False, as_json: AsJson = False) -> None:
    """Read everything in a store, look for damage, and compare it with the counts that the store keeps. Exits with 1 if it finds any.

    A SQLite or LMDB file is also checked page by page. Through a server it needs a token of scope admin.
    """
    with progress_bar("reading", lines=progress, quiet=as_json) as show:
        with reached(url) as store:
            is_file = store.url.partition("://")[0] in BACKUPS
            checked = read_all(store, show)
        # Behind the store: two of one file in a process would end each other's locks.
        found = backups_of(url).damage(PROBLEMS) if is_file else []
    checked.problems[:0] = [f"the file is damaged: {one}" for one in found]
    rest = "" if checked.is_at_rest else " It was written to meanwhile, so counts were not compared."
    read = f"{counted(checked.messages, 'message')} and {counted(checked.entries, 'entry', 'entries')} of {checked.url} were read"
    lines = [f"{read}: {counted(len(checked.problems), 'problem')}.{rest}", *checked.problems]
    print_result(checked, "\n".join(lines), as_json=as_json)
    if checked.problems:
        raise typer.Exit(FAILED)


def read_all(store: Store, show: Show) -> Checked:
    """Read every page, again if the store was written to meanwhile."""
    tries = 0
    while True:
        tries += 1
        before, contents = store.execute(Survey()), contents_of(store, refuse_claims=False)
        read = Read()
        for page in pages_of(store, contents):
            read.take(page)
            show(read.messages + read.entries, contents.total, page.place.name)
        is_at_rest = store.execute(Survey()).latest == before.latest
        if is_at_rest or tries == TRIES:
            problems = [*read.problems, *(read.differences(contents) if is_at_rest else ())]
            return Checked(store.url, read.messages, read.entries, problems[:PROBLEMS], is_at_rest)


class Read:
    """What was read so far."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._messages: Counter[str] = Counter()
        self._entries: Counter[str] = Counter()

    @property
    def messages(self) -> int:
        return self._messages.total()

    @property
    def entries(self) -> int:
        return self._entries.total()

    def take(self, page: "Page") -> None:
        """Look at the records of a page."""
        for message in page.messages:
            self._messages[message.queue] += 1
            self._look(message.value, f"message {message.id} of queue {message.queue!r}")
        for entry in page.entries:
            self._entries[entry.dict] += 1
            self._look(entry.value, f"key {entry.key} of dict {entry.dict!r}")

    def differences(self, contents: Contents) -> Iterator[str]:
        """Where the store counts otherwise. Entries that came to their end meanwhile are no difference."""
        for queue, count in contents.messages.items():
            if self._messages[queue] != count:
                yield f"queue {queue!r} counts {count:,} messages and has {self._messages[queue]:,}"
        for name, count in contents.entries.items():
            if self._entries[name] > count:
                yield f"dict {name!r} counts {count:,} entries and has {self._entries[name]:,}"

    def _look(self, value: object, what: str) -> None:
        try:
            json.decode(bytes(value))  # type: ignore[call-overload]  # it is text of JSON
        except (DecodeError, UnicodeDecodeError) as error:
            self.problems.append(f"the value of {what} cannot be read: {error}")
