"""The commands `holdfast leader …`: run, show."""

import typer

from holdfast.cli.commands import NOTHING
from holdfast.cli.leases.lock import STDERR, STDOUT, Holder, LeaseSeconds, OutcomeJson, Program, facts, held_by, outcome
from holdfast.cli.leases.program import run_under
from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import as_data, line
from holdfast.cli.showing import print_result

leader: typer.Typer = typer.Typer(no_args_is_help=True, help="Elections: run a program while leading, see who leads.")


@leader.command()
def run(
    name: str,
    command: Program,
    *,
    lease_s: LeaseSeconds = 30.0,
    holder: Holder = None,
    url: StoreUrl = None,
    as_json: OutcomeJson = False,
) -> None:
    """Run a program whenever this candidate is elected, until the program ends by itself; exit with its exit code.

    If the leadership is lost, the program is killed, and the candidate stands again. The program finds the fencing token in HOLDFAST_FENCE.
    """
    from holdfast import Election

    with connected(url, create=True) as client:
        candidate = Election(name, lease_s=lease_s, holder=holder, client=client)
        while True:
            held = candidate.campaign()
            try:
                code = run_under(held, lease_s, command, facts(name, held), prints_to=STDERR if as_json else STDOUT)
            finally:
                candidate.resign()
            if as_json:
                typer.echo(line(outcome(name, held, code)))
            if code is not None:
                raise typer.Exit(code)
            typer.echo(f"holdfast leader run: the leadership of {name!r} is lost, so the program was killed; standing again", err=True)


@leader.command()
def show(name: str, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show who leads. Exits with 3 if no one does."""
    from holdfast import Election

    with connected(url) as client:
        found = Election(name, client=client).leader()
    print_result(as_data(found), held_by(f"Election {name}", found), as_json=as_json)
    if found is None:
        raise typer.Exit(NOTHING)
