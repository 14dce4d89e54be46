"""The report in a browser: three widths, two colour schemes, the keyboard, and print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from puredelta.inspection.report_page import report_page
from tests.inspection.chromium import Chromium, find_chromium
from tests.inspection.small_tables import append, make_table
from tests.inspection.test_report import hostile

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
]
WIDTHS = (360, 820, 1400)

CONTRAST = """(() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg') || !e.getClientRects().length) continue;
    const [a, b] = [rgb(getComputedStyle(e).color), behind(e)].map(light).sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(e.tagName + ' ' + e.className + ' ' + ratio.toFixed(2));
  }
  return bad;
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("table")
    log = make_table(root, *[[n, n + 50] for n in range(30)])
    for number in range(60):
        append(log, root, f"g{number}.parquet", range(number + 1))
    file = root / "report.html"
    file.write_text(report_page(log), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off_and_everything_can_be_read(
    browser: Chromium, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(CONTRAST) == []
    requests = [e for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert len(requests) <= 1, "nothing but the page is loaded"
    problems = [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    assert not [p for p in problems if p["params"]["entry"]["level"] == "error"]
    assert browser.run("document.querySelectorAll('svg rect.inserted').length") > 50


def test_the_keyboard_reaches_everything(browser: Chromium, page: Path) -> None:
    browser.open(page, width=1400)
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Enter", 13, "\r")
    assert browser.run("location.hash") == "#warnings"
    seen = set()
    for _ in range(20):
        browser.press("Tab", 9)
        seen.add(browser.run("document.activeElement.tagName"))
    assert {"SUMMARY"} <= seen
    browser.run("document.querySelector('#history summary').focus()")
    browser.press("Enter", 13, "\r")
    assert browser.run("document.querySelector('#history details').open")


def test_landmarks_and_names(browser: Chromium, page: Path) -> None:
    browser.open(page, width=1400)
    assert browser.run("document.querySelectorAll('main, header, footer, nav').length") == 4
    unnamed = (
        "[...document.querySelectorAll('svg, [role=region]')].filter(e => !e.ariaLabel).length"
    )
    assert browser.run(unnamed) == 0
    assert browser.run("[...document.querySelectorAll('table')].every(t => t.caption)")
    assert browser.run("document.documentElement.lang") == "en"


def test_a_hostile_table_runs_nothing(browser: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(report_page(hostile(tmp_path / "t")), encoding="utf-8")
    browser.open(file, width=360)
    assert browser.run("document.scripts.length + document.images.length") == 0
    assert browser.run("document.documentElement.scrollWidth") <= 360
    assert "<script>" in browser.run("document.querySelector('h1').textContent")


def test_it_prints(browser: Chromium, page: Path) -> None:
    browser.open(page, width=1400)
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000
