"""Ids: canonical UUIDv7 text, in order, never twice, not even across a fork."""

import os
import subprocess
import sys
import uuid

import pytest

from holdfast.ids import new_id

FORKING = """
import os, random
from holdfast.ids import new_id

generator = random.Random(1)
make = {maker}
make()
reader, writer = os.pipe()
child = os.fork()
ids = [make() for _ in range(2000)]
if not child:
    with os.fdopen(writer, "w") as out:
        out.write(" ".join(ids))
    os._exit(0)
os.close(writer)
with os.fdopen(reader) as pipe:
    theirs = pipe.read().split()
os.waitpid(child, 0)
print(len({{*ids, *theirs}}))
"""


def distinct_ids_of_parent_and_child(maker: str) -> int:
    program = FORKING.format(maker=maker)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return int(done.stdout)


def test_an_id_is_the_canonical_text_of_a_version_7_uuid() -> None:
    made = new_id()
    assert str(uuid.UUID(made)) == made
    assert uuid.UUID(made).version == 7


def test_ids_of_one_process_are_distinct_and_sort_in_the_order_they_were_made() -> None:
    ids = [new_id() for _ in range(20_000)]
    assert ids == sorted(set(ids))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_makes_none_of_its_parents_ids() -> None:
    assert distinct_ids_of_parent_and_child("new_id") == 4000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_the_fork_test_finds_a_generator_that_a_child_inherits() -> None:
    assert distinct_ids_of_parent_and_child("lambda: format(generator.getrandbits(128), 'x')") == 2000
