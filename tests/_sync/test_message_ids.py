# Generated from tests/_async/test_message_ids.py by tools/unasync.py; do not edit.
"""The id that a put answers names its message wherever an id is asked for."""

from pathlib import Path

import pytest

from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient


@pytest.mark.parametrize("scheme", ["memory", "sqlite", "lmdb"])
def test_the_id_of_a_put_is_taken_everywhere(scheme: str, tmp_path: Path) -> None:
    url = "memory://" if scheme == "memory" else f"{scheme}:///{tmp_path}/store"
    with ControlPlaneClient(url) as client:
        jobs = Queue.create("jobs", client=client)
        known = jobs.put("paint")
        assert (jobs.explain(known)).reason == "ready"
        assert not (jobs.put("again", id=known)).created
        assert (jobs.cancel(known)).count == 1
        jobs.put("paint", id=known)
        claim = jobs.claim(claimer="w")
        assert claim is not None
        jobs.bury(claim, error="no paint")
        assert (jobs.redrive([known])).count == 1
