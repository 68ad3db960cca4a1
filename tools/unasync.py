"""Write the sync twins of the async code: `_async` folders become `_sync` folders.

    python tools/unasync.py           write what changed
    python tools/unasync.py --check   change nothing; show the difference and exit with 1

Each rule is a regular expression. A rule that no file needs is an error, so the list cannot rot: add a rule with the code that needs it,
and remove it with the last.
"""

import difflib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

FOLDERS = (
    "src/holdfast/_async",
    "src/holdfast/stores/_async",
    "src/holdfast/stores/http/_async",
    "src/holdfast/stores/postgres/_async",
    "src/holdfast/stores/redis/_async",
    "src/holdfast/workers/steps/_async",
    "src/holdfast/surfaces/localqueue/_async",
    "src/holdfast/surfaces/sentinel/_async",
    "tests/_async",
)

# Applied in this order, to whole files.
RULES: dict[str, str] = {
    r"^pytestmark = pytest\.mark\.anyio\n": "",
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAwaitable\[([^][]+)\]": r"\1",
    r"\basynccontextmanager\b": "contextmanager",
    r"\b__a(enter|exit)__\b": r"__\1__",
    r"\basync_(store|answer|call|sleep|stop_signals)(?=_on\b|\b)": r"\1",
    r"\b(connect|open)_async\b": "connect",
    r"\bpersistent_async_(?=retry|worker)": "persistent_",
    r"\b(wait|wait_for|retry|take|ask|pause)_async\b": r"\1",
    r"\baclose\b": "close",
    r"\.for_tasks\(\)": "",
    r"Async(?=[A-Z])": "",  # AsyncStore, AsyncRunner
    r"\b_async\b": "_sync",
}


class UnusedRulesError(Exception):
    """Rules that no file needs."""


def twin_of(source: Path) -> Path:
    """Where the sync twin of an async file lives."""
    return Path(*("_sync" if part == "_async" else part for part in source.parts))


def translate(text: str, rules: Mapping[str, str], used: Counter[str]) -> str:
    """The sync form of async code; counts in `used` how often each rule changed something."""
    for pattern, replacement in rules.items():
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        used[pattern] += count
    return text


def tidy(text: str, path: Path) -> str:
    """Format as `make format` would: names got shorter, imports moved or lost their use, two kinds of `with` became one."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--fix-only", "--select", "I,F401,SIM117"], ["format", "--quiet"]):
        done = subprocess.run([*ruff, *command, "--stdin-filename", path, "-"], input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def generate(root: Path, rules: Mapping[str, str]) -> dict[Path, str]:
    """Every twin's path, relative to `root`, and its text."""
    used: Counter[str] = Counter()
    twins = {}
    for source in sorted(path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        header = f"# Generated from {source.as_posix()} by tools/unasync.py; do not edit.\n"
        twin = twin_of(source)
        twins[twin] = tidy(header + translate((root / source).read_text(), rules, used), root / twin)
    unused = [pattern for pattern in rules if not used[pattern]]
    if twins and unused:
        raise UnusedRulesError(f"tools/unasync.py: no file needs these rules, remove them: {'  '.join(unused)}")
    return twins


def difference(root: Path, twins: Mapping[Path, str]) -> dict[Path, str]:
    """The files that are missing, outdated or stale, each with its diff."""
    stored = {path.relative_to(root): path.read_text() for folder in FOLDERS for path in twin_of(root / folder).rglob("*.py")}
    differing = {}
    for path in sorted(stored.keys() | twins.keys()):
        before, after = stored.get(path, ""), twins.get(path, "")
        if path not in twins or path not in stored or before != after:
            name = path.as_posix()
            lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (generated)")
            differing[path] = "".join(lines) or f"{name}: {'missing' if path in twins else 'stale'}\n"
    return differing


def main(root: Path, rules: Mapping[str, str], arguments: list[str]) -> int:
    """Bring the twins up to date, or with `--check` say how they are not."""
    try:
        twins = generate(root, rules)
    except UnusedRulesError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    differing = difference(root, twins)
    if "--check" in arguments:
        sys.stdout.writelines(differing.values())
        return 1 if differing else 0
    for path in differing:
        if path in twins:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(twins[path])
        else:
            (root / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1], RULES, sys.argv[1:]))
