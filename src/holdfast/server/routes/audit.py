"""`GET /v1/audit`: the audit log, page by page."""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct, json

from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.audit import AUDIT_PAGE, Audited, AuditPage, audit_page, read_audit
from holdfast.server.audit_end import page_from_the_end
from holdfast.server.auth.callers import caller_of, check
from holdfast.server.auth.permissions import AUDIT
from holdfast.stores import AsyncStore

PAGES: Final = 10
"""How many pages one request walks through."""

_ID = re.compile(r"[0-9a-f-]{0,36}")
_encode: Callable[[object], bytes] = json.Encoder().encode


class AuditRoute:
    """Reads the audit for who may: of the whole server, or of the one namespace that their token is for."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        caller = caller_of(scope)
        check(caller, AUDIT)
        page = await self._page(asked_for(scope), None if caller.sees_all else caller.namespace.name)
        await answer(scope, send, 200, _encode(page), JSON_TYPE)

    async def _page(self, asked: "Asked", namespace: str | None) -> AuditPage:
        """The next records of the namespace, None for all; what was done in others is skipped, as much of it as one request may."""
        records, after, more = list[Audited](), asked.after, True
        each = asked.limit if namespace is None else AUDIT_PAGE
        for _ in range(PAGES):
            page = await self._read(after, each, newest=asked.newest)
            records += [record for record in page.records if namespace in (None, record.namespace)]
            after, more = page.after, page.more
            if len(records) >= asked.limit or not more:
                break
        if len(records) > asked.limit:
            return AuditPage(records[: asked.limit], more=True, after=records[asked.limit - 1].id)
        return AuditPage(records, more, after)

    async def _read(self, after: str | None, limit: int, *, newest: bool) -> AuditPage:
        # Not through the caller's reach: the audit has a name that no caller may say.
        if newest:
            return await page_from_the_end(self._store, after, limit)
        return audit_page(await self._store.execute(read_audit(after, limit)))


class Asked(Struct, frozen=True):
    """From where on, how much, and in which order."""

    after: str | None
    limit: int
    newest: bool


def asked_for(scope: Scope) -> Asked:
    """What the query says."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if not query.keys() <= {"after", "limit", "newest"}:
        raise ValueError(f"the query has {', '.join(sorted(query))}; the audit takes after, limit and newest")
    limit = query.get("limit", [str(AUDIT_PAGE)])[-1]
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= AUDIT_PAGE:
        raise ValueError(f"limit must be a number from 1 to {AUDIT_PAGE:,}")
    after = query.get("after", [""])[-1]
    if not _ID.fullmatch(after):
        raise ValueError("after is not the id of a record")
    newest = query.get("newest", ["false"])[-1]
    if newest not in ("true", "false"):
        raise ValueError("newest must be true or false")
    return Asked(after or None, int(limit), newest == "true")
