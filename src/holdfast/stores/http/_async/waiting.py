"""Waiting for what the server reports."""

from typing import TYPE_CHECKING

from holdfast.stores.waiting.announcements import wait_for_async
from holdfast.stores.waiting.waiters import Mark

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

ANNOUNCE_S = 2.0
"""The longest that a first wait takes until the server has heard of it, which gives its own store half of that."""


async def wait(store: "HttpStore", mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
    """See `Store.wait`."""
    with store.listener.on(mark.topic) as announced:
        if announced is None:
            await store.waiters.wait_async(mark, timeout_s, due_in_s, store.poll_s(mark.topic, poll_s))
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            await wait_for_async(announced, ANNOUNCE_S)
            mark.begin_anew()
