"""The command `holdfast doctor`."""

from typing import Annotated

import typer

from holdfast.cli.commands import FAILED
from holdfast.cli.doctor.condition import condition_findings
from holdfast.cli.doctor.finding import Finding
from holdfast.cli.doctor.findings import look
from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.showing import print_result
from holdfast.connect import condition_of, is_server

MARKS = {"ok": "ok      ", "notice": "notice  ", "warning": "warning ", "problem": "PROBLEM "}


def doctor(
    *,
    url: StoreUrl = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too, not only for problems.")] = False,
    as_json: AsJson = False,
) -> None:
    """Examine a store, its queues and its workers: each finding with its evidence and a remedy. Exits with 1 if there is a problem."""
    with connected(url) as client:
        found = list(look(client))
        behind_server = is_server(client.url)
    # Once the store is closed: two openings of one file in a process would end each other's locks.
    found += condition_findings(condition_of(url), is_server=behind_server)
    print_result(found, "\n".join(map(_shown, found)), as_json=as_json)
    bad = ("problem", "warning") if strict else ("problem",)
    if any(finding.level in bad for finding in found):
        raise typer.Exit(FAILED)


def _shown(finding: Finding) -> str:
    text = f"{MARKS[finding.level]} {finding.about}: {finding.finding}"
    return f"{text}\n          {finding.remedy}" if finding.remedy else text
