"""`POST /v1/wait`: the store's wait, for clients that carry their marks."""

from collections.abc import Callable
from typing import Final

from msgspec import json

from holdfast.codec import check_duration
from holdfast.commands.topics import check_topic, worker_topic
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.bodies import read_body
from holdfast.server.callers import Caller, caller_of, may_know, may_know_one_of
from holdfast.server.lasting import Lasting
from holdfast.server.needs import SERVER, Need, about
from holdfast.server.tenants import Tenants
from holdfast.server.topics import Topics
from holdfast.stores.http.protocol import WAIT_MAX_S, Asked, Heard, Waited, WaitFor

TOPICS_MAX: Final = 10_000
BODY_BYTES: Final = 16 * 1024 * 1024
WORKERS: Final = worker_topic("")

_decode: Callable[[bytes], WaitFor] = json.Decoder(WaitFor).decode
_encode: Callable[[object], bytes] = json.Encoder().encode


class WaitRoute:
    """Answers when a topic was hinted after its mark."""

    def __init__(self, topics: Topics, lasting: Lasting, tenants: Tenants) -> None:
        self._topics = topics
        self._lasting = lasting
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _decode(await read_body(scope, receive, BODY_BYTES))
        caller = caller_of(scope)
        check_wait(asked)
        namespace = caller.namespace
        allowed = [each for each in asked.topics if may_wait(caller, each.topic)]
        refused = sorted({each.topic for each in asked.topics} - {each.topic for each in allowed})
        topics = [Asked(namespace.topic_inside(each.topic), each.mark) for each in allowed]
        # One topic that is refused must not keep the caller from the others, and they must hear of it now.
        wait = self._topics.wait(caller.commands or caller.where, topics, 0.0 if refused else asked.timeout_s)
        heard = await self._lasting.run(scope, receive, wait, self._tenants) or []
        await caller.stay()
        theirs = [Heard(namespace.topic_outside(each.topic), each.mark, each.count) for each in heard]
        await answer(scope, send, 200, _encode(Waited(theirs, refused)), JSON_TYPE)


def may_wait(caller: Caller, topic: str) -> bool:
    """Whether the caller may know that there is something on the topic.

    A worker waits on a topic of its own. Nobody else knows its name, and no store ever hints on it, so a right to claim anything is enough.
    """
    if topic.startswith(WORKERS):
        return caller.may_somewhere("queue", "claim")
    subject = about(topic)
    if subject is None:
        return may_know(caller, SERVER)
    if subject.name is not None:
        return may_know(caller, Need(subject.kind, subject.name, "read"))
    return may_know_one_of(caller, subject.kind, subject.text)


def check_wait(asked: WaitFor) -> None:
    """Refuse a wait on too much or on nothing."""
    check_duration(asked.timeout_s, "timeout_s", maximum=WAIT_MAX_S)
    if not 1 <= len(asked.topics) <= TOPICS_MAX:
        raise ValueError(f"the wait has {len(asked.topics):,} topics: give 1 to {TOPICS_MAX:,}")
    for each in asked.topics:
        check_topic(each.topic)
