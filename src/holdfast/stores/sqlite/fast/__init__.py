"""The fast path of SQLite: plain commands in as few statements as possible, one by one and several of one commit together."""
