from pathlib import Path

import pytest

from tools import browser


def test_a_package_other_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "package.tgz"
    package.write_bytes(b"another browser")
    with pytest.raises(SystemExit, match="not the package that was pinned"):
        browser.check(package)


def test_a_browser_that_is_not_there_is_an_error_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(browser.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="make browser"):
        browser.executable()
