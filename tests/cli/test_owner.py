"""The command line as root on a store of another user's: whatever that user put there, nothing outside the store changes."""

import os
from collections.abc import Iterator

import pytest

from holdfast.cli.owner import owner_of
from holdfast.errors import StoreError
from tests.cli import intruder
from tests.cli.intruder import IS_ROOT, NAMES, TARGETS, USER, Grounds, holdfast_as_us, place_hard_link, place_link, python_for_all

PLACES = [(scheme, name) for scheme, names in NAMES.items() for name in names]


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with intruder.grounds() as grounds:
        yield grounds


@pytest.mark.parametrize(("scheme", "name"), PLACES)
def test_root_follows_no_link_at_a_name_of_a_store(grounds: Grounds, scheme: str, name: str) -> None:
    target = TARGETS[PLACES.index((scheme, name)) % len(TARGETS)]
    place_link(grounds.box / name, grounds.precious / target)
    before = grounds.snapshot()
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(scheme)}")
    assert grounds.snapshot() == before


def test_root_deletes_nothing_in_a_folder_that_takes_the_place_of_the_sockets(grounds: Grounds) -> None:
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url('sqlite')}")
    place_link(grounds.box / "store-wake", grounds.precious / "folder")
    before = grounds.snapshot()
    holdfast_as_us("token", "create", "y", "--scope=admin", f"--url={grounds.url('sqlite')}")
    assert grounds.snapshot() == before


@pytest.mark.parametrize("name", ["store-turns", *(["store-wal"] if IS_ROOT else [])])
def test_root_changes_no_file_that_has_a_second_name_in_the_store(grounds: Grounds, name: str) -> None:
    place_hard_link(grounds.box / name, grounds.precious / "shadow")
    before = grounds.snapshot()
    holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url('sqlite')}")
    assert grounds.snapshot() == before


def test_what_root_makes_in_a_folder_of_another_user_is_that_users(grounds: Grounds) -> None:
    """The control of those above: the command works, or says why it cannot."""
    made = holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url('sqlite')}")
    if made.returncode:
        assert "install Python and Holdfast where every user can read them" in made.stderr, python_for_all()
    else:
        assert {path.lstat().st_uid for path in grounds.box.iterdir()} == {USER.pw_uid}
        assert made.stdout.startswith("hf_")
        assert ("not as root" in made.stderr) == IS_ROOT


@pytest.mark.parametrize("kind", ["sqlite", "lmdb"])
def test_a_pipe_in_place_of_a_file_of_the_store_is_refused(grounds: Grounds, kind: str) -> None:
    path = grounds.box / NAMES[kind][0]
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    for made in (path.parent, path):
        os.chown(made, USER.pw_uid, USER.pw_gid)
    done = holdfast_as_us("token", "create", "x", "--scope=admin", "--create-store", f"--url={grounds.url(kind)}")
    assert (done.returncode, done.stdout) == (1, "")


def test_whose_hands_a_path_is_in() -> None:
    with intruder.grounds() as grounds:
        inside, root = grounds.box / "a" / "b", grounds.precious / "shadow"
        assert owner_of(inside) == USER.pw_uid
        assert owner_of(root) == os.geteuid()
        link = grounds.precious / "link"
        link.symlink_to(inside)
        assert owner_of(link) == USER.pw_uid
        shared = grounds.precious / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        if IS_ROOT:
            with pytest.raises(StoreError, match="others than root can exchange"):
                owner_of(shared / "store")
            shared.chmod(0o1777)
            assert owner_of(shared / "store") == 0
