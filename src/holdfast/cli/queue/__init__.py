"""The commands `holdfast queue …`."""

import typer

from holdfast.cli.queue.exec import exec_
from holdfast.cli.queue.looking import browse, dead, explain, list_, peek, rates, stats, watch
from holdfast.cli.queue.policies import configure, group, groups, throttle
from holdfast.cli.queue.steering import cancel, pause, purge, redrive, resume
from holdfast.cli.queue.using import ack, claim, put, release

queue: typer.Typer = typer.Typer(no_args_is_help=True, help="Queues: look at them, put, claim and settle messages, steer them.")

for _command in (put, claim, ack, release, peek, browse, dead, explain, stats, rates, watch, pause, resume, redrive, cancel, purge):
    queue.command()(_command)
queue.command()(configure)
queue.command()(throttle)
queue.command()(groups)
queue.command()(group)
queue.command("ls")(list_)
queue.command("exec")(exec_)
