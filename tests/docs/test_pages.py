import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs/design/decisions"
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
