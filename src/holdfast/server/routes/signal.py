"""`POST /v1/queues/{queue}/jobs/{id}/signals/{name}`: a signal for a durable job, for callers that may do nothing else."""

from typing import Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast._async.flows.signalling import send as send_signal
from holdfast.codec import check_name, check_value_size
from holdfast.server.asgi import JSON_TYPE, Receive, Send, answer, header
from holdfast.server.asgi import Scope as AsgiScope
from holdfast.server.auth.callers import caller_of, check, who_asks
from holdfast.server.auth.guarded_store import Reach
from holdfast.server.auth.permissions import Need
from holdfast.server.auth.scopes import Scope
from holdfast.server.load.answer_memory import Memory, Share
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.request_bodies import Bodies
from holdfast.server.routes.templates import names_of
from holdfast.stores import AsyncStore
from holdfast.stores.http.protocol import PREFIX
from holdfast.workers.steps.rows import signals_of

SIGNAL_PATH: Final = f"{PREFIX}/queues/{{queue}}/jobs/{{id}}/signals/{{name}}"
"""The path, as documents show it."""


class SignalRoute:
    """Sends a signal to a job: the body is the payload, an `Idempotency-Key` lets it be repeated."""

    def __init__(self, store: AsyncStore, tenants: Tenants, bodies: Bodies, memory: Memory) -> None:
        self._store = store
        self._tenants = tenants
        self._bodies = bodies
        self._memory = memory

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        names = names_of(scope)
        queue, job_id, name = names["queue"], names["id"], names["name"]
        caller = caller_of(scope)
        check(caller, Need("queue", queue, "signal"))
        payload = await self._bodies.decoded(scope, receive, json.Decoder(Raw).decode)
        check_value_size(payload, self._store.limits, "payload")
        key = header(scope, b"idempotency-key")
        sent_id = None if key is None else check_name(key.decode("latin-1"), "Idempotency-Key")
        # The right to send a signal covers what it takes, and nothing more.
        rights = (
            Scope("queue", queue, frozenset({"read", "signal"})),
            Scope("dict", signals_of(queue), frozenset({"read", "write"})),
        )
        share = Share(self._memory, who_asks(caller))
        try:
            reach = Reach(self._store, replace(caller, scopes=rights), self._tenants, share)
            is_new = await send_signal(reach, (queue, job_id), name, payload, sent_id)
        finally:
            share.leave()
        await answer(scope, send, 200, json.encode({"sent": is_new}), JSON_TYPE)
