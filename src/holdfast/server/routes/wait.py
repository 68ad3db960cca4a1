"""`POST /v1/wait`: waits on topics, for clients that carry their marks."""

from collections.abc import Callable
from typing import Final

from msgspec import json

from holdfast.codec import check_duration
from holdfast.commands.topics import check_topic, dict_topic, watch_topic, worker_topic
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer, answer_in_pieces
from holdfast.server.auth.callers import Caller, caller_of, may_know, may_know_one_of, who_asks
from holdfast.server.auth.permissions import AUDIT, SERVER, Need, about
from holdfast.server.load.body_budget import PIECE, Budget
from holdfast.server.long_answers import encode, encode_long
from holdfast.server.long_requests import Lasting
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.namespaces.names import AUDIT as AUDIT_DICT
from holdfast.server.namespaces.names import Namespace
from holdfast.server.request_bodies import Bodies
from holdfast.server.topic_waits import Topics
from holdfast.stores.http.protocol import WAIT_MAX_S, Asked, Heard, Waited, WaitFor

TOPICS_MAX: Final = 10_000
WORKERS: Final = worker_topic("")
AUDIT_WATCH: Final = watch_topic("audit")
"""Something was written into the audit, whose own topic no caller may name."""

_AUDIT_INSIDE: Final = watch_topic(dict_topic(AUDIT_DICT))

_decode: Callable[[bytes], WaitFor] = json.Decoder(WaitFor).decode


class WaitRoute:
    """Answers when a topic was hinted after its mark."""

    def __init__(self, topics: Topics, lasting: Lasting, tenants: Tenants, bodies: Bodies, budget: Budget) -> None:
        self._topics = topics
        self._lasting = lasting
        self._tenants = tenants
        self._bodies = bodies
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await self._bodies.decoded(scope, receive, _decode)
        caller = caller_of(scope)
        check_wait(asked)
        topics, refused = list[Asked](), set[str]()
        async for piece in self._budget.in_pieces(who_asks(caller), asked.topics):
            for each in piece:
                check_topic(each.topic)
                if may_wait(caller, each.topic):
                    topics.append(Asked(inside(caller.namespace, each.topic), each.mark))
                else:
                    refused.add(each.topic)
        # One topic that is refused must not keep the caller from the others, and they must hear of it now.
        wait = self._topics.wait(who_asks(caller), topics, 0.0 if refused else asked.timeout_s)
        heard = await self._lasting.run(scope, receive, wait, self._tenants) or []
        await caller.stay()
        theirs: list[Heard] = []
        async for part in self._budget.in_pieces(who_asks(caller), heard):
            theirs += [Heard(outside(caller.namespace, each.topic), each.mark, each.count) for each in part]
        waited = Waited(theirs, sorted(refused))
        if len(asked.topics) <= PIECE:
            await answer(scope, send, 200, encode(waited), JSON_TYPE)
        else:
            await answer_in_pieces(scope, send, 200, await encode_long(waited), JSON_TYPE)


def may_wait(caller: Caller, topic: str) -> bool:
    """Whether the caller may know that there is something on the topic.

    A worker waits on a topic of its own. No one else knows its name, and no store ever hints on it, so a right to claim anything is enough.
    """
    if topic.startswith(WORKERS):
        return caller.may_somewhere("queue", "claim")
    if topic == AUDIT_WATCH:
        return caller.sees_all and may_know(caller, AUDIT)
    subject = about(topic)
    if subject is None:
        return may_know(caller, SERVER)
    if subject.name is not None:
        return may_know(caller, Need(subject.kind, subject.name, "read"))
    return may_know_one_of(caller, subject.kind, subject.text)


def inside(namespace: Namespace, topic: str) -> str:
    """The topic in the store."""
    return _AUDIT_INSIDE if topic == AUDIT_WATCH else namespace.topic_inside(topic)


def outside(namespace: Namespace, topic: str) -> str:
    """The topic as the caller knows it."""
    return AUDIT_WATCH if topic == _AUDIT_INSIDE else namespace.topic_outside(topic)


def check_wait(asked: WaitFor) -> None:
    """Refuse a wait on too much or on nothing."""
    check_duration(asked.timeout_s, "timeout_s", maximum=WAIT_MAX_S)
    if not 1 <= len(asked.topics) <= TOPICS_MAX:
        raise ValueError(f"the wait has {len(asked.topics):,} topics; it must have 1 to {TOPICS_MAX:,}")
