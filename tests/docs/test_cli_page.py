"""The page about the command line says what `--help` says."""

from tests.cli.running import holdfast
from tools.cli_reference import PAGE, page


def test_the_page_has_every_command_and_option_as_they_are() -> None:
    text = PAGE.read_text("utf-8")
    assert page(text) == text, "run tools/cli_reference.py, as `make format` does"


def test_the_page_is_about_what_help_shows() -> None:
    shown = holdfast("copy", "--help").stdout
    assert "holdfast copy [OPTIONS] SOURCE [TARGET]" in shown
    assert "holdfast copy [OPTIONS] SOURCE [TARGET]" in PAGE.read_text("utf-8")
