"""Apps on a store of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.surfaces.celery import Celery, app


@pytest.fixture
def apps() -> Iterator[None]:
    """Forget the apps and shared tasks of the test."""
    yield
    for one in app._apps:
        if "client" in one.__dict__:
            one.client.close()
    app._apps.clear()
    app._shared.clear()


@pytest.fixture
def celery(tmp_path: Path, apps: None) -> Celery:
    return Celery("shop", broker=f"sqlite:///{tmp_path}/jobs.db")
