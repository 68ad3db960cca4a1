"""Long answers are encoded in pieces: together they are what one piece would be, and others go on in between."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json

from holdfast.commands import Browse, Browsed, Change, Changes, Claim, Item, Put, Read, Together, Write
from holdfast.server.long_answers import LONG_BYTES, encode, encode_long
from holdfast.stores.http.protocol import Heard, Waited
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served

SIZES = (10, 300_000, 20, 30, LONG_BYTES, 40, 1_000_000, 5)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for number, size in enumerate(SIZES):
        value = Raw(json.encode("x" * size))
        store.execute(Put("jobs", [Item(str(number), value, metadata=Raw(b'{"a":"\\u0000"}'))]))
        store.execute(Write("log", [Change(str(number), value=value)]))
    return store


READS: list[Any] = [
    Browse("jobs"),
    Browse("jobs", limit=3),
    Browse("none"),
    Read("log", limit=100),
    Read("none", limit=1),
    Changes("dict:log", -1, 100),
]


@pytest.mark.anyio
@pytest.mark.parametrize("command", [*READS, Claim("jobs", take=True, limit=5), Together(READS[:4]), Together(READS[2:3])])
async def test_the_pieces_together_are_the_answer(store: MemoryStore, command: Any) -> None:
    answer = store.execute(command)
    assert b"".join(await encode_long(answer)) == encode(answer)


@pytest.mark.anyio
async def test_a_piece_has_one_long_record_or_a_few_short_ones() -> None:
    store = MemoryStore()
    store.execute(Put("jobs", [Item(str(number), Raw(json.encode("x" * 1_000))) for number in range(1_000)]))
    pieces = await encode_long(store.execute(Browse("jobs", limit=1_000)))
    assert len(pieces) == 4
    assert max(map(len, pieces)) < 2 * LONG_BYTES


@pytest.mark.anyio
async def test_others_go_on_between_the_pieces(store: MemoryStore) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    pieces = await encode_long(store.execute(Browse("jobs")))
    assert turns >= len(pieces) - 1 >= 3
    task.cancel()


def test_a_client_reads_a_long_answer_as_any_other(store: MemoryStore) -> None:
    served = Served(store)
    client = HttpStore(served.url)
    commands: list[Any] = [Read("log"), Changes("dict:log", -1), Together([READS[3], READS[5]])]
    for command in commands:
        assert client.execute(command) == store.execute(command)
    client.close()
    served.close()


def test_what_is_empty_is_an_empty_list() -> None:
    assert asyncio.run(encode_long([])) == [b"[]"]
    assert asyncio.run(encode_long(Browsed([]))) != []


@pytest.mark.anyio
async def test_the_answer_to_a_wait_on_many_topics_is_encoded_in_pieces_too() -> None:
    waited = Waited([Heard(f"key:jobs:{number}-{'x' * 600}", "mark:1", number % 2 or None) for number in range(2_000)], ["dict:refused"])
    pieces = await encode_long(waited)
    assert len(pieces) > 4
    assert max(map(len, pieces)) < 2 * LONG_BYTES
    assert b"".join(pieces) == encode(waited)
