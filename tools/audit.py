"""Ask for published vulnerabilities of everything that lock files pin.

pip-audit says that it found none also where it could ask about none. So its report is read here, and what was not audited fails too.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOUND, NOT_AUDITED = 1, 2
SHOWN = 5


def report_of(lock: str, folder: Path) -> dict[str, Any] | None:
    """What pip-audit reports of a lock file, None if it could not ask."""
    output = folder / "report.json"
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner=off"]
    command += ["--format=json", f"--output={output}", f"--requirement={lock}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not output.exists() or not output.stat().st_size:
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    report: dict[str, Any] = json.loads(output.read_text())
    return report


def verdict(lock: str, report: dict[str, Any] | None) -> tuple[int, str]:
    """The exit code and what to say."""
    if report is None:
        return NOT_AUDITED, f"{lock}: NOT AUDITED, the service that knows of vulnerabilities could not be asked"
    packages = report["dependencies"]
    found = [f"{one['name']} {one['version']}: {flaw['id']}" for one in packages for flaw in one.get("vulns", ())]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if found:
        return FOUND, f"{lock}: {len(found)} published vulnerabilities: {'; '.join(found)}"
    if skipped or not packages:
        named = ", ".join(skipped[:SHOWN]) + (", ..." if len(skipped) > SHOWN else "")
        return NOT_AUDITED, f"{lock}: NOT AUDITED, {len(skipped)} of {len(packages)} packages are not known where it was asked: {named}"
    return 0, f"{lock}: no published vulnerability of {len(packages)} packages"


def main(locks: list[str]) -> int:
    """Audit them all; 1 if something was found, 2 if something could not be asked."""
    codes = set()
    for lock in locks:
        with tempfile.TemporaryDirectory() as folder:
            code, said = verdict(lock, report_of(lock, Path(folder)))
        print(said)
        codes.add(code)
    return FOUND if FOUND in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
