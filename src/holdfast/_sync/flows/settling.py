# Generated from src/holdfast/_async/flows/settling.py by tools/unasync.py; do not edit.
"""Settles and renews claims, and updates their objects."""

from typing import Any

from holdfast.arguments.named_claims import Claims, NamedClaims
from holdfast.client import ControlPlaneClient
from holdfast.codec.call_fields import RENEWED_S
from holdfast.commands import Extend, Settle
from holdfast.results import QueueResponse
from holdfast.stores.caller_transaction import Connection


def settle(
    client: ControlPlaneClient, claims: Claims, queue: str | None, connection: Connection | None = None, **how: Any
) -> QueueResponse:
    """End claims as a `Settle` with these fields does; return how many were still held.

    With a connection it is part of that one's transaction; if that is rolled back, the claims are as they were, but are no longer renewed.
    """
    named = NamedClaims(claims, queue)
    command = Settle(named.receipts, **how)
    if not command.receipts:
        return named.settled([])
    with named.let_go():
        answer = client.store_on(connection).execute(command)
    return named.settled(answer.held)


def renew(client: ControlPlaneClient, claims: Claims, queue: str | None, lease_s: float) -> QueueResponse:
    """Keep claims from now on for `lease_s`; return how many were still held."""
    named = NamedClaims(claims, queue)
    command = Extend(named.receipts, RENEWED_S.check(lease_s))
    if not command.receipts:
        return named.settled([])
    started = client.keepalive.now()
    answer = client.store.execute(command)
    return named.renewed(answer.held, started, lease_s)
