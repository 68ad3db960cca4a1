"""The command `holdfast audit`."""

import time
from typing import Annotated

import typer
from msgspec import json

from holdfast.cli.opening import AsJson, StoreUrl, opened, seconds_of
from holdfast.cli.showing import moment, print_result, shown
from holdfast.server.audit import Audited, audit_page, id_at, read_audit
from holdfast.stores import Store


def audit(
    *,
    since: Annotated[str, typer.Option(help="How far back to look: 15m, 12h, 30d.")] = "90d",
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the acts of administrators, oldest first."""
    with opened(url) as store:
        records = _read(store, id_at(time.time() - seconds_of(since)))
    rows = [(moment(each.at), each.who, each.where, each.namespace, each.act, each.what, _facts(each)) for each in records]
    heads = ("when", "who", "from", "namespace", "did", "to", "more")
    print_result(records, shown(heads, rows) if rows else f"No acts in {store.url} in that time.", as_json=as_json)


def _read(store: Store, after: str) -> list[Audited]:
    records: list[Audited] = []
    page = audit_page(store.execute(read_audit(after)))
    records += page.records
    while page.after is not None:
        page = audit_page(store.execute(read_audit(page.after)))
        records += page.records
    return records


def _facts(record: Audited) -> str:
    return json.encode(record.facts).decode() if record.facts else ""
