"""`POST /v1/wait`: the store's wait, for clients that carry their marks."""

from collections.abc import Callable
from typing import Final

from msgspec import json
from msgspec.structs import replace

from holdfast.codec import check_duration
from holdfast.errors import NotAllowed
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.bodies import read_body
from holdfast.server.callers import Caller, caller_of
from holdfast.server.lasting import Lasting
from holdfast.server.namespaces import refuse_reserved
from holdfast.server.needs import topic_needs
from holdfast.server.topics import Topics
from holdfast.stores.http.protocol import WAIT_MAX_S, Asked, Heard, Verb, Waited, WaitFor

TOPICS_MAX: Final = 10_000
TOPIC_CHARACTERS: Final = 700
BODY_BYTES: Final = 16 * 1024 * 1024
WAITERS: Final[tuple[Verb, ...]] = ("read", "claim", "put", "hold", "write")
"""Whoever may do any of these may know when it is worth doing."""

_decode: Callable[[bytes], WaitFor] = json.Decoder(WaitFor).decode
_encode: Callable[[object], bytes] = json.Encoder().encode


class WaitRoute:
    """Answers when a topic was hinted after its mark."""

    def __init__(self, topics: Topics, lasting: Lasting) -> None:
        self._topics = topics
        self._lasting = lasting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _decode(await read_body(scope, receive, BODY_BYTES))
        caller = caller_of(scope)
        check_wait(asked, caller)
        namespace = caller.namespace
        topics = [Asked(namespace.topic_inside(each.topic), each.mark) for each in asked.topics]
        heard = await self._lasting.run(caller, receive, self._topics.wait(topics, asked.timeout_s)) or []
        await caller.stay()
        theirs = [Heard(namespace.topic_outside(each.topic), each.mark, each.count) for each in heard]
        await answer(scope, send, 200, _encode(Waited(theirs)), JSON_TYPE)


def check_wait(asked: WaitFor, caller: Caller) -> None:
    """Refuse a wait on too much, on nothing, or on what the caller may not see."""
    check_duration(asked.timeout_s, "timeout_s", maximum=WAIT_MAX_S)
    if not 1 <= len(asked.topics) <= TOPICS_MAX:
        raise ValueError(f"the wait has {len(asked.topics):,} topics: give 1 to {TOPICS_MAX:,}")
    for each in asked.topics:
        if not 0 < len(each.topic) <= TOPIC_CHARACTERS:
            raise ValueError(f"a topic has {len(each.topic):,} characters: give 1 to {TOPIC_CHARACTERS:,}")
        needs = topic_needs(each.topic)
        refuse_reserved(needs[0].name)  # However the text is read, it begins the same.
        if not any(caller.may(replace(need, verb=verb)) for need in needs for verb in WAITERS):
            raise NotAllowed(f"{caller.name} may not read {each.topic!r}, and so not wait on it")
