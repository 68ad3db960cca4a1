"""A producer process of the demo: puts its messages, a few at a time."""

import sys
import time
from contextlib import suppress
from itertools import islice

from msgspec import json

from holdfast.cli.demo.protocol import QUEUE, ProducerTask, Report, say
from holdfast.codec import JSON
from holdfast.commands import Item, Put
from holdfast.connect import connect

BATCHES = 20
PAUSE_S = 0.1


def main() -> None:
    """Put what the first line of the input says, and end."""
    line = sys.stdin.buffer.readline()
    if not line:
        return
    # Nobody is left to watch: the demo is over.
    with suppress(BrokenPipeError):
        produce(json.decode(line, type=ProducerTask))


def produce(task: ProducerTask) -> None:
    """Put the messages in about twenty batches, with a breath between."""
    store = connect(task.url)
    messages = iter(task.messages.items())
    size = max(1, len(task.messages) // BATCHES)
    while batch := dict(islice(messages, size)):
        store.execute(
            Put(QUEUE, [Item(name, JSON.encode({"work_s": work.work_s, "trouble": work.trouble})) for name, work in batch.items()])
        )
        say(Report("put", ids=list(batch)))
        time.sleep(PAUSE_S)
    store.close()


if __name__ == "__main__":
    main()
