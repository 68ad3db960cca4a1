# Generated from src/holdfast/_async/flows/pausing.py by tools/unasync.py; do not edit.
"""Pauses until a time passes or the client is closed."""

from holdfast.client import ControlPlaneClient

TOPIC = "pause"
"""No store ever hints at it."""


def pause_until(client: ControlPlaneClient, moment: float) -> None:
    """Wait for a moment on the clock of the client's holders; raises `Closed` when the client is closed meanwhile."""
    store, now = client.store, client.keepalive.now
    with store.mark(TOPIC) as mark:
        while (left_s := moment - now()) > 0:
            store.wait(mark, left_s, left_s)
