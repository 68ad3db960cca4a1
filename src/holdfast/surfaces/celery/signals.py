"""`celery.signals`: none is supported; the error names the remedy."""

from typing import NoReturn

from holdfast.surfaces.celery.refusals import refused


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise refused("celery.signals", "signals", ())
