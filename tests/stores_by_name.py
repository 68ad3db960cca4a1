"""URLs of stores of one test alone, by the name of their kind."""

from collections.abc import Callable
from pathlib import Path

from holdfast.ids import new_id
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url

ELSEWHERE: dict[str, Callable[[], str]] = {
    "memory": lambda: f"memory://{new_id()}",
    "redis": own_redis_url,
    "postgres": own_postgres_url,
}


def url_of(kind: str, folder: Path) -> str:
    """A new, empty store: memory that the process shares, a file in the folder, or part of a server of the tests."""
    return ELSEWHERE[kind]() if kind in ELSEWHERE else f"{kind}:///{folder}/store"
