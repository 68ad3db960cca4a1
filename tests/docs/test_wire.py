"""The curl examples of the wire's page, run in order against a real server."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.docs.examples import FENCE
from tests.server.serving import Served

PAGE = (Path(__file__).parents[2] / "docs/reference/wire.md").read_text()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(MemoryStore(clock=FakeClock()))
    yield served
    served.close()


def test_the_examples_answer_what_the_page_says(served: Served) -> None:
    fences = list(FENCE.finditer(PAGE))
    for shell, said in zip(fences, [*fences[1:], None], strict=True):
        if shell["language"] != "sh":
            continue
        script = shell["body"].replace("localhost:7077", served.url.removeprefix("http://"))
        # Each answer on lines of its own.
        script = re.sub(r"^curl -s ", "curl -s -w '\\\\n' ", script, flags=re.MULTILINE)
        answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout  # noqa: S607 - any will do
        if said is not None and said["language"] == "json":
            assert documents(answer) == documents(said["body"]), shell["body"]
        elif said is not None and said["language"] == "text":
            assert answer == said["body"]


def documents(text: str) -> list[object]:
    """The JSON documents of a text, each begun at the start of a line."""
    parts = re.split(r"\n(?=[\[{])", text.strip())
    return [json.decode(part) for part in parts]
