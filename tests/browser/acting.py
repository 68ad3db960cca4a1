"""What a reader of the dashboard does: look, press, agree, go elsewhere."""

from msgspec import json

from tests.browser.chromium import Page
from tests.sentinel_databases import until

MAIN = "document.querySelector('main')?.innerText ?? ''"


def shows(page: Page, text: str) -> None:
    """Wait until the page shows a text."""
    try:
        until(lambda: text in page.run(MAIN))
    except AssertionError:
        raise AssertionError(f"{text!r} is not shown at {page.run('location.href')}: {page.run(MAIN)!r} {page.complaints()}") from None


def lacks(page: Page, text: str) -> None:
    """Wait until the page does not show a text."""
    until(lambda: text not in page.run("document.querySelector('main').innerText"))


def press(page: Page, label: str) -> None:
    """Press the button with this label."""
    shows_button = f"[...document.querySelectorAll('button')].findLast(one => one.textContent === {json.encode(label).decode()})"
    until(lambda: page.run(f"{shows_button} !== undefined"))
    page.run(f"{shows_button}.click()")


def agree(page: Page, label: str, reason: str = "") -> None:
    """Press a button, and the one of the dialog that asks, for a reason if it wants one."""
    press(page, label)
    until(lambda: page.run("document.querySelector('dialog') !== null"))
    if reason:
        page.run(f"document.querySelector('dialog input').value = {json.encode(reason).decode()}")
    page.run("document.querySelector('dialog [type=submit]').click()")


def type_key(page: Page, key: str) -> None:
    page.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")


def go(page: Page, screen: str) -> None:
    page.run(f"location.hash = '#/{screen}'")
