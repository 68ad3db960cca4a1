"""As root: act as the user to whom a store's folder belongs.

SQLite and LMDB open their files by name, and the owner of a folder can exchange what is in it at any moment. No check before opening is
safe from that, so the command gives root's rights up: the kernel then refuses whatever the owner could not do without us.
"""

import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISVTX

import typer

from holdfast.connect import file_of
from holdfast.errors import StoreError

ROOT = 0
MOST_LINKS = 40
"""As many as the kernel follows."""


def act_as_owner_of(*places: str | Path | None) -> None:
    """Give up root's rights where one of these, paths or URLs of stores, is another user's to exchange. Others than root have none."""
    if os.geteuid() != ROOT:
        return
    paths = [place if isinstance(place, Path) else file_of(place) for place in places]
    owners = {owner_of(path): path for path in paths if path is not None}
    if len(owners) > 1:
        told = " and ".join(f"{path} of {name_of(uid)}" for uid, path in owners.items())
        raise StoreError(f"{told} belong to different users: as root, use files of one user, then move them")
    for uid, path in owners.items():
        if uid != ROOT:
            become(uid, path)


def owner_of(path: Path) -> int:
    """The first user but root who can exchange something on the way to a path; root where no one else can."""
    for place, status in way_to(path):
        if status.st_uid != ROOT and is_known_here(status.st_uid):
            return status.st_uid
        others_write = status.st_mode & 0o002 or (status.st_mode & 0o020 and status.st_gid != ROOT)
        if S_ISDIR(status.st_mode) and others_write and not status.st_mode & S_ISVTX:
            raise StoreError(f"others than root can exchange what is in {place}: as root, use a folder that is root's or one user's alone")
    return ROOT


def way_to(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """All folders and links that lead to a path, as far as they are there, and what it names."""
    here, rest, links = "/", list(reversed(path.absolute().parts[1:])), 0
    yield here, os.lstat(here)
    while rest:
        part = rest.pop()
        place = os.path.normpath(f"{here}/{part}")  # What is before a `..` is no link: links are replaced below.
        try:
            status = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return
        yield place, status
        if not S_ISLNK(status.st_mode):
            here = place
            continue
        links += 1
        if links > MOST_LINKS:
            raise StoreError(f"{path} leads through too many links")
        target = Path(place).readlink()
        if target.is_absolute():
            here = "/"
        rest += reversed([part for part in target.parts if part != "/"])


def is_known_here(uid: int) -> bool:
    """Whether this user namespace has the user: our root has no rights over a user that it does not have."""
    try:
        lines = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    except OSError:
        return True  # No Linux.
    ranges = [(int(first), int(count)) for first, _, count in map(str.split, lines)]
    return any(first <= uid < first + count for first, count in ranges)


def name_of(uid: int) -> str:
    """What a user is called; some containers have no names."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def become(uid: int, path: Path) -> None:
    """Act as the user from here on, in all threads. The real user stays root, so that the user cannot send us signals."""
    name = name_of(uid)
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        os.setgroups([])
        os.setegid(uid)
    else:
        os.initgroups(entry.pw_name, entry.pw_gid)
        os.setegid(entry.pw_gid)
    os.seteuid(uid)
    hidden = sorted({folder for folder in map(os.path.dirname, module_files()) if not os.access(folder, os.R_OK, effective_ids=True)})
    if hidden:
        raise StoreError(
            f"{path} is in the hands of {name}, as whom root must act there, and who cannot read the modules in {hidden[0]}: "
            "install Python and Holdfast where every user can read them"
        )
    typer.echo(f"holdfast: {path} is in the hands of {name}, so this command acts as {name}, not as root", err=True)


def module_files() -> list[str]:
    """Where the modules of this program are; more are loaded from there when they are needed."""
    return [file for module in list(sys.modules.values()) if (file := module.__dict__.get("__file__"))]
