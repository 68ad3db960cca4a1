"""On a real PostgreSQL and a real Redis: large commands of one token do not keep the small ones of another waiting."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.hostile_honest import Asker, Failed
from holdfast.commands import Put
from holdfast.connect import connect
from holdfast.server import app
from holdfast.server.app import ControlPlane
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores import AsyncStore
from holdfast.testing.conformance.asking import item
from tests.stores_by_name import url_of

BACKLOG = 2_000
EAGER = 80
STEP = {"commands": [{"type": "Count", "queue": "jobs", "which": {"label": "none"}}] * 10}
"""Each looks at 1,000 messages: counts of a whole queue cost next to nothing."""
SMALL = 5
FEW = EAGER // 2
"""Of two callers each has two of the four places for large commands: the small ones wait for about two each."""


async def race(port: int, eager: str, honest: str) -> int:
    """Let one token ask for much on many connections at once; how much of it was done when another had its few small answers."""
    answered = list[bytes]()

    async def ask_for_much(asker: Asker) -> None:
        try:
            answered.append(await asker.ask("/v1/together", STEP))
        except Failed as error:
            assert " 429 " in str(error)  # noqa: PT017 - it is the only refusal that is right here
        finally:
            asker.close()

    askers = [Asker(port, eager) for _ in range(EAGER)]
    other = Asker(port, honest)
    for asker in (*askers, other):  # Everyone is connected, and known, before it begins.
        await asker.ask("/v1/browse", {"queue": "jobs", "limit": 1})
    asking = [asyncio.create_task(ask_for_much(asker)) for asker in askers]
    for number in range(SMALL):
        await other.ask("/v1/put", {"queue": "few", "items": [{"id": str(number), "value": 1}]})
    done = len(answered)
    other.close()
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    return done


def done_before_the_small_ones(kind: str, folder: Path) -> int:
    store = connect(url_of(kind, folder))
    for first in range(0, BACKLOG, 1_000):
        store.execute(Put("jobs", [item(str(number)) for number in range(first, first + 1_000)]))
    eager, honest = (create_token(store, name, ["*"], by=Actor("test", "here"))[1] for name in ("eager", "honest"))
    with serving(Server(ControlPlane(store), Exposure(port=0))) as url:
        return asyncio.run(race(int(url.rpartition(":")[2]), eager, honest))


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_small_commands_of_one_token_wait_for_few_large_ones_of_another(kind: str, tmp_path: Path) -> None:
    assert done_before_the_small_ones(kind, tmp_path) <= FEW


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_control_without_turns_they_wait_for_many(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without: Callable[..., AsyncStore] = lambda store, *_: store  # noqa: E731 - as the class that it stands for
    monkeypatch.setattr(app, "FairStore", without)
    assert done_before_the_small_ones(kind, tmp_path) > FEW
