import re
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast import commands, errors
from holdfast.commands import Command

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs/design/decisions"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
RECORDS = sorted(path.name for path in DECISIONS.glob("0*.md"))


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_every_link_of_a_page_outside_the_docs_leads_to_a_file(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text())
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


@pytest.mark.parametrize("record", RECORDS)
def test_a_decision_record_is_short_and_complete(record: str) -> None:
    text = (DECISIONS / record).read_text()
    assert len(text.splitlines()) <= 40
    assert all(part in text for part in ("**Context.**", "**Decision.**", "**Consequences.**"))


def test_decision_records_are_numbered_without_a_gap_and_listed() -> None:
    assert [int(name[:4]) for name in RECORDS] == list(range(1, len(RECORDS) + 1))
    assert re.findall(r"\((0.*?\.md)\)", (DECISIONS / "index.md").read_text()) == RECORDS


def test_every_version_of_the_changelog_says_how_to_upgrade() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert versions
    assert all("\n### Upgrading\n" in version for version in versions)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_announces_what_may_exist_by_now(page: Path) -> None:
    announcing = re.compile(
        r"not (yet )?in 0\.1|\bcomes? later\b|(there|here) yet\b|\bwill (answer|be added|come|judge|too)\b|and, later,|there is none in"
    )
    assert announcing.findall(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_needs_anything_from_another_site_to_be_read(page: Path) -> None:
    assert "```mermaid" not in page.read_text()
    assert re.findall(r"!\[[^]]*\]\(https?:", page.read_text()) == []


@pytest.mark.parametrize("folder", ["design", "howto", "reference"])
def test_the_first_page_of_a_folder_links_to_all_others(folder: str) -> None:
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
    assert pages - set(re.findall(r"\]\(([\w-]+\.md)", (ROOT / "docs" / folder / "index.md").read_text())) == set()


NAMED = re.compile(r"`((?:src|tests|tools|bench|docs|stores|commands|server|workers|surfaces|cli|records|codec|holding|views)/[\w./-]+)`")
BENEATH = (ROOT, ROOT / "src/holdfast")


def missing(text: str) -> set[str]:
    """The files and folders of this repository that a text names, and that are not there."""
    return {name for name in NAMED.findall(text) if not any((folder / name).exists() for folder in BENEATH)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    assert missing(page.read_text()) == set()


def test_control_a_file_that_is_not_there_is_noticed() -> None:
    assert missing("see `stores/retrying.py`, `stores/threaded.py` and `docs/design/`") == {"stores/threaded.py"}


def test_the_first_page_names_every_extra() -> None:
    page = (ROOT / "README.md").read_text()
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    assert {name for name in extras if f"`{name}`" not in page and not re.match("dev|bench", name)} == set()


def test_the_reference_names_every_handle_that_has_a_twin_for_tasks() -> None:
    page = (ROOT / "docs/reference/index.md").read_text()
    twins = {name for name in holdfast.__all__ if hasattr(getattr(holdfast, name), "aio")} - {"ControlPlaneClient"}
    assert {name for name in twins if f"`{name}`" not in page} == set()


def test_the_design_page_names_every_command() -> None:
    page = (ROOT / "docs/design/index.md").read_text()
    named = [name for name in commands.__all__ if isinstance(one := getattr(commands, name), type) and issubclass(one, Command)]
    assert [name for name in named if name != "Command" and f"`{name}`" not in page] == []


def test_the_tree_of_errors_is_complete() -> None:
    tree = (ROOT / "docs/design/semantics.md").read_text().split("HoldfastError\n", 1)[1].split("```", 1)[0]
    defined = [name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.HoldfastError)]
    assert sorted(re.findall(r"── (\w+)", tree)) == sorted(set(defined) - {"HoldfastError"})
