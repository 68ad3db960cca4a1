"""The claims that a caller names, as objects or by id."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from holdfast.codec.limits import shown
from holdfast.errors import ClaimLost, Closed
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.records import Receipt
from holdfast.results import QueueResponse
from holdfast.wording import counted


class ClaimLike(Protocol):
    """A claim or work item, of threads or of tasks."""

    @property
    def claim_id(self) -> str:
        """The text that names the claim."""
        ...

    @property
    def id(self) -> str:
        """The id of its message."""
        ...


Claims = ClaimLike | str | Iterable[ClaimLike | str]


class NamedClaims:
    """Claims to be settled or renewed together.

    What was claimed before a fork belongs to the parent: in the child it is lost, and the store is not asked.
    """

    def __init__(self, claims: Claims, queue: str | None = None) -> None:
        # One that is named twice counts once.
        self._all = [*{one.receipt: one for one in map(_Named, _listed(claims))}.values()]
        for one in self._all if queue is not None else ():
            if one.receipt.queue != queue:
                message = f"claim {one.receipt.claim_id} belongs to queue {one.receipt.queue!r}, not to {queue!r}: settle it there"
                raise ValueError(message)
        self._ours = [one for one in self._all if not one.is_inherited]

    @property
    def receipts(self) -> list[Receipt]:
        """What to send."""
        return [one.receipt for one in self._ours]

    @property
    def inherited(self) -> list[Receipt]:
        """What belongs to the process that this one was forked from."""
        return [one.receipt for one in self._all if one.is_inherited]

    def let_go(self) -> "LettingGo":
        """End their renewal before they are settled, so that no renewal takes them for lost; when that fails, go on renewing."""
        return LettingGo([(one.keepalive, one.hold) for one in self._ours if one.keepalive is not None and one.hold is not None])

    def settled(self, held: Sequence[bool]) -> QueueResponse:
        """Tell the claims what became of them, and return the counts."""
        for one, is_held in zip(self._ours, held, strict=True):
            one.settled(is_held=is_held)
        return self._response(held)

    def renewed(self, held: Sequence[bool], started: float, lease_s: float) -> QueueResponse:
        """Tell the claims that they were renewed, or lost, and return the counts."""
        for one, is_held in zip(self._ours, held, strict=True):
            one.renewed(started, lease_s, is_held=is_held)
        return self._response(held)

    def _response(self, held: Sequence[bool]) -> QueueResponse:
        if all(held) and len(held) == len(self._all):
            return QueueResponse(len(held))
        lost = [*self.inherited, *(one.receipt for one, is_held in zip(self._ours, held, strict=True) if not is_held)]
        return QueueResponse(sum(held), len(lost), tuple(receipt.claim_id for receipt in lost))


class LettingGo:
    """While claims are settled they are not renewed."""

    __slots__ = ("_kept",)

    def __init__(self, kept: list[tuple[Keepalive, Hold]]) -> None:
        self._kept = kept

    def __enter__(self) -> None:
        for keepalive, hold in self._kept:
            keepalive.drop(hold)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for keepalive, hold in self._kept if kind is not None else ():
            with suppress(Closed):
                keepalive.add(hold)


def _listed(claims: Any) -> list[ClaimLike | str]:
    # Of the type, not the object: the id of a claim is text that is made when it is asked for.
    if isinstance(claims, str) or hasattr(type(claims), "claim_id"):
        return [claims]
    if not isinstance(claims, Iterable):
        raise TypeError(f"a claim, its `claim_id`, or a list of them is needed, not {shown(claims)} ({type(claims).__name__})")
    return [*claims]


class _Named:
    """One of them; only an object, not an id, has a hold."""

    __slots__ = ("hold", "is_inherited", "keepalive", "receipt")

    def __init__(self, claim: ClaimLike | str) -> None:
        self.hold: Hold | None = getattr(claim, "hold", None)
        self.keepalive: Keepalive | None = getattr(claim, "keepalive", None)
        self.is_inherited = self.hold is not None and self.hold.is_inherited
        name = None if self.hold is None else self.hold.name
        self.receipt: Receipt = name if isinstance(name, Receipt) else self._receipt(claim)

    def _receipt(self, claim: ClaimLike | str) -> Receipt:
        if not isinstance(claim, str) and not hasattr(type(claim), "claim_id"):
            raise TypeError(f"a list of claims, or of their `claim_id`s, has {shown(claim)} ({type(claim).__name__}) in it")
        return Receipt.parse(claim if isinstance(claim, str) else claim.claim_id)

    def settled(self, *, is_held: bool) -> None:
        if self.hold is None:
            return
        if is_held:
            self.hold.end()
        elif not self.hold.is_over:
            self.hold.tell_lost("the store reports that it is no longer held")

    def renewed(self, started: float, lease_s: float, *, is_held: bool) -> None:
        if self.hold is None:
            return
        if is_held:
            self.hold.renewed(started, lease_s)
        elif not self.hold.is_over:
            self.hold.tell_lost("the store reports that it is no longer held")


def raise_lost(response: QueueResponse) -> QueueResponse:
    """Raise `ClaimLost` if any of the claims was lost."""
    if not response.lost:
        return response
    message = (
        f"{response.lost} of {counted(response.count + response.lost, 'claim')} {'was' if response.lost == 1 else 'were'} no longer held, "
        f"the first {response.lost_claims[0]}; any others were settled or renewed: other workers may have these messages now"
    )
    raise ClaimLost(message, [Receipt.parse(claim_id) for claim_id in response.lost_claims])
