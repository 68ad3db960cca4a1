"""What cannot be meant is refused with a sentence, whatever the command: exit code 2, and no traceback."""

import os
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.queue.put_and_claim import _values
from tests.cli.running import holdfast

NO_TEXT = os.fsdecode(b"caf\xe9")
"""What an argument in another encoding becomes."""

REFUSED = {
    ("queue", "put", "mail", "--text", NO_TEXT): "the value is not UTF-8",
    ("queue", "put", "mail", f'"{NO_TEXT}"'): "the value is not UTF-8",
    ("queue", "configure", "mail", "--backoff=1h:1s"): "write the shorter time first",
    ("watch", "--timeout-s=-1"): "--timeout-s must be at least 0",
    ("watch", "--timeout-s=nan"): "--timeout-s must be at least 0",
    ("serve", "--port=99999"): "--port",
    ("serve", "--proxy=proxy.example", "--port=0"): "--proxy proxy.example is not an address",
    ("top", "--once", "--interval-s=inf"): "--interval-s",
    ("worker", "run", "os:getcwd", "--queue=mail"): "os:getcwd cannot be the function of a worker: getcwd() takes no value",
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path}/s.db?durability=process"
    with ControlPlaneClient(found) as client:
        Queue.create("mail", client=client)
    return f"--url={found}"


@pytest.mark.parametrize("arguments", REFUSED, ids=ascii)
def test_an_argument_that_makes_no_sense_is_refused_in_a_sentence(arguments: tuple[str, ...], url: str) -> None:
    ran = holdfast(*arguments, url)
    assert (ran.exit_code, isinstance(ran.exception, SystemExit), REFUSED[arguments] in ran.stderr) == (2, True, True), ran.stderr


@pytest.mark.parametrize("text", [True, False])
def test_a_line_that_is_no_text_is_named_by_its_number(*, text: bool) -> None:
    with pytest.raises(ValueError, match="line 2 is not UTF-8"):
        list(_values(["1\n", f'"{NO_TEXT}"\n'], text=text))


def test_a_program_that_there_is_not_uses_no_attempt(url: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    ran = holdfast("queue", "exec", "mail", "--until-empty", url, "--", "no-such-program")
    assert (ran.exit_code, "nothing was claimed" in ran.stderr) == (127, True)
    assert json.decode(holdfast("queue", "peek", "mail", url, "--json").stdout)["attempts"] == 0


def test_a_backoff_of_one_time_waits_for_no_less(url: str) -> None:
    for given, most_s in (("10s", 10.0), ("1s", 5.0), ("1s:1h", 3600.0)):
        found = json.decode(holdfast("queue", "configure", "mail", f"--backoff={given}", url, "--json").stdout)
        assert found["backoff"]["most_s"] == most_s


def test_a_top_that_no_terminal_shows_prints_a_table_for_each_look(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    ran = holdfast("top", url)
    assert (ran.exit_code, "mail" in ran.stdout, "\x1b" in ran.stdout) == (130, True, False)
