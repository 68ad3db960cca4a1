"""The commands `holdfast lock ls` and `lock break`."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal, get_args

import typer

from holdfast.cli.commands import NOTHING
from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import as_data
from holdfast.cli.showing import moment_at, print_result, shown
from holdfast.codec import encode_key, key_prefix
from holdfast.wording import counted

Kind = Literal["lock", "election", "semaphore", "rwlock"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def list_(
    prefix: Annotated[str, typer.Argument(help="Only those whose name begins so.")] = "",
    *,
    dict_: Annotated[str | None, typer.Option("--dict", help="Leases on the keys of this dict.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only locks, elections, semaphores or read-write locks.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100_000, help="How many names at most.")] = 1_000,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List what is held: locks, elections, semaphores and read-write locks, with holder, token, since and until."""
    from holdfast._sync.flows.listing import held_leases

    with connected(url) as client:
        pages = (held_leases(client.store, dict_, beginning, limit) for beginning in _beginnings(prefix, kind, of_dict=dict_ is not None))
        found = list(islice((one for page in pages for one in page), limit))
    rows = [
        (str(one.name), one.kind or "key", held.holder, str(held.token), moment_at(held.since), moment_at(held.until), _line(one))
        for one in found
        for held in one.holders
    ]
    heads = ("name", "kind", "holder", "token", "since", "until", "waiting")
    print_result(as_data(found), shown(heads, rows) if rows else f"Nothing is held in {client.url}.", as_json=as_json)


def break_(
    name: Annotated[str, typer.Argument(help="The name, or with --dict the key.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; it is in the audit, and the event tells it.")],
    kind: Annotated[Kind, typer.Option(help="What it is: lock, election, semaphore or rwlock.")] = "lock",
    dict_: Annotated[str | None, typer.Option("--dict", help="It is a lease on a key of this dict.")] = None,
    token: Annotated[int | None, typer.Option(help="Only the lease with this token, as `ls` shows it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Take a lease from its holder. Exits with 3 if it is not held.

    The next holder has a higher token, so the old one is fenced. What the old holder does elsewhere goes on until it notices: at its next
    renewal, or where it shows its token.
    """
    from holdfast._sync.flows.listing import break_lease

    if not yes:
        typer.confirm(f"Take {name} from its holder?", abort=True, err=True)
    key = encode_key(name if dict_ is not None else (kind, name))
    with connected(url) as client:
        broken = break_lease(client.store, dict_, key, reason, token)
    who = ", ".join(f"{one.holder} (token {one.token})" for one in broken)
    text = f"{counted(len(broken), 'lease')} of {name} taken from {who}." if broken else f"{name} is not held."
    print_result({"broken": as_data(broken)}, text, as_json=as_json)
    if not broken:
        raise typer.Exit(NOTHING)


def _beginnings(prefix: str, kind: Kind | None, *, of_dict: bool) -> Iterator[str]:
    """What the stored names begin with; those of locks and so on have the kind before the name."""
    if of_dict:
        yield key_prefix(prefix) if prefix else ""
    elif prefix or kind is not None:
        for each in KINDS if kind is None else (kind,):
            yield key_prefix((each,)) + key_prefix(prefix)
    else:
        yield ""


def _line(one: Any) -> str:
    return "" if one.waiting is None else str(one.waiting)
