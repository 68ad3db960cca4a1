"""`holdfast mcp`, by the client of the official SDK over standard input and output: on a store, and through a server with tokens."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from msgspec import json

from holdfast import ControlPlaneClient, Queue
from holdfast.testing import servers
from tests.cli.running import holdfast

LOOKING = {"queues", "stats", "browse", "dead_letters", "explain", "workers", "doctor"}
ACTING = {"redrive", "pause", "resume", "cancel"}


def fill(url: str) -> str:
    """A queue with a ready message and a dead letter; return the letter's id."""
    with ControlPlaneClient(url) as client:
        mail = Queue.create("mail", client=client)
        letter = str(mail.put({"to": "bob"}))
        claim = mail.claim()
        assert claim is not None
        mail.bury(claim, error="ValueError: no address")
        mail.put({"to": "ann"})
    return letter


def ask(url: str, *calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = (), token: str = "") -> tuple[set[str], list[Any]]:
    """The names of the tools, and what each call gave: its data, or the text of its error."""

    async def talk() -> tuple[set[str], list[Any]]:
        command = ["-c", "from holdfast.cli import main; main()", "mcp", f"--url={url}", *options]
        environment = {**os.environ, "HOLDFAST_TOKEN": token} if token else dict(os.environ)
        parameters = StdioServerParameters(command=sys.executable, args=command, env=environment)
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            return names, [shown(await session.call_tool(name, given)) for name, given in calls]

    return anyio.run(talk)


def shown(result: Any) -> Any:
    if result.is_error:
        return result.content[0].text
    found = result.structured_content
    return found["result"] if set(found) == {"result"} else found


def audit(url: str) -> list[tuple[str, str, str]]:
    records = json.decode(holdfast("audit", f"--url={url}", "--json").stdout)
    return [(one["who"], one["act"], one["what"]) for one in records]


def test_an_assistant_looks_acts_and_is_in_the_audit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    letter = fill(url)
    names, answers = ask(
        url,
        ("queues", {}),
        ("dead_letters", {"queue": "mail"}),
        ("explain", {"queue": "mail", "message_id": letter}),
        ("doctor", {}),
        ("redrive", {"queue": "mail"}),
        ("redrive", {"queue": "mail", "ids": [letter]}),
        ("pause", {"queue": "mail"}),
        ("cancel", {"queue": "mail", "ids": [letter]}),
        ("stats", {"queue": "mail"}),
    )
    queues, letters, explained, findings, refused, redriven, paused, cancelled, stats = answers
    assert names == LOOKING | ACTING
    assert (queues[0]["ready"], queues[0]["dead"], letters["by_error"]) == (1, 1, {"ValueError": 1})
    assert "no address" in explained["text"]
    assert any("dead letter" in one["finding"] for one in findings)
    assert "all dead letters at once is for a person" in refused
    assert (redriven["count"], paused["paused"], cancelled["count"], stats["ready"]) == (1, True, 1, 1)
    acts = audit(url)
    assert [(act, what) for _, act, what in acts] == [("redrive", "queue:mail"), ("configure", "queue:mail"), ("purge", "queue:mail")]
    assert all("by an assistant (MCP)" in who for who, _, _ in acts)


def test_read_only_offers_no_tool_that_acts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    fill(url)
    names, [answer] = ask(url, ("pause", {"queue": "mail"}), options=("--read-only",))
    assert names == LOOKING
    assert "pause" in answer
    assert audit(url) == []


def test_through_a_server_a_token_decides_and_the_server_keeps_the_audit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    letter = fill(url)
    tokens = {
        name: holdfast("token", "create", name, f"--scope={scope}", f"--url={url}").stdout.strip()
        for name, scope in (("looker", "queue:*:read"), ("operator", "queue:*:read,manage"))
    }
    with servers.holdfast(url) as server:
        _, [stats, refused] = ask(
            server.url, ("stats", {"queue": "mail"}), ("redrive", {"queue": "mail", "ids": [letter]}), token=tokens["looker"]
        )
        _, [redriven] = ask(server.url, ("redrive", {"queue": "mail", "ids": [letter]}), token=tokens["operator"])
    assert stats["dead"] == 1
    assert "NotAllowed" in refused
    assert redriven["count"] == 1
    [who] = [who for who, act, _ in audit(url) if act == "redrive"]
    assert who.startswith("token ")
