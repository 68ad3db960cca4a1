"""The id that a put answers names its message wherever an id is asked for."""

from pathlib import Path

import pytest

from holdfast._async.handles.queue import AsyncQueue
from holdfast.client import ControlPlaneClient

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("scheme", ["memory", "sqlite", "lmdb"])
async def test_the_id_of_a_put_is_taken_everywhere(scheme: str, tmp_path: Path) -> None:
    url = "memory://" if scheme == "memory" else f"{scheme}:///{tmp_path}/store"
    async with ControlPlaneClient(url) as client:
        jobs = await AsyncQueue.create("jobs", client=client)
        known = await jobs.put("paint")
        assert (await jobs.explain(known)).reason == "ready"
        assert not (await jobs.put("again", id=known)).created
        assert (await jobs.cancel(known)).count == 1
        await jobs.put("paint", id=known)
        claim = await jobs.claim(claimer="w")
        assert claim is not None
        await jobs.bury(claim, error="no paint")
        assert (await jobs.redrive([known])).count == 1
