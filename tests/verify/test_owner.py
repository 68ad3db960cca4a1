"""The command line as root on a store of another user's, who exchanges files for links all the while: nothing outside the store changes."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.cli import intruder
from tests.cli.intruder import (
    IS_ROOT,
    NAMES,
    TARGETS,
    Grounds,
    holdfast_as_us,
    place_link,
    racing,
    serve_for_a_moment,
    swap,
    swap_when_made,
)

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]

RUNS = 25
"""Of the race for a file of ours; an engine's own files are tried a fifth as often."""

PLACES = [(scheme, name) for scheme, names in NAMES.items() for name in names]


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with intruder.grounds() as grounds:
        yield grounds


def use(grounds: Grounds, scheme: str) -> None:
    """Whatever the command line does with a store, be it possible now or not."""
    url = grounds.url(scheme)
    made = holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={url}")
    holdfast_as_us("token", "list", f"--url={url}")
    holdfast_as_us("token", "revoke", made.stdout.split("_")[1] if made.stdout else "none", f"--url={url}")
    holdfast_as_us("localqueue", "queue", "add", "jobs", "--value=1", f"--url={url}")
    holdfast_as_us("localqueue", "queue", "pop", "jobs", f"--url={url}")
    holdfast_as_us("audit", f"--url={url}")
    holdfast_as_us("restore", url)
    serve_for_a_moment(url)
    holdfast_as_us("copy", url, f"{scheme}:///{grounds.box}/copy", "--json")
    holdfast_as_us("copy", "--undo", "--force", url)


@pytest.mark.parametrize(("scheme", "name"), PLACES)
def test_what_links_lead_to_is_left_alone(scheme: str, name: str) -> None:
    for target in TARGETS:
        with intruder.grounds() as grounds:
            place_link(grounds.box / name, grounds.precious / target)
            before = grounds.snapshot()
            holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
            serve_for_a_moment(grounds.url(scheme))
            assert grounds.snapshot() == before, target


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_every_command_leaves_alone_what_links_lead_to(grounds: Grounds, scheme: str) -> None:
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
    before = grounds.snapshot()
    for name in NAMES[scheme]:
        if not (grounds.box / name).exists():
            place_link(grounds.box / name, grounds.precious / "folder")
    use(grounds, scheme)
    assert grounds.snapshot() == before


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_what_is_in_the_folder_of_the_sockets_is_left_alone(grounds: Grounds, scheme: str) -> None:
    use(grounds, scheme)
    folder = grounds.box / NAMES[scheme][1]
    for number, target in enumerate(TARGETS):
        place_link(folder / f"{number}-0123456789ab", grounds.precious / target)
    before = grounds.snapshot()
    use(grounds, scheme)
    assert grounds.snapshot() == before


@pytest.mark.parametrize(("scheme", "name"), PLACES)
def test_a_file_that_is_made_and_exchanged_for_a_link_at_once_gives_no_rights(grounds: Grounds, scheme: str, name: str) -> None:
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
    (grounds.box / "store").chmod(0o777 if scheme == "lmdb" else 0o666)
    before = grounds.snapshot()
    with racing(swap_when_made(grounds.box / name, grounds.precious / "shadow")):
        for _ in range(RUNS if name.endswith("-turns") else RUNS // 5):
            holdfast_as_us("token", "list", f"--url={grounds.url(scheme)}")
            assert grounds.snapshot() == before


@pytest.mark.parametrize(("scheme", "target"), list(product(["sqlite", "lmdb"], ["empty", "database", "folder"])))
def test_a_store_that_is_exchanged_for_a_link_and_back_leads_nowhere_else(grounds: Grounds, scheme: str, target: str) -> None:
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
    names = [name for name in NAMES[scheme] if (grounds.box / name).exists()] if IS_ROOT else NAMES[scheme][:1]
    before = grounds.snapshot()
    for name in names:
        with racing(swap(grounds.box / name, grounds.precious / target)):
            use(grounds, scheme)
        assert grounds.snapshot() == before, name


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_folder_that_is_exchanged_for_a_link_and_back_leads_nowhere_else(grounds: Grounds, scheme: str) -> None:
    grounds.go_deeper()
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
    before = grounds.snapshot()
    with racing(swap(grounds.box, grounds.precious / "folder")):
        for _ in range(3):
            use(grounds, scheme)
    assert grounds.snapshot() == before
