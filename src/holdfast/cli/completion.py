"""The command `holdfast completion`."""

from typing import Annotated, Literal

import typer

from holdfast.cli.opening import AsJson
from holdfast.cli.showing import print_result


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish", "powershell"], typer.Argument(help="bash, zsh, fish or powershell.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Print the script that completes commands and options in a shell.

    For bash, put this into ~/.bashrc: eval "$(holdfast completion bash)". For zsh the same with zsh, behind compinit, into ~/.zshrc. For
    fish: holdfast completion fish > ~/.config/fish/completions/holdfast.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # it is where typer uses it

    script = get_completion_script(prog_name="holdfast", complete_var="_HOLDFAST_COMPLETE", shell=shell)
    print_result({"shell": shell, "script": script}, script, as_json=as_json)
