"""How many rows the screens of the dashboard ask for, counted in the page."""

from tests.browser.chromium import Page

PAGE = 200
"""No screen asks for more."""

COUNT = """(() => {
  window.rows = new Map();
  const send = window.fetch;
  window.fetch = async (input, init) => {
    const response = await send(input, init);
    if (String(input).endsWith("/v1/wait")) return response;
    const {id, ...asked} = JSON.parse(init?.body ?? "{}");
    const told = await response.clone().json().catch(() => null);
    const lists = ["messages", "entries", "held", "queues", "settings", "lanes", "records", "tokens"];
    const count = (answer) => Array.isArray(answer)
      ? Math.max(answer.length, ...answer.map(count))
      : Math.max(0, ...lists.map((name) => answer?.[name]?.length ?? 0));
    window.rows.set(`${input} ${JSON.stringify(asked)}`, count(told));
    return response;
  };
  return true;
})()"""
"""Counts the rows of each request, once however often it is made."""


def count_rows(page: Page) -> None:
    """Begin to count."""
    page.run(COUNT)


def rows_asked_for(page: Page) -> tuple[int, int]:
    """Of the screen shown since the last call: the most rows of one request, and those of all that read messages or entries."""
    most = page.run("Math.max(0, ...window.rows.values())")
    read = "[...window.rows].filter(([asked]) => /browse|read/.test(asked.split(' ')[0]))"
    total = page.run(f"{read}.reduce((sum, [, count]) => sum + count, 0)")
    page.run("window.rows.clear()")
    return most, total
