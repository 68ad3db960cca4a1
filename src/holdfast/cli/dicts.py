"""The commands `holdfast dict …`: ls, get, put, cas, delete, watch."""

from typing import Annotated, Any

import typer

from holdfast.cli.commands import LOST, NOTHING
from holdfast.cli.known_names import refuse_unknown
from holdfast.cli.opening import AlwaysJson, AsJson, CreateStore, StoreUrl, connected, value_of
from holdfast.cli.queue.messages import as_data, cut, line
from holdfast.cli.showing import print_result, shown

dicts: typer.Typer = typer.Typer(no_args_is_help=True, help="Shared dicts: read and change entries, follow them.")

DictName = Annotated[str, typer.Argument(metavar="DICT", help="The name of the dict.")]
Key = Annotated[str, typer.Argument(help="The key, a text; with --json-key any key, as JSON.")]
JsonKey = Annotated[bool, typer.Option("--json-key", help="The key is JSON: a number, a text in quotes, or a list for a tuple.")]
Value = Annotated[str, typer.Argument(help="The value as JSON; a text needs quotes.")]
Revision = Annotated[int | None, typer.Option(help="Only if the entry has this revision; 0 is an entry that is not there.")]
TimeToLive = Annotated[float | None, typer.Option("--ttl-s", help="Remove the entry after so many seconds.")]
Fence = Annotated[int | None, typer.Option(help="A fencing token: refused if a larger one has written the entry.")]


@dicts.command("ls")
def list_(
    name: Annotated[str | None, typer.Argument(metavar="DICT", help="The dict whose entries are listed; without it all dicts.")] = None,
    prefix: Annotated[str, typer.Argument(help="Only names, or keys that are texts, that begin so.")] = "",
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100_000, help="How many entries at most.")] = 1_000,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the dicts, or the entries of one. Exits with 3 if there is no such dict."""
    from holdfast import Dict

    with connected(url) as client:
        if name is None:
            found = [{"name": one.name, "entries": one.length(client=client)} for one in Dict.list(prefix=prefix, client=client)]
            rows = [(str(one["name"]), str(one["entries"])) for one in found]
            print_result(found, shown(("dict", "entries"), rows) if rows else f"No dicts in {client.url}.", as_json=as_json)
            return
        refuse_unknown(client.store, "dict", name)
        items = list(Dict.from_name(name, client=client).items(prefix=prefix or None, limit=limit))
    text = shown(("key", "value"), [(str(key), cut(line(value))) for key, value in items]) if items else "No entries."
    print_result([{"key": as_data(key), "value": as_data(value)} for key, value in items], text, as_json=as_json)


@dicts.command()
def get(name: DictName, key: Key, *, json_key: JsonKey = False, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Print the value under a key, as JSON; with `--json` also revision, fence and expiry. Exits with 3 if there is none."""
    from holdfast import Dict

    with connected(url) as client:
        entry = Dict.from_name(name, client=client).get_entry(key_of(key, json_key=json_key))
        if entry is None:
            refuse_unknown(client.store, "dict", name)
            raise typer.Exit(NOTHING)
    print_result(as_data(entry), line(entry.value), as_json=as_json)


@dicts.command()
def put(
    name: DictName,
    key: Key,
    value: Value,
    *,
    ttl_s: TimeToLive = None,
    fence: Fence = None,
    if_absent: Annotated[bool, typer.Option("--if-absent", help="Only if there is none yet; else it exits with 4.")] = False,
    json_key: JsonKey = False,
    url: StoreUrl = None,
    create_store: CreateStore = False,
    as_json: AsJson = False,
) -> None:
    """Set the value under a key."""
    from holdfast import Dict

    options: Any = {"ttl_s": ttl_s, "fence": fence}
    with connected(url, create=create_store) as client:
        handle = Dict[Any].from_name(name, client=client)
        if if_absent:
            _report(handle.put_if_absent(key_of(key, json_key=json_key), value_of(value, "the value"), **options), key, as_json=as_json)
            return
        handle.put(key_of(key, json_key=json_key), value_of(value, "the value"), **options)
    print_result({"key": key, "updated": True}, f"Set {key}.", as_json=as_json)


@dicts.command()
def cas(
    name: DictName,
    key: Key,
    value: Value,
    *,
    expected: Annotated[str | None, typer.Option(help="The value, as JSON, that the entry must have.")] = None,
    revision: Revision = None,
    ttl_s: TimeToLive = None,
    fence: Fence = None,
    json_key: JsonKey = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare and set: change an entry only if it is as expected, by value or by revision. Exits with 4 if it is not."""
    from holdfast import Dict

    if (expected is None) == (revision is None):
        raise ValueError("give either --expected, the value that must be there, or --revision")
    wanted = None if expected is None else value_of(expected, "--expected")
    with connected(url) as client:
        handle = Dict[Any].from_name(name, client=client)
        done = handle.compare_and_set(
            key_of(key, json_key=json_key), wanted, value_of(value, "the value"), revision=revision, ttl_s=ttl_s, fence=fence
        )
        _report(done, key, as_json=as_json)


@dicts.command()
def delete(
    name: DictName, key: Key, *, revision: Revision = None, json_key: JsonKey = False, url: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Remove an entry. Exits with 3 if there is none, or none of this revision."""
    from holdfast import Dict

    with connected(url) as client:
        done = Dict.from_name(name, client=client).delete(key_of(key, json_key=json_key), revision=revision)
        if not done.count:
            refuse_unknown(client.store, "dict", name)
    print_result({"key": key, "deleted": done.count}, f"Removed {key}." if done.count else f"There is no {key}.", as_json=as_json)
    if not done.count:
        raise typer.Exit(NOTHING)


@dicts.command()
def watch(
    name: DictName,
    *,
    prefix: Annotated[str | None, typer.Option(help="Only keys, texts, that begin so.")] = None,
    last_index: Annotated[int, typer.Option(help="Go on behind this event; -1 is the oldest that is still there.")] = -1,
    timeout_s: Annotated[float | None, typer.Option(help="End when nothing came for so many seconds; by default never.")] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Begin with an event for each entry.")] = False,
    url: StoreUrl = None,
    as_json: AlwaysJson = True,
) -> None:
    """Follow the changes of a dict, one JSON object per line."""
    del as_json
    from holdfast import Dict

    with connected(url) as client:
        handle = Dict.from_name(name, client=client)
        for event in handle.watch(prefix=prefix, last_index=last_index, timeout_s=timeout_s, snapshot=snapshot):
            typer.echo(line(event))


def key_of(text: str, *, json_key: bool) -> Any:
    """The key that is meant: the text itself, or what it says as JSON, in which a list stands for a tuple."""
    return _hashable(value_of(text, "the key")) if json_key else text


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if isinstance(key, list) else key


def _report(done: Any, key: str, *, as_json: bool) -> None:
    """Say whether a compare-and-set was done; exit with 4 if not."""
    text = (
        f"Set {key}, revision {done.revision}." if done.updated else f"{key} is {cut(line(done.current_value))}, revision {done.revision}."
    )
    print_result(as_data(done), text, as_json=as_json)
    if not done.updated:
        raise typer.Exit(LOST)
