"""The server under load: durable puts and claims beside a bare echo of Starlette in the same run, and what idle clients cost.

    python bench/http.py            # the whole run
    python bench/http.py --quick    # whether it works

Rates are ratios to the echo of the same round, so that a busy machine slows both. The load is wrk's where that is installed, else that of
a process of our own, which takes part of the processor itself. Linux only: it reads /proc.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import uvloop
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.http_load import Load, Turn, run_load
from bench.http_wrk import find_wrk, run_wrk
from holdfast.ids import new_id

CONNECTIONS = 64
BATCH = 1_000
ECHO = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def echo(request):
    return Response(await request.body(), media_type="application/json")

uvicorn.run(Starlette(routes=[Route("/echo", echo, methods=["POST"])]), port=int(sys.argv[1]), log_level="error", access_log=False)
"""
SERVE = "from holdfast.cli import main; main()"
VALUE = b'{"report":7,"for":"somebody@example.com"}'
CLAIMED = re.compile(rb'"id":"([^"]+)".*?"token":(\d+)')


class Sizes(Struct, frozen=True):
    """How much of everything."""

    rounds: int = 5
    seconds: float = 4.0
    idle_clients: int = 1_000
    idle_s: float = 60.0


QUICK = Sizes(1, 0.3, 20, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    sizes = QUICK if parser.parse_args().quick else Sizes()
    with tempfile.TemporaryDirectory() as folder:
        ours_port, echo_port = free_port(), free_port()
        ours = [SERVE, "serve", f"--store=sqlite:///{folder}/bench.db", f"--port={ours_port}"]
        with started(ours, ours_port) as server, started([ECHO, str(echo_port)], echo_port):
            report(under_load(ours_port, echo_port, sizes))
            neighbours(ours_port, sizes)
            idle(ours_port, server.pid, sizes)


def under_load(ours_port: int, echo_port: int, sizes: Sizes) -> dict[str, list[Load]]:
    """The three kinds of requests, round by round."""
    loads: dict[str, list[Load]] = {"echo": [], "put": [], "claim+ack": []}
    for number in range(sizes.rounds):
        queue = f"round-{number}"
        loads["echo"].append(load(echo_port, "echo", queue, sizes.seconds))
        loads["put"].append(load(ours_port, "put", queue, sizes.seconds))
        loads["claim+ack"].append(load(ours_port, "work", queue, sizes.seconds / 2))
    return loads


def load(port: int, kind: str, queue: str, seconds: float) -> Load:
    """One kind of requests, on all connections."""
    if (wrk := find_wrk()) is not None:
        return run_wrk(wrk, port, kind, queue=queue, value=VALUE, connections=CONNECTIONS, seconds=seconds)
    turns: dict[str, Callable[[], Turn]] = {
        "echo": lambda: lambda _: ("/echo", VALUE),
        "put": lambda: putting(queue),
        "work": lambda: working(queue),
    }
    return run(port, [turns[kind]() for _ in range(CONNECTIONS)], seconds)


def report(loads: dict[str, list[Load]]) -> None:
    print(f"load by {'wrk' if find_wrk() else 'a process of our own'}, {CONNECTIONS} connections")
    print(f"{'':12}{'requests/s':>12}{'p99 ms':>10}{'of the echo':>14}{'wanted':>10}{'failed':>8}")
    for what, wanted in (("echo", None), ("put", 0.40), ("claim+ack", 0.35)):
        rate = median(load.rate for load in loads[what])
        ratio = median(load.rate / echo.rate for load, echo in zip(loads[what], loads["echo"], strict=True))
        p99 = median(load.p99_ms for load in loads[what])
        failed = sum(load.failed for load in loads[what])
        print(f"{what:12}{rate:12,.0f}{p99:10.1f}{ratio:14.0%}{'' if wanted is None else f'{wanted:.0%}':>10}{failed:8}")


def neighbours(port: int, sizes: Sizes) -> None:
    """What one client's endless batches do to another's puts, round by round."""
    pairs = [(run(port, [putting("alone")] * 8, sizes.seconds / 2), run_beside(port, sizes.seconds / 2)) for _ in range(sizes.rounds)]
    alone, beside = (median(load.p99_ms for load in loads) for loads in zip(*pairs, strict=True))
    times = sorted(beside.p99_ms / alone.p99_ms for alone, beside in pairs)
    print(
        f"p99 of a put: {alone:.1f} ms alone, {beside:.1f} ms beside endless batches of {BATCH}: "
        f"{median(times):.1f} times ({times[0]:.1f} to {times[-1]:.1f}), wanted at most 3"
    )


def run_beside(port: int, seconds: float) -> Load:
    code = f"from bench.http import *; run({port}, [batching('beside')], {seconds + 0.5})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[1]) as other:
        load = run(port, [putting("alone")] * 8, seconds)
        other.wait()
    return load


def idle(port: int, pid: int, sizes: Sizes) -> None:
    """What clients cost that only wait: watchers, and claims that block on the server."""
    before = memory_mb(pid)
    sockets = []
    for number in range(sizes.idle_clients):
        body = b'{"queue":"idle-%d"}' % number
        head = (
            b"POST /v1/claim?wait_s=300 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (len(body), body)
        )
        for request in (head, b"GET /v1/watch?topic=queue:idle-%d HTTP/1.1\r\nhost: localhost\r\n\r\n" % number):
            sockets.append(socket.create_connection(("127.0.0.1", port)))
            sockets[-1].sendall(request)
    time.sleep(min(5.0, sizes.idle_s))  # They arrive.
    used, since = cpu_s(pid), time.monotonic()
    time.sleep(sizes.idle_s)
    share = (cpu_s(pid) - used) / (time.monotonic() - since)
    cost = f"{memory_mb(pid) - before:.0f} MB (wanted under 200), {share:.1%} of a core (2 %)"
    print(f"{sizes.idle_clients:,} watchers and as many blocked claims: {cost}")
    for each in sockets:
        each.close()


def putting(queue: str) -> Turn:
    """Put one message after the other."""

    def turn(_: bytes) -> tuple[str, bytes]:
        one = b'{"queue":"%s","items":[{"id":"%s","value":%s}],"id":"%s"}'
        return "/v1/put", one % (queue.encode(), new_id().encode(), VALUE, new_id().encode())

    return turn


def batching(queue: str) -> Turn:
    """Put one batch after the other."""

    def turn(_: bytes) -> tuple[str, bytes]:
        items = b",".join(b'{"id":"%s","value":%s}' % (new_id().encode(), VALUE) for _ in range(BATCH))
        return "/v1/put", b'{"queue":"%s","items":[%s]}' % (queue.encode(), items)

    return turn


def working(queue: str) -> Turn:
    """Claim a message, acknowledge it, claim the next."""

    def turn(answer: bytes) -> tuple[str, bytes]:
        claimed = CLAIMED.search(answer)
        if claimed is not None:
            return "/v1/settle", b'{"receipts":[["%s","%s",%s]],"id":"%s"}' % (queue.encode(), *claimed.groups(), new_id().encode())
        return "/v1/claim", b'{"queue":"%s","holder":"bench","lease_s":60,"id":"%s"}' % (queue.encode(), new_id().encode())

    return turn


def run(port: int, turns: list[Turn], seconds: float) -> Load:
    return uvloop.run(run_load(port, turns, seconds))


@contextmanager
def started(arguments: list[str], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A server in a process of its own, while the block runs."""
    server = subprocess.Popen([sys.executable, "-c", *arguments], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port))
        yield server
    finally:
        server.terminate()
        server.wait()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("a server did not start")
        time.sleep(0.02)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def memory_mb(pid: int) -> float:
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1_000


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
