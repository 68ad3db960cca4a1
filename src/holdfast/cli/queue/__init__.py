"""The commands `holdfast queue …`."""

import typer

from holdfast.cli.queue.control import cancel, pause, purge, redrive, resume
from holdfast.cli.queue.exec import exec_
from holdfast.cli.queue.put_and_claim import ack, claim, put, release
from holdfast.cli.queue.queries import browse, dead, explain, list_, peek, rates, stats, watch
from holdfast.cli.queue.settings import configure, group, groups, throttle

queue: typer.Typer = typer.Typer(no_args_is_help=True, help="Queues: look at them, put, claim and settle messages, steer them.")

for _command in (put, claim, ack, release, peek, browse, dead, explain, stats, rates, watch, pause, resume, redrive, cancel, purge):
    queue.command()(_command)
queue.command()(configure)
queue.command()(throttle)
queue.command()(groups)
queue.command()(group)
queue.command("ls")(list_)
queue.command("exec")(exec_)
