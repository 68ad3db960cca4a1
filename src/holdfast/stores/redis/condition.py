"""The condition of a Redis server."""

from contextlib import closing

from holdfast.stores.condition import Condition
from holdfast.stores.redis.address import read_url
from holdfast.stores.redis.connections import Connections
from holdfast.stores.redis.server_info import FORMAT, reply_or


def redis_condition(url: str) -> Condition:
    """Look at the memory of the server that the URL names; of one that does not tell it, nothing is known."""
    with closing(Connections(read_url(url), None)) as connections:
        (reply,) = connections.ask(("INFO", "memory"))
    facts = dict(line.split(":", 1) for line in reply_or(reply, b"").decode().splitlines() if ":" in line)
    used, resident = int(facts.get("used_memory", 0)), int(facts.get("used_memory_rss", 0))
    return Condition(
        f"format {FORMAT}, which this release writes",
        size_bytes=max(used, resident),
        unused_bytes=max(0, resident - used),
        limit_bytes=int(facts.get("maxmemory", 0)) or None,
        compact="New messages use the memory again. To give it back: `config set activedefrag yes`, or restart the server.",
    )
