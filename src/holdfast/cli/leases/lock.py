"""The commands `holdfast lock …`: run, show."""

from typing import Annotated, Any

import typer

from holdfast.cli.commands import LOST, NOTHING, ended
from holdfast.cli.leases.program import run_under
from holdfast.cli.leases.steer import break_, list_
from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import as_data, line
from holdfast.cli.showing import moment, print_result
from holdfast.errors import LockTimeout

STDOUT, STDERR = 1, 2

lock: typer.Typer = typer.Typer(no_args_is_help=True, help="Locks: run a program under one, see who has one.")

LockName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the lock.")]
Program = Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, behind --.")]
LeaseSeconds = Annotated[float, typer.Option(help="How long the lease lasts; it is renewed while the program runs.")]
OutcomeJson = Annotated[
    bool, typer.Option("--json", help="Print how it ended, as JSON; what the program prints goes to standard error then.")
]
Holder = Annotated[str | None, typer.Option(help="Who holds it; by default this machine and process.")]


@lock.command()
def run(
    name: LockName,
    command: Program,
    *,
    lease_s: LeaseSeconds = 60.0,
    wait_s: Annotated[float | None, typer.Option(help="Wait so long for the lock; by default for ever, 0 asks once.")] = None,
    fair: Annotated[
        bool, typer.Option("--fair", help="Stand in line, first come, first served; all users of the lock must do so.")
    ] = False,
    holder: Holder = None,
    url: StoreUrl = None,
    as_json: OutcomeJson = False,
) -> None:
    """Run a program while holding a lock, and exit with its exit code.

    The program is killed when the lease is lost, also if this command is itself stopped or killed: then it exits with 4. If the lock is
    not free in time it exits with 3. The program finds the fencing token in HOLDFAST_FENCE: what it changes should refuse smaller ones.
    """
    from holdfast import Lock

    with connected(url, create=True) as client:
        made = Lock(name, lease_s=lease_s, fair=fair, holder=holder, client=client)
        try:
            held = made.acquire(wait_timeout_s=wait_s)
        except LockTimeout as error:
            raise ended("lock run", error, NOTHING) from None
        try:
            code = run_under(held, lease_s, command, facts(name, held), prints_to=STDERR if as_json else STDOUT)
        finally:
            held.release()
    if as_json:
        typer.echo(line(outcome(name, held, code)))
    if code is None:
        raise ended("lock run", f"lock {name!r} is lost, so the program was killed", LOST)
    raise typer.Exit(code)


@lock.command()
def show(name: LockName, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show who holds a lock. Exits with 3 if it is free."""
    from holdfast import Lock

    with connected(url) as client:
        found = Lock(name, client=client).holding()
    print_result(as_data(found), held_by(f"Lock {name}", found), as_json=as_json)
    if found is None:
        raise typer.Exit(NOTHING)


lock.command("ls")(list_)
lock.command("break")(break_)


def facts(name: str, held: Any) -> dict[str, str]:
    """What a program under a lease finds in its environment."""
    return {"HOLDFAST_LEASE": name, "HOLDFAST_HOLDER": held.holder, "HOLDFAST_FENCE": str(held.token)}


def outcome(name: str, held: Any, code: int | None) -> dict[str, Any]:
    """How a program under a lease ended; without an exit code it was killed because the lease was lost."""
    return {"name": name, "holder": held.holder, "token": held.token, "exit_code": code, "lost": code is None}


def held_by(what: str, found: Any) -> str:
    """Who holds it, for people."""
    if found is None:
        return f"{what} is free."
    since = "" if found.since is None else f" since {moment(found.since.timestamp())}"
    return f"{what} is held by {found.holder}{since}, token {found.token}."
