"""The command `holdfast mcp`."""

from typing import Annotated

import typer
from msgspec.structs import replace

from holdfast.cli.opening import StoreUrl, connected, this_user
from holdfast.errors import MissingExtra
from holdfast.process.interrupts import interrupts_wait

EXTRA = {"mcp", "mcp_types", "pydantic", "anyio"}


def mcp(
    *,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only tools that look, none that act.")] = False,
    url: StoreUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Accepted: the protocol is JSON anyway.")] = True,
) -> None:
    """Serve a store to an AI assistant over standard input and output, by the Model Context Protocol, until the input ends.

    It can look at queues, messages, dead letters and workers, explain why a message does not run, and examine the store; without
    --read-only also redrive, pause, resume and cancel. Through a server it can do what the token in HOLDFAST_TOKEN may. Every act is in the
    audit.
    """
    del as_json
    try:
        with interrupts_wait():
            from holdfast.cli.mcp.tools import server_of
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in EXTRA:
            raise
        raise MissingExtra("it needs its extra: pip install 'holdfast[mcp]'") from None
    me = this_user()
    with connected(url, by=replace(me, who=me.who.replace("at the command line", "by an assistant (MCP)"))) as client:
        with interrupts_wait():  # It is built by code in Rust, which reports an interrupt as an error of a schema.
            server = server_of(client, read_only=read_only)
        server.run("stdio")
