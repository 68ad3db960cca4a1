"""The shares of names with capacity, in memory."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from holdfast.records.shares import Share, ShareOrder

Order = list[tuple[int, str]]
"""Sorted by a moment or a place, with ids."""

LAST = "\U0010ffff"
"""Behind every id."""


class Shares:
    """Those of all names, in the orders in which they are read."""

    def __init__(self) -> None:
        self.by_id: dict[tuple[str, str], Share] = {}
        """By name and id."""
        self._orders: dict[tuple[str, ShareOrder], Order] = {}
        """By name."""

    def save(self, share: Share) -> None:
        """Keep it, unless it was released, in place of what was under its id."""
        self._delete(share.key, share.lease_id)
        if not share.is_gone:
            self.by_id[share.key, share.lease_id] = share
            self._enter(share)

    def _delete(self, key: str, lease_id: str) -> None:
        share = self.by_id.pop((key, lease_id), None)
        for order, entry in _places(share) if share is not None else ():
            entries = self._orders[key, order]
            del entries[bisect_left(entries, entry)]
            if not entries:
                del self._orders[key, order]

    def find(self, key: str, by: ShareOrder, limit: int, after: int) -> Iterator[Share]:
        """Those behind a moment or a place, the first first."""
        entries = self._orders.get((key, by), [])
        start = bisect_right(entries, (after, LAST))
        return (self.by_id[key, lease_id] for _, lease_id in entries[start : start + limit])

    def rebuild(self) -> None:
        """Rebuild the orders."""
        self._orders = {}
        for share in self.by_id.values():
            self._enter(share)

    def _enter(self, share: Share) -> None:
        for order, entry in _places(share):
            insort(self._orders.setdefault((share.key, order), []), entry)


def _places(share: Share) -> list[tuple[ShareOrder, tuple[int, str]]]:
    """Where it stands in each order."""
    if not share.place:
        return [("grants", (share.until, share.lease_id))]
    return [("tickets", (share.until, share.lease_id)), ("line", (share.place, share.lease_id))]
