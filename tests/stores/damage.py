"""What becomes of a store when a byte of its file is another one; run as a program for a store that may end its process."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import json

from holdfast.commands import Changes, Prune, Read
from holdfast.connect import connect
from holdfast.errors import HoldfastError
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.testing.conformance.asking import DICT, JOBS, browse, claim, grant, ids, put, settle, stats, write

MESSAGES = {f"message-{number:04}": f'"value-{number:04}"'.encode() for number in range(150)}
PAGE_BYTES = 2_048
ENTRIES = {f"key-{number:04}": f'"value-{number:04}"'.encode() for number in range(100)}

Asking = Callable[[Store], Any]


def fill(url: str) -> None:
    store = connect(f"{url}?durability=process")
    for name, text in MESSAGES.items():
        put(store, name, value=json.decode(text))
    for name, text in ENTRIES.items():
        write(store, name, json.decode(text), ttl_s=10_000)
    for lease in range(20):
        grant(store, f"lease-{lease}", lease_id="x")
    store.close()


def texts_of(messages: list[Message]) -> dict[str, bytes]:
    return {message.id: bytes(message.value) for message in messages}


def claimed(store: Store) -> dict[str, Any]:
    messages = claim(store, 50)
    settle(store, messages[:20])
    settle(store, messages[20:40], to="ready", error="boom")
    return texts_of(messages)


def late(store: Store) -> str:
    put(store, "late")
    return ids(browse(store, limit=1_000))[-1]


ASKINGS: list[tuple[Asking, Callable[[Any], bool]]] = [
    (lambda store: texts_of(browse(store, limit=1_000)), lambda found: found == MESSAGES),
    (lambda store: {one.key: bytes(one.value) for one in store.execute(Read(DICT, limit=1_000)).entries}, lambda found: found == ENTRIES),
    (lambda store: len(store.execute(Changes(f"queue:{JOBS}", limit=1_000)).events), lambda found: found == len(MESSAGES)),
    (stats, lambda found: found.ready == len(MESSAGES)),
    (claimed, lambda found: found == dict(list(MESSAGES.items())[:50])),
    (lambda store: write(store, "new", 1).written, bool),
    (lambda store: grant(store, "another", lease_id="y").token > 0, bool),
    (lambda store: store.execute(Prune(keep=10)), lambda _: True),
    (late, lambda found: found == "late"),
]


def outcome(url: str) -> str:
    """`right`, `refused`, `wrong`, or the name of an exception that is none of ours."""
    found = "right"
    try:
        store = connect(url)
    except HoldfastError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - it is what we look for
        return f"raw {type(error).__name__}: {error}"
    for ask, is_right in ASKINGS:
        try:
            found = found if is_right(ask(store)) else "wrong"
        except (HoldfastError, AssertionError):
            found = "refused" if found == "right" else found
        except Exception as error:  # noqa: BLE001 - it is what we look for
            return f"raw {type(error).__name__}: {error} {ask_name(error)}"
    try:
        store.close()
    except HoldfastError:
        return "refused"
    return found


def ask_name(error: BaseException) -> str:
    trace, last = error.__traceback__, ""
    while trace is not None:
        last = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return last


def flip(data: Path, whole: bytes, chance: random.Random) -> None:
    """Damage a bit, some bytes, or a page, as disks and cables do."""
    damaged, place = bytearray(whole), chance.randrange(len(whole))
    page, other = place - place % PAGE_BYTES, chance.randrange(len(whole) // PAGE_BYTES) * PAGE_BYTES
    match chance.randrange(4):
        case 0:
            damaged[place] ^= 1 << chance.randrange(8)
        case 1:
            damaged[place : place + 16] = chance.randbytes(16)
        case 2:
            damaged[page : page + PAGE_BYTES] = bytes(PAGE_BYTES)
        case _:
            damaged[page : page + PAGE_BYTES] = whole[other : other + PAGE_BYTES]
    data.write_bytes(damaged[: len(whole)])


if __name__ == "__main__":
    url, data, seed, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    whole, chance = data.read_bytes(), random.Random(seed)
    for _ in range(count):
        flip(data, whole, chance)
        sys.stdout.write(f"{outcome(url)}\n")
        sys.stdout.flush()
    data.write_bytes(whole)
