"""What became of the messages, counted from what the store kept."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, json

from holdfast.cli.demo.protocol import ACCEPTED, QUEUE, REFUSED
from holdfast.codec import decode_key
from holdfast.commands import Browse, Changes, Length, Read
from holdfast.commands.topics import queue_topic
from holdfast.records import Event
from holdfast.stores import Store


class Counts(Struct, frozen=True):
    """The counts at the end of a demo."""

    put: int
    done: int
    redelivered: int
    """Deliveries of a message after its first."""
    refused: int
    """What workers tried with a claim they no longer held."""
    unfinished: int
    """Not yet put, or still in the queue: the demo ran out of time."""
    lost: int
    accepted_twice: int

    @property
    def exit_code(self) -> int:
        return 1 if self.lost or self.accepted_twice or self.unfinished else 0


class _Ids(Struct):
    ids: list[str]


def count(store: Store, wanted: int) -> Counts:
    """Count what became of so many messages from the queue's events, the messages still in it and the dicts the workers wrote."""
    put, claimed = Counter[str](), Counter[str]()
    for event in events_of(store):
        if event.event == "put":
            put.update(json.decode(event.data, type=_Ids).ids)
        elif event.event == "claimed":
            claimed.update(json.decode(event.data, type=_Ids).ids)
    accepted = Counter(accepted_ids(store))
    waiting = {message.id for message in store.execute(Browse(QUEUE, ids=list(put))).messages if message.state != "done"}
    return Counts(
        put=len(put),
        done=len(accepted),
        redelivered=claimed.total() - len(claimed),
        refused=store.execute(Length(REFUSED)),
        unfinished=wanted - len(put) + len(waiting - accepted.keys()),
        lost=len(put.keys() - accepted.keys() - waiting),
        accepted_twice=sum(times > 1 for times in accepted.values()),
    )


def events_of(store: Store) -> Iterator[Event]:
    """Every event of the queue, the oldest first."""
    page = store.execute(Changes(queue_topic(QUEUE)))
    while page.events:
        yield from page.events
        page = store.execute(Changes(queue_topic(QUEUE), page.upto))


def accepted_ids(store: Store) -> Iterator[str]:
    """The message of every claim that was accepted."""
    for entry in store.execute(Read(ACCEPTED)).entries:
        match decode_key(entry.key):
            case (str(message), int()):
                yield message
