"""`manage.py holdfast_schedules`: lists the schedules of a backend's store, pauses them, resumes them, runs them now."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from holdfast._sync.handles.schedule import Schedule
from holdfast.errors import HoldfastError
from holdfast.integrations.django.running import our_backend


class Command(BaseCommand):
    """The command."""

    help = "List the schedules of a HoldfastBackend. A worker saves those of OPTIONS['schedules'] when it starts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--backend", default="default", help="The alias in TASKS.")
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument("--pause", metavar="NAME", help="Let it put nothing until it is resumed.")
        chosen.add_argument("--resume", metavar="NAME", help="Let it go on.")
        chosen.add_argument("--run", metavar="NAME", help="Put one run now.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it."""
        del args
        try:
            self._handle(options)
        except (HoldfastError, ImproperlyConfigured, ValueError) as error:
            raise CommandError(str(error)) from error

    def _handle(self, options: dict[str, Any]) -> None:
        client = our_backend(options["backend"]).place.client
        if options["pause"]:
            Schedule.from_name(options["pause"], client=client).pause()
        elif options["resume"]:
            Schedule.from_name(options["resume"], client=client).resume()
        elif options["run"]:
            self.stdout.write(f"put job {Schedule.from_name(options['run'], client=client).run_now().id}")
        else:
            for each in Schedule.list(client=client):
                state = "paused" if each.paused is not None else f"next {each.next_run:%Y-%m-%d %H:%M:%S %Z}" if each.next_run else "ended"
                self.stdout.write(f"{each.name}: {each.rule} ({each.tz}) into {each.queue}, {state}")
