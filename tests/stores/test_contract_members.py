"""Nothing looks for a member of a store by its name: what a store may have is in the contract, `holdfast.stores`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.stores import Store
from tools.syntax import parsed

ROOT = Path(holdfast.__file__).parent
USERS_OWN = ROOT / "surfaces/localqueue"
"""What is looked for there is of a user's own stores, in which some methods may be missing."""


def test_no_member_of_a_store_is_looked_for_by_name() -> None:
    members = members_of_stores()
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in ROOT.rglob("*.py")
        for line, name in looked_for(path.read_text())
        if name in members and not path.is_relative_to(USERS_OWN)
    ]
    assert found == []


def test_the_test_finds_each_way_of_looking() -> None:
    text = 'getattr(store, "clock", None)\nhasattr(store, "within")\ngetattr(client.store, "fast")\ngetattr(store, name)'
    assert [*looked_for(text)] == [(1, "clock"), (2, "within"), (3, "fast")]
    assert {"clock", "within", "fast", "by_reference", "connection", "execute", "for_tasks"} <= members_of_stores()


def looked_for(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each `getattr` and `hasattr` that names a member."""
    for node in ast.walk(parsed(text)):
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield node.lineno, name


def members_of_stores() -> set[str]:
    """The public methods and attributes of the contract and of every class of a store."""
    found = {name for name in vars(Store) | Store.__annotations__ if not name.startswith("_")}
    for path in (ROOT / "stores").rglob("*.py"):
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Store", "Tasks")):
                found.update(members_of(node))
    return found


def members_of(class_: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(class_):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                if not name.startswith("_"):
                    yield name
