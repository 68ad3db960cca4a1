"""PostgreSQL stores whose functions are broken in one way, and made whole again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from holdfast.stores.postgres.address import Address, parse
from holdfast.stores.postgres.function_names import function_texts, own
from holdfast.stores.postgres.store import open_schema


@contextmanager
def broken(url: str, find: str, instead: str) -> Iterator[None]:
    """Replace what a pattern finds in the text of the functions, in the store at the URL, while the block runs.

    The schema must be a test's own: afterwards its functions go by the server's clock again.
    """
    address = parse(url)
    open_schema(address)
    pattern = re.compile(find)
    texts = [text for text in function_texts() if pattern.search(text)]
    assert texts, f"no function has {find!r} any more: break what has taken its place"
    make(address, [pattern.sub(instead, text) for text in texts])
    try:
        yield
    finally:
        make(address, texts)


def make(address: Address, texts: list[str]) -> None:
    """Create the functions of these texts, or replace them."""
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(
            "select set_config('search_path', quote_ident(%s), true), set_config('check_function_bodies', 'off', true)", (address.schema,)
        )
        for text in texts:
            connection.execute(own(text).encode())
