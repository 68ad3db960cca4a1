"""Reading the audit from its end. A dict is read forwards only, but the ids of records begin with their time."""

import math
import time
from collections import deque
from typing import Final

from holdfast.server.audit import AUDIT_PAGE, KEPT_S, Audited, AuditPage, audit_page, id_at, read_audit
from holdfast.stores import AsyncStore

FIRST_S: Final = 60.0
GROWTH: Final = 8.0
TRIES: Final = 48
"""How often another length of time is tried: enough to go from a minute to all that is kept, and back to a millisecond."""


async def page_from_the_end(store: AsyncStore, before: str | None, limit: int) -> AuditPage:
    """The last records before an id, or of all, the newest first; with `more`, read on `after` that id.

    It reads what was written within some time before the id: longer if that was too little, shorter if it was much more than a page.
    """
    end = time.time() if before is None else _time_of(before)
    short, long, span = 0.0, math.inf, FIRST_S
    for _ in range(TRIES):
        found = await _since(store, end - span, before, min(AUDIT_PAGE, limit * 8))
        if found is None:
            long = span
        elif len(found) >= limit or span > KEPT_S:
            return _page(found, limit, is_all=span > KEPT_S)
        else:
            short = span
        span = min(short * GROWTH, KEPT_S * 2) if long == math.inf else (short + long) / 2
    # So many were written at one moment that only reading them all finds the last.
    last = deque[Audited](maxlen=limit + 1)
    after: str | None = id_at(end - long)
    while after is not None:
        page = audit_page(await store.execute(read_audit(after)))
        last += (record for record in page.records if before is None or record.id < before)
        after = page.after if before is None or (page.after or "") < before else None
    return _page([*last], limit, is_all=False)


async def _since(store: AsyncStore, start: float, before: str | None, most: int) -> list[Audited] | None:
    """What was written from a moment on and before an id; None if that is more than `most`."""
    page = audit_page(await store.execute(read_audit(id_at(start), most)))
    found = [record for record in page.records if before is None or record.id < before]
    return None if page.more and len(found) == len(page.records) else found


def _page(found: list[Audited], limit: int, *, is_all: bool) -> AuditPage:
    records = found[::-1][:limit]
    more = bool(records) and (len(found) > limit or not is_all)
    return AuditPage(records, more, records[-1].id if more else None)


def _time_of(record_id: str) -> float:
    """Seconds of the wall clock, since 1970."""
    return int(record_id.replace("-", "")[:12].ljust(12, "0"), 16) / 1_000
