import subprocess
import sys

import pytest

import holdfast
from holdfast import aio, errors


def test_every_public_name_is_there() -> None:
    assert [name for name in holdfast.__all__ if not hasattr(holdfast, name)] == []


def test_every_error_is_public() -> None:
    tree = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, errors.HoldfastError)}
    assert tree - set(holdfast.__all__) == set()


def test_connect_is_the_function_whatever_else_is_imported() -> None:
    import holdfast.connect

    assert callable(holdfast.connect)


def test_importing_the_package_loads_no_store() -> None:
    program = "import holdfast, sys; print(sorted(name for name in sys.modules if name.startswith('holdfast.stores.')))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert [name for name in ("memory", "sqlite", "lmdb") if f"holdfast.stores.{name}" in answer.stdout] == []


def test_importing_the_package_loads_no_handle_and_no_command() -> None:
    program = "import holdfast, holdfast.aio, sys; print([n for n in sys.modules if 'handles' in n or n.startswith('holdfast.commands')])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout == "[]\n"


def test_every_async_name_is_there() -> None:
    assert [name for name in aio.__all__ if not hasattr(aio, name)] == []


def test_an_unknown_name_is_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Quue'"):
        _ = holdfast.Quue  # type: ignore[attr-defined] # what is refused
    assert set(dir(holdfast)) == set(holdfast.__all__)
