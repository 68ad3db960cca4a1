"""What durable jobs cost: a checkpoint beside a plain write, and a map beside the same puts without a parent.

python -P bench/durable.py checkpoint URL [rounds]
python -P bench/durable.py map URL [children]

Without -P the programs beside it hide the package redis.
"""

import sys
import time
from statistics import median

from msgspec import Raw

from holdfast import ControlPlaneClient, JobContext, Tasks
from holdfast.commands import Change, Claim, Extend, Item, Put, Together, Write
from holdfast.ids import new_id

EACH = 300
CONCURRENCY = 8


def checkpoint(url: str, rounds: int = 9) -> None:
    """The time of a checkpoint, and this process's CPU time, as multiples of those of a plain write, in rounds that alternate."""
    with ControlPlaneClient(url) as client:
        store, queue = client.store, new_id()
        store.execute(Put(queue, [Item(new_id(), Raw(b"1"))]))
        (message,) = store.execute(Claim(queue, "bench", 600.0)).messages
        ratios: list[float] = []
        cpu_ratios: list[float] = []
        took: list[float] = []
        for number in range(rounds + 1):
            took, used = [], []
            for is_guarded in (False, True):
                began, began_cpu = time.perf_counter(), time.process_time()
                for place in range(EACH):
                    write = Write(f"{queue}-steps", [Change(f'["{number}-{is_guarded}-{place}"]', value=Raw(b'{"state":"done"}'))])
                    extend = Extend([message.receipt], 600.0, progress=True)
                    store.execute(Together([extend, write]) if is_guarded else write)
                took.append(time.perf_counter() - began)
                used.append(time.process_time() - began_cpu)
            if number:  # The first one warms up.
                ratios.append(took[1] / took[0])
                cpu_ratios.append(used[1] / used[0])
        shown = f"{took[0] / EACH * 1e3:.3f} and {took[1] / EACH * 1e3:.3f} ms"
        costs = f"{median(ratios):.2f} plain writes ({shown}), {median(cpu_ratios):.2f} of their CPU time here"
        sys.stdout.write(f"{url.partition(':')[0]}: a checkpoint costs {costs}\n")


def mapped(url: str, children: int = 100_000) -> None:
    """The rate of a map's children beside that of the same jobs put without a parent, and how late the parent is."""
    with ControlPlaneClient(url) as client:
        ended: list[float] = []
        app = Tasks("bench", client=client, results=False)

        @app.task(name="nothing")
        def nothing(number: int) -> None:
            del number
            ended.append(time.perf_counter())

        @app.task(name="parent")
        def parent(job: JobContext, count: int) -> float:
            job.map(nothing, [nothing.args(number) for number in range(count)])
            return time.perf_counter()

        began = time.perf_counter()
        for start in range(0, children, 1_000):
            nothing.put_many([nothing.args(number) for number in range(start, min(start + 1_000, children))])
        app.run(until_empty=True, signals=False, concurrency=CONCURRENCY, schedules=False)
        plain_s, last = time.perf_counter() - began, len(ended)
        began = time.perf_counter()
        parent.put(children)
        app.run(until_empty=True, signals=False, concurrency=CONCURRENCY, schedules=False)
        map_s = time.perf_counter() - began
        late_s = began + map_s - ended[-1]
        if (last, len(ended)) != (children, 2 * children):
            raise RuntimeError(f"{last:,} and then {len(ended):,} jobs were run instead of {children:,} and as many again")
        rate = f"{children / map_s:,.0f} and {children / plain_s:,.0f} a second"
        sys.stdout.write(f"{url.partition(':')[0]}: a map has {plain_s / map_s:.2f} of the rate ({rate}), the end {late_s:.2f} s late\n")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    (checkpoint if what == "checkpoint" else mapped)(rest[0], *map(int, rest[1:]))
