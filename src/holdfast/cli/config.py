"""The command `holdfast config show`."""

import os
from typing import Annotated

import typer
from msgspec import Struct

from holdfast.cli.opening import AsJson, StoreUrl
from holdfast.cli.project_settings import project_settings
from holdfast.cli.showing import print_result, shown
from holdfast.connect import file_of
from holdfast.passwords import without_password

config: typer.Typer = typer.Typer(no_args_is_help=True, help="Which settings are in force, and why.")


class Setting(Struct, frozen=True):
    """One setting that is in force."""

    name: str
    value: str
    origin: str


@config.callback()
def group() -> None:
    """Which settings are in force, and why."""


@config.command()
def show(
    *,
    origin: Annotated[bool, typer.Option("--origin", help="Say also where each setting comes from.")] = False,
    given: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show the settings that commands use here, called like this; passwords and tokens are left out."""
    found = [_url(given), *_of_environment()]
    heads = ("setting", "value", "origin") if origin else ("setting", "value")
    rows = [(each.name, each.value, each.origin)[: len(heads)] for each in found]
    print_result(found, shown(heads, rows), as_json=as_json)


def _url(given: str | None) -> Setting:
    if given is not None:
        return Setting("url", without_password(given), "the option --url")
    if (named := os.environ.get("HOLDFAST_URL")) is not None:
        return Setting("url", without_password(named), "the environment variable HOLDFAST_URL")
    project = project_settings()
    if project is not None and project.url is not None:
        return Setting("url", without_password(project.url), f"[tool.holdfast] of {project.file}")
    return Setting("url", f"sqlite:///{file_of(None)}", "the default: the file in your data folder")


SECRET = ("HOLDFAST_TOKEN",)
SHOWN = ("HOLDFAST_TLS_CERT", "HOLDFAST_TLS_KEY", "SSL_CERT_FILE", "XDG_DATA_HOME")


def _of_environment() -> list[Setting]:
    names = {name: name.removeprefix("HOLDFAST_").lower() for name in (*SECRET, *SHOWN)}
    return [_variable(variable, name) for variable, name in names.items()]


def _variable(variable: str, name: str) -> Setting:
    value = os.environ.get(variable)
    if value is None:
        return Setting(name, "", "not set")
    return Setting(name, "(set)" if variable in SECRET else value, f"the environment variable {variable}")
