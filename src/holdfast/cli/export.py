"""The command `holdfast export`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from holdfast._sync.flows.copying import contents_of, pages_of
from holdfast.cli.export_file import FORMAT, Header, write_export
from holdfast.cli.opening import AsJson, StoreUrl, reached
from holdfast.cli.progress import Lines, Show, progress_bar
from holdfast.cli.showing import print_result
from holdfast.commands import Survey
from holdfast.errors import Refused, StoreError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.views.copy_pages import Page


class Exported(Struct, frozen=True):
    """How much was written."""

    url: str
    file: str
    messages: int
    entries: int


def export(
    name: Annotated[str, typer.Argument(metavar="FILE", help="The file to write; - is the standard output.")] = "-",
    *,
    url: StoreUrl = None,
    progress: Lines = False,
    as_json: AsJson = False,
) -> None:
    """Write every queue and dict of a store as lines of JSON, for `holdfast import`, into any store.

    It fails, and leaves no file, if the store is written to meanwhile: stop its programs, or export a backup. Leases and events are not in
    it. Through a server it needs a token of scope admin.
    """
    with reached(url) as store, progress_bar("exporting", lines=progress, quiet=as_json) as show, written(name) as file:
        survey = store.execute(Survey())
        contents = contents_of(store, refuse_claims=False)
        header = Header(FORMAT, store.url, survey)
        trailer = write_export(file, header, shown_on(show, pages_of(store, contents), contents.total))
        if store.execute(Survey()).latest != survey.latest:
            raise Refused(
                "the store was written to meanwhile, so the export has no one moment: stop its programs, or export a backup of it"
            )
        done = Exported(store.url, name, trailer.messages, trailer.entries)
    text = f"Wrote {counted(done.messages, 'message')} and {counted(done.entries, 'entry', 'entries')} of {done.url} to {name}."
    if name != "-":
        print_result(done, text, as_json=as_json)


def shown_on(show: Show, pages: "Iterator[Page]", total: int) -> "Iterator[Page]":
    """The pages, with each of which the bar moves on."""
    done = 0
    for page in pages:
        yield page
        done += len(page.messages) + len(page.entries)
        show(done, total, page.place.name)


@contextmanager
def written(name: str) -> Iterator[IO[str]]:
    """The file to write: it gets its name when all of it is there."""
    if name == "-":
        yield sys.stdout
        return
    target, part = Path(name), Path(f"{name}.part")
    if target.exists():
        raise StoreError(f"{name} is there already: name another file, or remove it")
    try:
        with part.open("x", encoding="utf-8") as file:
            part.chmod(0o600)
            yield file
        part.rename(target)
    except FileExistsError:
        raise StoreError(f"{part} is there already: remove it, if no other export is running") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise
