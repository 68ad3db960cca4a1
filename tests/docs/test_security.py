"""The page about security is true to the tests that it names."""

import re

from tests.docs.naming import ROOT, unknown_tests

PAGE = (ROOT / "docs" / "design" / "security.md").read_text("utf-8")
FINDINGS = re.findall(r"^\| ([CHML]\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
NEEDS = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)


def test_every_finding_has_a_test_that_exists() -> None:
    expected = ["C1", *(f"{letter}{n}" for letter, last in (("H", 10), ("M", 10), ("L", 13)) for n in range(1, last + 1))]
    assert [finding for finding, _ in FINDINGS] == expected
    assert unknown_tests(" ".join(shown for _, shown in FINDINGS)) - {"make verify"} == set()


def test_every_need_names_files_that_exist() -> None:
    assert [int(number) for number, _ in NEEDS] == list(range(1, 19))
    files = {path.name for folder in ("tests", "src/holdfast/testing") for path in (ROOT / folder).rglob("*.py")}
    named = re.findall(r"`([\w/]+\.py)`", " ".join(shown for _, shown in NEEDS))
    assert [name for name in named if name not in files and not (ROOT / name).exists()] == []
