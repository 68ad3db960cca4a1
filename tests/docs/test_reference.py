"""The reference has everything that users import."""

import inspect
import re
from pathlib import Path

import griffe
import pytest

import holdfast
from holdfast import commands, errors, results
from holdfast.testing import plugin

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"


def mentioned(page: str) -> set[str]:
    return set(re.findall(r"\w+", (REFERENCE / page).read_text()))


def test_every_command_is_in_the_reference() -> None:
    for_stores = {"ALL", "Command", "Transaction", "Filter", "Stats", "AnyCommand", "decode_command", "encode_command", "run"}
    assert set(commands.__all__) - for_stores - mentioned("commands.md") == set()


def test_every_public_name_is_in_the_reference() -> None:
    pages = [page.name for page in REFERENCE.glob("*.md")]
    listed = set().union(*(mentioned(page) for page in pages))
    whole_modules = {name for module in (errors, results) for name in vars(module)}
    assert set(holdfast.__all__) - listed - whole_modules == {"__version__"}


@pytest.mark.parametrize(("handle", "page"), [(holdfast.Queue, "queue.md"), (holdfast.Dict, "dict.md")])
def test_the_reference_of_a_handle_lists_its_methods_with_the_most_used_first(handle: type, page: str) -> None:
    listed = re.search(r"members: \[([^]]*)\]", (REFERENCE / page).read_text())
    assert listed is not None
    methods = re.findall(r"\w+", listed[1])
    assert sorted(methods) == sorted(name for name in dir(handle) if not name.startswith("_") and name != "aio")
    assert methods.index("put") < 5


def test_every_fixture_is_in_the_reference_and_on_the_page_about_testing() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("holdfast_")}
    page = (REFERENCE.parent / "howto/testing.md").read_text()
    assert fixtures <= mentioned("testing.md")
    assert fixtures <= set(re.findall(r"\w+", page))


def test_the_reference_shows_the_options_of_a_call_as_its_signature_does() -> None:
    package = griffe.load("holdfast", search_paths=[ROOT / "src"], extensions=griffe.load_extensions(str(ROOT / "tools/docs_options.py")))
    for handle in (holdfast.Queue, holdfast.Dict, holdfast.Lock, holdfast.Worker):
        place = package[f"{handle.__module__}.{handle.__qualname__}".removeprefix("holdfast.")]
        for name, call in inspect.getmembers(handle, inspect.isfunction):
            if name in place.members:
                assert [one.name for one in place[name].parameters] == list(inspect.signature(call).parameters), name
