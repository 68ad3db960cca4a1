"""Redis stores whose scripts are broken in one way, and made whole again."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from holdfast.stores.redis import scripts


@contextmanager
def broken(find: str, instead: str) -> Iterator[None]:
    """Replace what a pattern finds in the text of the scripts while the block runs; a fast path that is whole would lead past it."""
    pattern, whole, found = re.compile(find), scripts._read, []

    def read(name: str) -> str:
        text, count = pattern.subn(instead, whole(name))
        found.append(count)
        is_fast_path = name.startswith("fast/") and (scripts._FOLDER / f"{name[5:]}.lua").is_file()
        return text if not is_fast_path or any(map(pattern.search, parts_of(name))) else "-- @include begin"

    def parts_of(name: str) -> Iterator[str]:
        yield whole(name)
        for part in re.findall(r"-- @include (.+)", whole(name)):
            for word in part.split():
                yield from parts_of(word) if word.startswith("fast/") else ()

    scripts.script.cache_clear()
    try:
        with patch.object(scripts, "_read", read):
            yield
    finally:
        scripts.script.cache_clear()
    assert any(found), f"no script has {find!r} any more: break what has taken its place"
