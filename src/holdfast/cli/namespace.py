"""The commands `holdfast namespace quota` and `list`: on the store itself, on the machine that has it."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer
from msgspec import to_builtins
from msgspec.structs import fields, replace

from holdfast._sync.flows.naming import all_named
from holdfast.cli.opening import AsJson, StoreUrl, opened, this_user
from holdfast.cli.showing import print_result, shown
from holdfast.process.event_loops import run_coroutine
from holdfast.records.policies import Kind
from holdfast.server.auth.scopes import ANY
from holdfast.server.namespaces import usage
from holdfast.server.namespaces.names import DEFAULT, Namespace, is_reserved
from holdfast.server.namespaces.quotas import UNLIMITED, Quota, list_quotas, set_quota
from holdfast.stores import Store

NONE: Final = "none"
_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_AMOUNT = re.compile(r"(\d{1,15})(|[KMGT]iB)")

namespace: typer.Typer = typer.Typer(no_args_is_help=True, help="Namespaces, and how much each may use.")


@namespace.command()
def quota(
    name: Annotated[str, typer.Argument(help="The namespace; * is every one that has no quota of its own.")],
    *,
    queues: Annotated[str | None, typer.Option(help="How many queues it may have; none for any number.")] = None,
    dicts: Annotated[str | None, typer.Option(help="How many dicts it may have; none for any number.")] = None,
    bytes_: Annotated[str | None, typer.Option("--bytes", help="How many bytes it may store, as in 500MiB or 1GiB; none for any.")] = None,
    waits: Annotated[str | None, typer.Option(help="How many of its requests may wait or watch, on each server; none for any.")] = None,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the quota of a namespace, or change what is given of it."""
    given = {"queues": queues, "dicts": dicts, "bytes": bytes_, "waits": waits}
    changes = {what: amount_of(text, what) for what, text in given.items() if text is not None}
    with opened(url) as store:
        kept = replace(list_quotas(store).get(name, UNLIMITED), **changes)
        if changes:
            set_quota(store, name, kept, by=this_user())
    told = {"namespace": name, **_told(kept)}
    print_result(told, shown(("namespace", *_WHAT), [(name, *_cells(kept))]), as_json=as_json)


@namespace.command("list")
def list_(
    *,
    count_bytes: Annotated[bool, typer.Option("--count-bytes", help="Count the bytes of each too, which reads everything in it.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the namespaces that have queues, dicts or a quota, and how many queues and dicts each has."""
    with opened(url) as store:
        quotas = list_quotas(store)
        used = _used(store)
        if count_bytes:
            for name, has in used.items():
                has["bytes"] = run_coroutine(usage.count_bytes(store.for_tasks(), Namespace.named(name)))
    names = sorted(used.keys() | quotas.keys())
    rest = quotas.get(ANY, UNLIMITED)
    counted = ("queues", "dicts", "bytes") if count_bytes else ("queues", "dicts")
    rows = [(name, dict.fromkeys(counted, 0) | used.get(name, {}), quotas.get(name, rest)) for name in names]
    told = [{"namespace": name, "used": has, "quota": _told(kept)} for name, has, kept in rows]
    heads = ("namespace", *(f"has {what}" for what in counted), *(f"quota: {what}" for what in _WHAT))
    cells = [(name, *(f"{count:,}" for count in has.values()), *_cells(kept)) for name, has, kept in rows]
    print_result(told, shown(heads, cells), as_json=as_json)


def amount_of(text: str, what: str) -> int | None:
    """Read a number, of bytes also with a unit; `none` is no limit."""
    if text == NONE:
        return None
    found = _AMOUNT.fullmatch(text)
    if found is None or (found[2] and what != "bytes"):
        raise ValueError(f"--{what} must be a number{', as in 1048576, 500MiB or 1GiB' if what == 'bytes' else ''}, or none, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


_WHAT: Final = tuple(field.name for field in fields(Quota))


def _told(kept: Quota) -> dict[str, Any]:
    given: dict[str, Any] = to_builtins(kept)
    return dict.fromkeys(_WHAT) | given


def _cells(kept: Quota) -> list[str]:
    return [NONE if most is None else f"{most:,}" for most in _told(kept).values()]


def _used(store: Store) -> dict[str, dict[str, int]]:
    used: dict[str, dict[str, int]] = {}
    kinds: tuple[Kind, ...] = ("queue", "dict")
    for kind in kinds:
        for name in _namespaced(store, kind):
            used.setdefault(name, {"queues": 0, "dicts": 0})[f"{kind}s"] += 1
    return used


def _namespaced(store: Store, kind: Kind) -> Iterator[str]:
    """The namespace of every queue or dict, but for the server's own."""
    for settings in all_named(store, kind):
        name = settings.name[1:].partition("/")[0] if is_reserved(settings.name) else DEFAULT.name
        if name:
            yield name
