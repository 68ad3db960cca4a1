"""`holdfast token` and `holdfast audit`: on the store itself, by whoever may open it."""

from pathlib import Path

import pytest
from msgspec import json

from holdfast import connect
from holdfast.server.auth.tokens import has_tokens, id_of, list_tokens
from holdfast.server.namespaces.names import TOKENS
from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast


@pytest.fixture
def store(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"--url=sqlite:///{tmp_path}/s.db"


def test_a_store_is_made_for_a_token_only_if_that_is_said(tmp_path: Path) -> None:
    url = f"--url=sqlite:///{tmp_path}/new.db"
    assert holdfast("token", "create", "ann", "--scope=*", url).exit_code == 1
    assert not (tmp_path / "new.db").exists()
    assert holdfast("token", "create", "ann", "--scope=*", url, "--create-store").exit_code == 0
    assert len(json.decode(holdfast("token", "list", "--json", url).stdout)) == 1


def test_a_token_is_made_listed_and_revoked_and_the_audit_tells_of_it(store: str, tmp_path: Path) -> None:
    made = holdfast("token", "create", "ann", "--scope=queue:jobs-*:put,claim", "--namespace=team", "--expires=30d", store)
    assert made.exit_code == 0, made.stderr
    text = made.stdout.strip()
    token_id = id_of(text)
    assert token_id is not None, "stdout has the token and nothing else"
    (told,) = json.decode(holdfast("token", "list", "--json", store).stdout)
    assert (told["id"], told["name"], told["scopes"], told["namespaces"]) == (token_id, "ann", ["queue:jobs-*:put,claim"], ["team"])
    assert token_id in holdfast("token", "list", store).stdout
    assert holdfast("token", "revoke", token_id, store).stdout == f"Token {token_id} is revoked.\n"
    assert holdfast("token", "revoke", token_id, store).exit_code == 3
    opened = SqliteStore(tmp_path / "s.db")
    assert not has_tokens(opened)
    opened.close()
    listed = holdfast("audit", "--json", store).stdout
    assert [(record["act"], record["what"]) for record in json.decode(listed)] == [("create token", token_id), ("revoke token", token_id)]
    assert "revoke token" in holdfast("audit", "--since=1h", store).stdout
    assert text not in listed + str(told)
    assert text.encode() not in (tmp_path / "s.db").read_bytes()


def test_without_a_namespace_a_token_is_of_the_default_one_and_an_administrators_of_all(store: str, tmp_path: Path) -> None:
    holdfast("token", "create", "ann", "--scope=dict:*:read", store)
    made = json.decode(holdfast("token", "create", "bob", "--scope=admin", "--json", store).stdout)
    assert id_of(made["token"]) == made["id"]
    opened = connect(store.partition("=")[2])
    assert [(token.name, token.namespaces, token.expires_at) for token in list_tokens(opened)] == [
        ("ann", ("default",), None),
        ("bob", ("*",), None),
    ]
    opened.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scope=everything"], "not a scope"),
        (["--scope=queue:a:fly"], "no verb"),
        (["--scope=*", "--expires=soon"], "not a duration"),
        (["--scope=*", "--namespace=A b"], "not a valid namespace"),
        (["--scope=*", "--url=http://localhost:1"], "on the store itself"),
        (["--scope=*", "--url=nowhere://x"], "unknown store URL scheme"),
    ],
)
def test_what_was_asked_wrong_is_refused_in_one_line(store: str, options: list[str], words: str) -> None:
    answer = holdfast("token", "create", "ann", store, *options)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert words in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_name_with_control_characters_reaches_no_terminal(store: str) -> None:
    assert holdfast("token", "create", "a\x1b[2J", "--scope=*", store).exit_code == 2
    assert TOKENS.startswith(" ")
