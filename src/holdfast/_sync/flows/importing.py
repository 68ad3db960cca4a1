# Generated from src/holdfast/_async/flows/importing.py by tools/unasync.py; do not edit.
"""Imports pages of records from outside a store, each read back and compared."""

from collections.abc import Callable, Sequence

from holdfast._sync.flows.copying import copy_page
from holdfast.commands import BeginImport, Copying, EndImport
from holdfast.commands.surveying import Surveyed
from holdfast.copy_pages import Page
from holdfast.stores import Store


def import_pages(
    target: Store,
    source: str,
    survey: Surveyed,
    pages: Sequence[Page],
    *,
    merge: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Copying:
    """Take the pages in, in this order; called again after an interruption, with the same source, those that are missing.

    `progress` is called with the number of pages that are done.
    """
    copying = target.execute(BeginImport(source, survey, merge))
    places = [page.place.text for page in pages]
    done = places.index(copying.place) + 1 if copying.place else 0
    for number, page in enumerate(pages[done:], done + 1):
        copying = copy_page(target, copying, page)
        if progress is not None:
            progress(number)
    target.execute(EndImport())
    return copying
