"""One atomic step over queues, dicts and leases: all of it happens, or nothing."""

from collections.abc import Hashable
from types import TracebackType
from typing import Any, Self, Unpack

from holdfast._async.handles.lease_steps import AsyncLeaseSteps, Part
from holdfast._async.handles.limiter import AsyncLimiter
from holdfast.arguments.claim_options import given_delay
from holdfast.arguments.dict_changes import change_of, expectation, pace_of
from holdfast.arguments.named_claims import Claims, NamedClaims
from holdfast.arguments.options import show_options
from holdfast.arguments.put_options import PutOptions, make_item
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, encode_key
from holdfast.commands import (
    Change,
    Item,
    Put,
    Puts,
    Settle,
    Write,
    Written,
)
from holdfast.errors import ClaimLost
from holdfast.records import ReturnTo
from holdfast.results import DictCompareAndSetResult, MessageId, QueueResponse
from holdfast.steps import Handle, Step, name_of, named, value_of
from holdfast.stores.caller_transaction import AsyncConnection


@show_options
class AsyncTogether(AsyncLeaseSteps):
    """Collects acknowledgements, puts, writes and lease changes, and commits them all or none on leaving the `with` block.

    Everything is checked against the state before the step. It refuses, and nothing of it happens, when a claim or lease in it is no longer
    held (`ClaimLost`, `LeaseLost`, `LeaseHeld`), when a compare fails or a fence is outdated (`Refused`), when a rate is used up
    (`RateLimited`), or when a queue is full or a key rejected (`QueueFull`, `KeyInFlight`). Two parts that change one
    message, key or lease are a `ValueError` before anything is sent. A block left by an exception commits nothing. Queues and dicts are
    handles, or names for those without a type.

    With a connection of your own, leaving the block executes the step in its open transaction: it is committed, or vanishes, with that.
    """

    def __init__(self, client: ControlPlaneClient, connection: AsyncConnection | None = None) -> None:
        super().__init__(client, connection)
        self._settles: dict[tuple[tuple[str, Any], ...], list[tuple[NamedClaims, Step[QueueResponse]]]] = {}
        self._puts: dict[str, list[tuple[Item, Step[MessageId]]]] = {}
        self._writes: dict[str, list[tuple[Change, Codec, Step[DictCompareAndSetResult]]]] = {}

    def ack(self, claims: Claims) -> Step[QueueResponse]:
        """Remove claimed messages: they are done."""
        return self._settle(claims, to="done")

    def release(self, claims: Claims, *, return_to: ReturnTo = "back", delay_s: float = 0.0) -> Step[QueueResponse]:
        """Give claimed messages back; burns no attempt."""
        return self._settle(claims, to="ready", return_to=return_to, delay_s=delay_s)

    def fail(
        self,
        claims: Claims,
        *,
        error: str | None = None,
        delay_s: float | None = None,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
    ) -> Step[QueueResponse]:
        """Give claimed messages back as failed: their budget, or for those without the one given, decides whether they are tried again."""
        return self._settle(
            claims,
            to="ready",
            counts=True,
            error=error,
            delay_s=given_delay(delay_s),
            max_attempts=max_attempts,
            dead_letter=dead_letter_queue,
        )

    def bury(self, claims: Claims, *, error: str | None = None) -> Step[QueueResponse]:
        """Make claimed messages dead letters at once, whatever their budget."""
        return self._settle(claims, to="dead", counts=True, error=error)

    def put(self, queue: Handle | str, value: Any, **options: Unpack[PutOptions]) -> Step[MessageId]:
        """Put a message; the options are those of `Queue.put`."""
        name, codec = named(queue, self._client)
        step = Step[MessageId]()
        self._add(self._puts, name, (make_item(value, codec, options), step))
        return step

    def write(
        self,
        shared: Handle | str,
        key: Hashable,
        value: Any,
        *,
        ttl_s: float | None = None,
        lease_id: str | None = None,
        fence: int | None = None,
    ) -> Step[DictCompareAndSetResult]:
        """Write an entry of a dict; under a lease only while it is held, under a fence only if no higher token has written."""
        return self._write(shared, key, value=value, ttl_s=ttl_s, lease=lease_id, fence=fence)

    def delete(
        self, shared: Handle | str, key: Hashable, *, lease_id: str | None = None, fence: int | None = None
    ) -> Step[DictCompareAndSetResult]:
        """Remove an entry of a dict, if it is there."""
        return self._write(shared, key, do="delete", lease=lease_id, fence=fence)

    def compare_and_set(
        self,
        shared: Handle | str,
        key: Hashable,
        expected: Any,
        value: Any,
        *,
        ttl_s: float | None = None,
        lease_id: str | None = None,
        fence: int | None = None,
    ) -> Step[DictCompareAndSetResult]:
        """Write an entry if it is as expected; `MISSING` expects none, None none or a stored None. Else the whole step is refused."""
        return self._write(shared, key, value=value, expected=expected, ttl_s=ttl_s, lease=lease_id, fence=fence)

    def increment(
        self, shared: Handle | str, key: Hashable, by: float = 1, *, ttl_s: float | None = None, fence: int | None = None
    ) -> Step[DictCompareAndSetResult]:
        """Add to a number, 0 where there is none; the result's `current_value` is the sum."""
        return self._write(shared, key, do="increment", by=by, ttl_s=ttl_s, fence=fence)

    def expect(self, shared: Handle | str, key: Hashable, expected: Any, *, lease_id: str | None = None) -> Step[DictCompareAndSetResult]:
        """Change nothing, but refuse the whole step unless the entry is as expected, and the lease, if one is named, is held."""
        return self._write(shared, key, do="compare", expected=expected, lease=lease_id)

    def expect_revision(self, shared: Handle | str, key: Hashable, revision: int) -> Step[DictCompareAndSetResult]:
        """Change nothing, but refuse the whole step unless the entry has this revision; 0 is that of an absent one."""
        return self._write(shared, key, do="compare", revision=revision)

    def acquire_rate(self, limiter: AsyncLimiter, *, key: Hashable = "", cost: int = 1) -> Step[DictCompareAndSetResult]:
        """Use units of a `Limiter`; nothing waits in a step: if they would come later, the whole step is refused with `RateLimited`."""
        return self._change(name_of(limiter, self._client), pace_of(encode_key(key), limiter.rate, cost), JSON)

    async def __aenter__(self) -> Self:
        self._refuse_when_over()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over = True
        if error is None:
            await self._commit()

    async def _commit(self) -> None:
        parts = [*self._settle_parts(), *self._put_parts(), *self._write_parts(), *self._leases]
        if not parts:
            return
        claims = [claim for group in self._settles.values() for claim, _ in group]
        inherited = [receipt for claim in claims for receipt in claim.inherited]
        if inherited:
            message = f"claim {inherited[0].claim_id} belongs to the process that this one was forked from; nothing was changed"
            raise ClaimLost(message, inherited)
        await self._execute(parts, [claim.let_go() for claim in claims])

    def _settle(self, claims: Claims, **how: Any) -> Step[QueueResponse]:
        step = Step[QueueResponse]()
        self._add(self._settles, tuple(how.items()), (NamedClaims(claims), step))
        return step

    def _write(self, shared: Handle | str, key: Hashable, **how: Any) -> Step[DictCompareAndSetResult]:
        name, codec = named(shared, self._client)
        if "value" in how:
            how["value"] = codec.encode(how["value"])
        if "expected" in how:
            how |= expectation(how.pop("expected"), codec)
        return self._change(name, change_of(key, **how), codec)

    def _change(self, name: str, change: Change, codec: Codec) -> Step[DictCompareAndSetResult]:
        step = Step[DictCompareAndSetResult]()
        self._add(self._writes, name, (change, codec, step))
        return step

    def _add(self, parts: dict[Any, list[Any]], name: Any, part: Any) -> None:
        self._refuse_when_over()
        parts.setdefault(name, []).append(part)

    def _settle_parts(self) -> list[Part]:
        parts: list[Part] = []
        for how, group in self._settles.items():
            receipts = [receipt for claims, _ in group for receipt in claims.receipts]
            if len(set(receipts)) < len(receipts):
                raise ValueError("one step settles a claim twice: name it once")

            def tell(answer: Any, group: list[tuple[NamedClaims, Step[QueueResponse]]] = group) -> None:
                del answer  # In one step all of them were held, or nothing happened.
                for claims, step in group:
                    step.answer(claims.settled([True] * len(claims.receipts)))

            parts.append((Settle(receipts, **dict(how)), tell))
        return parts

    def _put_parts(self) -> list[Part]:
        parts: list[Part] = []
        for queue, group in self._puts.items():

            def tell(answer: Puts, group: list[tuple[Item, Step[MessageId]]] = group) -> None:
                for (_, step), message_id, created in zip(group, answer.ids, answer.created, strict=True):
                    step.answer(MessageId(message_id, created=created))

            parts.append((Put(queue, [item for item, _ in group]), tell))
        return parts

    def _write_parts(self) -> list[Part]:
        parts: list[Part] = []
        for name, group in self._writes.items():

            def tell(answers: list[Written], group: list[tuple[Change, Codec, Step[DictCompareAndSetResult]]] = group) -> None:
                for (change, codec, step), answer in zip(group, answers, strict=True):
                    entry = None if change.do == "delete" else answer.entry
                    step.answer(DictCompareAndSetResult(answer.written, value_of(codec, entry), entry.revision if entry else 0))

            parts.append((Write(name, [change for change, _, _ in group]), tell))
        return parts
