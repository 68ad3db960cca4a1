"""What the fast path asks of a transaction besides what commands do."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast.commands.checkpoint import Renewing
from holdfast.commands.transaction import OpenLanes
from holdfast.records import Message, ReturnTo
from holdfast.records.policies import Policy


class SqlTransaction(Renewing, Protocol):
    """A transaction that also takes SQL."""

    sql: Any

    laned: set[str]
    heads_seen: list[tuple[Any, ...]] | None

    def look_at_lanes(self, queue: str, limit: int) -> tuple[Policy | None, OpenLanes]: ...

    def tell(self, topic: str, event: str, facts: Mapping[str, object], counted: int = 0) -> int: ...

    def lease_rows(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None: ...

    def head_rows(self, queue: str, limit: int) -> list[tuple[Any, ...]]: ...

    def shift(self, queue: str, place: int, count: int) -> None: ...
