"""Imports pages of records from outside a store, each read back and compared."""

from collections.abc import Callable, Sequence

from holdfast._async.flows.copying import copy_page
from holdfast.commands import BeginImport, Copying, EndImport
from holdfast.commands.surveying import Surveyed
from holdfast.copy_pages import Page
from holdfast.stores import AsyncStore


async def import_pages(
    target: AsyncStore,
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
    copying = await target.execute(BeginImport(source, survey, merge))
    places = [page.place.text for page in pages]
    done = places.index(copying.place) + 1 if copying.place else 0
    for number, page in enumerate(pages[done:], done + 1):
        copying = await copy_page(target, copying, page)
        if progress is not None:
            progress(number)
    await target.execute(EndImport())
    return copying
