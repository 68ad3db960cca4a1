"""The hostile client of bench/hostile.py: what a token that may only read can try, again and again, on many connections.

    python bench/hostile_attacks.py PORT SECONDS READ_TOKEN CLAIM_TOKEN [ATTACK …]

At the end it prints, as JSON, how often each attack got which answer. Attacks bear the numbers of the findings they come from. It gives way
to every other process: on a small machine its own cost must not be mistaken for what the server lets it do to others.
"""

import itertools
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import json

MIB = 2**20
BODY_BYTES = 24 * MIB
REPLY_S = 30.0
"""How long an attacker waits for an answer before it tries again on another connection."""

NUMBERS = itertools.count()


class Target:
    """The server, the tokens, and what came of it."""

    def __init__(self, port: int, read: str, claim: str, seconds: float) -> None:
        self.port = port
        self.read = read
        self.claim = claim
        self.ends_at = time.monotonic() + seconds
        self.answers: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def rest(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self.ends_at - time.monotonic())))

    @contextmanager
    def connected(self, receive_bytes: int | None = None) -> Iterator[socket.socket]:
        with socket.socket() as connection:
            if receive_bytes is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            connection.settimeout(REPLY_S)
            connection.connect(("127.0.0.1", self.port))
            yield connection

    def head(self, line: str, token: str | None, length: int | None = None) -> bytes:
        lines = [f"{line} HTTP/1.1", "host: localhost", "content-type: application/json"]
        lines += [] if token is None else [f"authorization: Bearer {token}"]
        lines += [] if length is None else [f"content-length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    def post(self, path: str, body: bytes, token: str) -> str:
        """Send it and read the answer to its end; its status."""
        with self.connected() as connection:
            connection.sendall(self.head(f"POST {path}", token, len(body)) + body)
            return read_answer(connection)


def read_answer(connection: socket.socket) -> str:
    """The status of an answer that was read to its end, so far as it has one."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        if not piece:
            return "hung up"
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0) - len(body)
    while left > 0 and (piece := connection.recv(MIB)):
        left -= len(piece)
    return head[9:12].decode()


def long_topics(target: Target) -> str:
    """H2: 10,000 new topics of 600 bytes."""
    return wait_on(target, "x" * 600, target.claim)


def many_topics(target: Target) -> str:
    """M8: 10,000 new topics, short ones."""
    return wait_on(target, "", target.read)


def wait_on(target: Target, tail: str, token: str) -> str:
    first = next(NUMBERS) * 10_000
    topics = [[f"key:hostile-q:{first + number}-{tail}"] for number in range(10_000)]
    return target.post("/v1/wait", json.encode({"topics": topics, "timeout_s": 10}), token)


def colons(target: Target) -> str:
    """H7: a topic of 150 KB that is all colons."""
    return target.post("/v1/changes", b'{"topic":"key:q%s"}' % (b":" * 150_000), target.read)


def colons_in_the_head(target: Target) -> str:
    """H7: one of 30 KB, in a query."""
    with target.connected() as connection:
        connection.sendall(target.head(f"GET /v1/watch?topic=key:q{':' * 30_000}", target.read))
        return read_answer(connection)


COUNT: dict[str, object] = {"type": "Count", "queue": "hostile-q"}


def counts(target: Target) -> str:
    """H8: a step of 500 counts of a queue of 20,000, and one of as many as are allowed."""
    status = together(target, COUNT, 500)
    return f"{status} {together(target, COUNT, 10)}"


def reads(target: Target) -> str:
    """H8: a step that reads as many things as one may."""
    return together(target, {"type": "Browse", "queue": "hostile-q", "limit": 10}, 1_000)


def other_reads(target: Target) -> str:
    """H8: steps of other reads."""
    status = together(target, {"type": "Length", "dict": "hostile-log"}, 10)
    return f"{status} {together(target, {'type': 'Look', 'dict': 'hostile-log', 'keys': ['a']}, 1_000)}"


def left_counts(target: Target) -> str:
    """H8: the same counts, by a client that hangs up at once."""
    body = step(COUNT, 10)
    with target.connected() as connection:
        connection.sendall(target.head("POST /v1/together", target.read, len(body)) + body)
    target.rest(0.1)
    return "left"


def endless_step(target: Target) -> str:
    """H8: as many commands as a body has room for."""
    return target.post("/v1/together", ENDLESS, target.read)


def step(command: dict[str, object], times: int) -> bytes:
    return json.encode({"commands": [command] * times})


def together(target: Target, command: dict[str, object], times: int) -> str:
    return target.post("/v1/together", step(command, times), target.read)


BROWSE: dict[str, object] = {"type": "Browse", "queue": "hostile-big", "limit": 150}


def large_answer(target: Target) -> str:
    """H9: five times 150 MiB in one answer."""
    return together(target, BROWSE, 5)


def large_page(target: Target) -> str:
    """H9: all that is there in one page."""
    return target.post("/v1/browse", b'{"queue":"hostile-big","limit":10000}', target.read)


def large_dict(target: Target) -> str:
    """H9: a dict of large values, and then its events."""
    status = target.post("/v1/read", b'{"dict":"hostile-log","limit":1000}', target.read)
    return f"{status} {target.post('/v1/changes', CHANGES, target.read)}"


CHANGES = b'{"topic":"dict:hostile-log","after":-1,"limit":1000}'


def unread_answers(target: Target) -> str:
    """H9: large answers that nobody reads, pipelined."""
    body = b'{"queue":"hostile-big","limit":150}'
    with target.connected(4_096) as connection:
        for _ in range(4):
            connection.sendall(target.head("POST /v1/browse", target.read, len(body)) + body)
        target.rest(15.0)
        return "left"


def unread_watches(target: Target) -> str:
    """H9: four watches of a dict with 150 MiB of events, of which nothing is read."""
    if target.is_over:
        return "left"
    with target.connected(4_096) as connection:
        connection.sendall(target.head("GET /v1/watch?topic=dict:hostile-log&after=-1", target.read))
        target.rest(15.0)
    return "left"


def deep_body(target: Target) -> str:
    """H10: 24 MiB of brackets."""
    return target.post("/v1/put", DEEP, target.read)


def wide_body(target: Target) -> str:
    """H10: 24 MiB of items that this token may not put."""
    return target.post("/v1/put", WIDE, target.read)


def spaced_body(target: Target) -> str:
    """H10: 24 MiB of white space between them."""
    return target.post("/v1/put", SPACED, target.read)


def filled(head: bytes, part: bytes, tail: bytes) -> bytes:
    """A body of the length that is allowed."""
    return head + b",".join([part] * ((BODY_BYTES - len(head) - len(tail)) // (len(part) + 1))) + tail


DEEP = filled(b'{"queue":"q","items":[', b"[" * 97 + b"]" * 97, b"]}")
WIDE = filled(b'{"queue":"q","items":[', b'{"id":"a","value":1}', b"]}")
SPACED = filled(b'{"queue":"q","items":[', b'{ "id" : "a" , "value" : [ 1 , 2 ] }', b"]}")
ENDLESS = filled(b'{"commands":[', b'{"type":"Count","queue":"hostile-q"}', b"]}")


def held_body(target: Target) -> str:
    """M2: a body of which the last MiB does not come."""
    with target.connected() as connection:
        connection.sendall(target.head("POST /v1/claim?x", target.read, 15 * MIB))
        connection.sendall(WIDE[: 14 * MIB])
        for _ in range(20):
            target.rest(1.0)
            if target.is_over:
                return "left"
            connection.sendall(b"1")
        return read_answer(connection)


def drip_unknown(target: Target) -> str:
    """M3: a body that drips in after a 401."""
    return drip(target, "POST /v1/put", None)


def drip_refused(target: Target) -> str:
    """M3: a body that drips in after a 405."""
    return drip(target, "GET /v1/put", target.read)


def drip(target: Target, line: str, token: str | None) -> str:
    with target.connected() as connection:
        connection.sendall(target.head(line, token, 1_000_000_000) + b"{")
        status = read_answer(connection)
        for _ in range(20):
            target.rest(1.0)
            if target.is_over:
                return f"{status} left"
            connection.sendall(b"1")
        return f"{status} kept"


class Attack:
    """One thing to try, on so many connections at once."""

    def __init__(self, attempt: Callable[[Target], str], connections: int) -> None:
        self.attempt = attempt
        self.connections = connections

    def run(self, target: Target, name: str) -> None:
        """Try it again and again."""
        while not target.is_over:
            try:
                came = self.attempt(target)
            except TimeoutError:
                came = "no answer"
            except OSError:
                came = "hung up"
                target.rest(0.01)
            target.answers[f"{name}: {came}"] += 1


ATTACKS: dict[str, list[Attack]] = {
    "h2": [Attack(long_topics, 8)],
    "h7": [Attack(colons, 1), Attack(colons_in_the_head, 1)],
    "h8": [Attack(counts, 2), Attack(reads, 2), Attack(other_reads, 1), Attack(left_counts, 1), Attack(endless_step, 1)],
    "h9": [Attack(large_answer, 1), Attack(large_page, 1), Attack(large_dict, 1), Attack(unread_answers, 2), Attack(unread_watches, 4)],
    "h10": [Attack(deep_body, 1), Attack(wide_body, 1), Attack(spaced_body, 1)],
    "m2": [Attack(held_body, 30)],
    "m3": [Attack(drip_unknown, 10), Attack(drip_refused, 10)],
    "m8": [Attack(many_topics, 2)],
}


def attack(target: Target, chosen: list[str]) -> None:
    """Try all of them at once until the time is over."""
    threads = [
        threading.Thread(target=each.run, args=(target, f"{name} {each.attempt.__name__}"), daemon=True)
        for name in chosen
        for each in ATTACKS[name]
        for _ in range(each.connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, target.ends_at + 1.0 - time.monotonic()))


def main() -> None:
    port, seconds, read, claim, *chosen = sys.argv[1:]
    os.nice(19)
    target = Target(int(port), read, claim, float(seconds))
    attack(target, chosen or list(ATTACKS))
    sys.stdout.buffer.write(json.encode(dict(sorted(target.answers.items()))))
    sys.stdout.flush()
    with suppress(Exception):
        os._exit(0)  # Those who still wait for an answer are not waited for.


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
