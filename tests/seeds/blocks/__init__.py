"""The code blocks of the documents, as they are there, and running one.

The texts beside this file hold them; where a document lost its indentation, it was restored. A hash for each tells that no line was
changed.
"""

import re
from hashlib import sha256
from pathlib import Path
from textwrap import indent
from typing import Any

HASHES = {
    "leasedkeyq": {
        "Quick start": "9f2091355ce9cf13",
        "Producer": "5b2051a6acc53e02",
        "Consumer": "b61250f4f5dd5d70",
        "Lease control": "70356af5ac67994a",
        "Introspection": "1b737b7960995ac9",
        "In flight": "f525537006eba995",
        "Lease time-outs": "3b9ca03e2ca67c87",
    },
    "localqueue": {
        "A configuration": "e29584d22afb57bf",
        "A worker": "923e7e29b71ddf80",
        "A retried function": "070cc8422befeb3a",
        "A retried coroutine function": "0ee3622fcb2145a8",
        "A key from a named argument": "17bf16ac3ec4a443",
        "A key from an attribute": "85f98e541640d83c",
        "A key from an id": "12f49c74631ef3a8",
        "A retryer": "880e5e6dbc160714",
        "An async retryer": "221fab3412693c08",
        "An attempt store of one's own": "92151ad11d02afb1",
        "Attempts in LMDB": "a0435363ebe5a7be",
        "Attempts in SQLite": "01693432140c861c",
    },
    "sssn": {
        "Step 1": "72f7eec9e0cc8195",
        "Step 2": "600f82fbc867a367",
        "Step 3": "c816801d68abd02e",
        "Step 4": "1d39c9fa7dc6a4c8",
        "Step 5": "4c0ca8e969740603",
        "Complete program": "aba008bff4ebcb9e",
    },
}
"""Of the lines of each block, without indentation and empty lines."""

IMPORTS = {
    "from leasedkeyq import": "from holdfast.surfaces.leasedkeyq import",
    "from localqueue import": "from holdfast.surfaces.localqueue import",
    "from localqueue.retry import": "from holdfast.surfaces.localqueue.retry import",
    "from sssn.channels.work_queue import": "from holdfast.surfaces.sssn import",
    "from sssn.core.channel import": "from holdfast.surfaces.sssn import",
}
"""All that is changed."""


def blocks_of(document: str) -> dict[str, str]:
    """The blocks of a document by their titles."""
    text = (Path(__file__).parent / f"{document}.txt").read_text()
    return dict(re.findall(r"## (.*?)\n\n```python\n(.*?)```", text, re.DOTALL))


def hash_of(block: str) -> str:
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def code_of(document: str, *titles: str) -> str:
    """Blocks that stand one after the other, with their imports changed."""
    code = "".join(blocks_of(document)[title] for title in titles)
    for before, after in IMPORTS.items():
        code = code.replace(before, after)
    return code


def run(document: str, *titles: str, **names: Any) -> dict[str, Any]:
    """Run blocks as a program that is given these names; answer all that it has in the end."""
    exec(code_of(document, *titles), names)  # noqa: S102 - the code is in this folder
    return names


async def run_inside(document: str, *titles: str, **names: Any) -> dict[str, Any]:
    """Run blocks inside a coroutine function that is given these names; answer its own in the end."""
    body = indent(code_of(document, *titles), "    ")
    exec(f"async def block({', '.join(names)}):\n{body}\n    return locals()", made := dict[str, Any]())  # noqa: S102 - as above
    answer: dict[str, Any] = await made["block"](**names)
    return answer
