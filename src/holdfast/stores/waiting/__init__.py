"""Waiting inside one process: the waiters of each topic, and waking them."""
