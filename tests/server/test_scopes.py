"""What a scope allows, and how it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commands.names import Verb
from holdfast.server.auth.permissions import Kind, Need, lease_name
from holdfast.server.auth.scopes import Scope, matches


@pytest.mark.parametrize(
    ("scope", "kind", "name", "verb", "allowed"),
    [
        ("queue:orders-*:put,claim", "queue", "orders-eu", "put", True),
        ("queue:orders-*:put,claim", "queue", "orders-eu", "claim", True),
        ("queue:orders-*:put,claim", "queue", "orders-eu", "manage", False),
        ("queue:orders-*:put,claim", "queue", "orders", "put", False),
        ("queue:orders-*:put,claim", "dict", "orders-eu", "put", False),
        ("dict:a:b:read", "dict", "a:b", "read", True),
        ("dict:settings:*", "dict", "settings", "manage", True),
        ("*:*:read", "lease", "reports", "read", True),
        ("*", "queue", "jobs", "manage", True),
        ("*", "server", "audit", "read", False),
        ("*", "server", "", "admin", False),
        ("*:*:*", "server", "audit", "read", False),
        ("server:audit:read", "server", "audit", "read", True),
        ("server:*:read", "server", "", "admin", False),
        ("admin", "server", "", "admin", True),
        ("admin", "queue", "jobs", "claim", True),
    ],
)
def test_a_scope_allows_what_it_says_and_nothing_else(
    scope: str,
    kind: Kind,
    name: str,
    verb: Verb,
    allowed: bool,  # noqa: FBT001 - a table
) -> None:
    assert Scope.parse(scope).allows(Need(kind, name, verb)) is allowed


@pytest.mark.parametrize(
    "text", ["", "queue", "queue:jobs", "queue::read", "jobs:read", "server:audit:admin", "queue:a:fly", "queue:a:", "q:a:read"]
)
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"scope|verb"):
        Scope.parse(text)


def test_the_scope_that_a_refusal_names_allows_what_was_refused() -> None:
    need = Need("queue", "jobs:eu", "claim")
    assert Scope.parse(need.scope).allows(need)


def fits(pattern: str, name: str) -> bool:
    """The same by trying everything."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(fits(pattern[1:], name[begin:]) for begin in range(len(name) + 1))
    return name[:1] == pattern[0] and fits(pattern[1:], name[1:])


@given(st.text("ab*", max_size=6), st.text("ab*", max_size=8))
def test_a_star_stands_for_anything_and_all_else_for_itself(pattern: str, name: str) -> None:
    assert matches(pattern, name) is fits(pattern, name)


@given(st.text("a:*", min_size=1, max_size=5), st.text("a:", max_size=6))
def test_a_text_begins_with_a_name_that_is_allowed_if_any_name_it_begins_with_is(pattern: str, rest: str) -> None:
    text = f"a{rest}:"
    names = [text[:end] for end, letter in enumerate(text) if letter == ":"]
    allowed = Scope("queue", pattern, frozenset({"read"})).allows_beginning("queue", ["claim", "read"], text)
    assert allowed is any(matches(pattern, name) for name in names)


@given(st.text("ab*", max_size=6), st.text("ab", max_size=4), st.text("ab", max_size=4))
def test_whoever_may_list_a_prefix_may_read_every_name_that_begins_with_it(pattern: str, prefix: str, rest: str) -> None:
    if matches(pattern, f"{prefix}*"):
        assert matches(pattern, prefix + rest)


def test_a_lock_and_an_election_go_by_their_names() -> None:
    assert lease_name('["lock","re\\"ports"]') == 're"ports'
    assert lease_name('["election","boss"]') == "boss"
    assert lease_name('["lock","a","b"]') == '["lock","a","b"]'
    assert lease_name(' ["lock","a"]') == ' ["lock","a"]'
