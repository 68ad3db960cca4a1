"""URLs of stores of one test alone, by the name of their kind."""

from pathlib import Path

from holdfast.ids import new_id
from tests.servers import own_redis_url


def url_of(kind: str, folder: Path) -> str:
    """A new, empty store: memory that the process shares, a file in the folder, or part of a server of the tests."""
    if kind == "memory":
        return f"memory://{new_id()}"
    return own_redis_url() if kind == "redis" else f"{kind}:///{folder}/store"
