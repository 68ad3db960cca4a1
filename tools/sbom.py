"""Write CycloneDX lists of what comes with Holdfast, bare and with all extras, into dist/: the releases that were tested, with licences."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements/dev.txt"
KINDS = {"base": "", "all": "[all]"}


def bill(extras: str, folder: Path) -> str:
    """The list of an environment with nothing in it but Holdfast and what these extras need."""
    environment = str(folder / "environment")
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "--python", environment, "--constraints", LOCK, f"{ROOT}{extras}"], check=True)
    describe = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", "pyproject.toml", "--mc-type", "library"]
    return _said([*describe, "--output-reproducible", f"{environment}/bin/python"])


def named(text: str, version: str) -> str:
    """The list with the version of Holdfast, which is not in pyproject.toml."""
    described = json.loads(text)
    described["metadata"]["component"]["version"] = version
    return json.dumps(described, indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Write both lists."""
    version = _said([sys.executable, "-m", "hatchling", "version"])
    os.environ.setdefault("SOURCE_DATE_EPOCH", _said(["git", "log", "-1", "--format=%ct"]))
    (ROOT / "dist").mkdir(exist_ok=True)
    for kind, extras in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = ROOT / f"dist/holdfast-{version}-{kind}.cdx.json"
            path.write_text(named(bill(extras, Path(folder)), version))
        print(path.relative_to(ROOT))


def _said(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main()
