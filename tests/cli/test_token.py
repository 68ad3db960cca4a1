"""`holdfast token`: made once, listed without a secret, revoked."""

from pathlib import Path

from holdfast import connect
from holdfast.server.tokens import find, token_of
from holdfast.testing.conformance.asking import read
from tests.cli.test_entry import holdfast


def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    store = f"--store=sqlite:///{tmp_path}/s.db"
    made = holdfast("token", "create", "ann", "--scope=queue:jobs-*:put,claim", "--namespace=team", "--days=30", store)
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip().split("_", 2)[2]
    listed = holdfast("token", "list", store).stdout
    assert secret not in listed
    token_id = listed.split()[0]
    assert listed.endswith("UTC in team  queue:jobs-*:put,claim\n")
    assert holdfast("token", "revoke", token_id, store).returncode == 0
    assert holdfast("token", "list", store).stdout == ""
    again = holdfast("token", "revoke", token_id, store)
    assert again.returncode == 2
    opened = connect(store.partition("=")[2])
    acts = list(read(opened, dict="holdfast/audit").values())
    opened.close()
    assert [act["what"] for act in acts] == ["create token", "revoke token"]
    assert secret not in str(acts)


def test_a_token_keeps_what_was_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    holdfast("token", "create", "ann", "--scope=admin", "--scope=dict:*:read", f"--store={url}")
    opened = connect(url)
    token = token_of(opened.execute(find()).entries[0])
    opened.close()
    assert (token.name, token.scopes, token.namespaces, token.expires_at) == ("ann", ("admin", "dict:*:read"), (), None)


def test_what_is_no_scope_is_refused(tmp_path: Path) -> None:
    answer = holdfast("token", "create", "ann", "--scope=everything", f"--store=sqlite:///{tmp_path}/s.db")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "no scope" in answer.stderr
