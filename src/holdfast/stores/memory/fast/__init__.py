"""The fast path of the memory store: plain steps on one queue, without a transaction."""
