"""`POST /v1/wait`: the store's wait, for clients that carry their marks."""

from collections.abc import Callable
from typing import Final

from msgspec import json
from msgspec.structs import replace

from holdfast.codec import check_duration
from holdfast.errors import NotAllowed
from holdfast.server.asgi import JSON_TYPE, Receive, Scope, Send, answer
from holdfast.server.bodies import read_body
from holdfast.server.callers import Caller, caller_of, is_allowed
from holdfast.server.lasting import Lasting
from holdfast.server.needs import topic_needs
from holdfast.server.topics import Topics
from holdfast.stores.http.protocol import WAIT_MAX_S, Verb, Waited, WaitFor

TOPICS_MAX: Final = 1_000
TOPIC_CHARACTERS: Final = 700
BODY_BYTES: Final = 1024 * 1024
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
        heard = await self._lasting.run(caller, receive, self._topics.wait(asked.topics, asked.timeout_s))
        await answer(send, 200, _encode(Waited(heard or [])), JSON_TYPE)


def check_wait(asked: WaitFor, caller: Caller) -> None:
    """Refuse a wait on too much, on nothing, or on what the caller may not see."""
    check_duration(asked.timeout_s, "timeout_s", maximum=WAIT_MAX_S)
    if not 1 <= len(asked.topics) <= TOPICS_MAX:
        raise ValueError(f"the wait has {len(asked.topics):,} topics: give 1 to {TOPICS_MAX:,}")
    for each in asked.topics:
        if not 0 < len(each.topic) <= TOPIC_CHARACTERS:
            raise ValueError(f"a topic has {len(each.topic):,} characters: give 1 to {TOPIC_CHARACTERS:,}")
        if not any(is_allowed(caller, replace(need, verb=verb)) for need in topic_needs(each.topic) for verb in WAITERS):
            raise NotAllowed(f"{caller.name} may not read {each.topic!r}, and so not wait on it")
