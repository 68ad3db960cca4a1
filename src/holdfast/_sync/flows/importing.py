# Generated from src/holdfast/_async/flows/importing.py by tools/unasync.py; do not edit.
"""Imports pages of records from outside a store, each read back and compared."""

from collections.abc import Callable, Iterable

from holdfast._sync.flows.copying import copy_page
from holdfast.commands import BeginImport, Copying, EndImport
from holdfast.commands.surveying import Surveyed
from holdfast.errors import StoreCorrupted
from holdfast.stores import Store
from holdfast.views.copy_pages import Page


def import_pages(
    target: Store,
    source: str,
    survey: Surveyed,
    pages: Iterable[Page],
    *,
    merge: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Copying:
    """Take the pages in, in this order; called again after an interruption, with the same source, those that are missing.

    Each page is asked for when the one before it is in the target. `progress` is called with the number of pages that are done.
    """
    copying = target.execute(BeginImport(source, survey, merge))
    is_there = bool(copying.place)
    for number, page in enumerate(pages, 1):
        if is_there:
            is_there = page.place.text != copying.place
            continue
        copying = copy_page(target, copying, page)
        if progress is not None:
            progress(number)
    if is_there:
        raise StoreCorrupted(f"an earlier import from {source} came further than this one has pages: empty the target, and import again")
    target.execute(EndImport())
    return copying
