"""The command `holdfast lower-fences`: on the store itself, on the machine that has it."""

from typing import Annotated

import typer
from msgspec.structs import replace

from holdfast.cli.opening import AsJson, StoreUrl, opened, this_user
from holdfast.cli.showing import print_result
from holdfast.commands import LowerFences, Together
from holdfast.server.audit import acts_of, recorded
from holdfast.server.namespaces.names import DEFAULT_NAME, Namespace
from holdfast.wording import counted


def lower_fences(
    name: Annotated[str, typer.Argument(metavar="DICT", help="The name of the dict.")],
    *,
    namespace: Annotated[str, typer.Option(help="The namespace that the dict is in.")] = DEFAULT_NAME,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Lower the fences of a dict that stand above every token, so that holders can write again.

    Such a fence was written by an older version, or came with a copy. All others stay, so running this does no harm.
    """
    command = LowerFences(Namespace.named(namespace).inside(name))
    record = recorded(replace(this_user(), namespace=namespace), *acts_of(LowerFences(name)))
    with opened(url) as store:
        count = lowered = store.execute(Together([command, record]))[0]
        while lowered == command.limit:
            lowered = store.execute(command)
            count += lowered
    text = f"No fence of dict {name!r} stands above the newest token; nothing was changed."
    if count:
        text = f"Lowered {counted(count, 'fence')} of dict {name!r} to the newest token. Holders of these keys acquire them again."
    print_result({"dict": name, "lowered": count}, text, as_json=as_json)
