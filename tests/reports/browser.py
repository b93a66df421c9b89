"""A real browser for tests of pages: Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

HOW = "pip install playwright, and install Chromium (apt-get install chromium, or playwright install chromium)"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser. Tests are skipped where it is absent, and say how to get it."""
    api = pytest.importorskip("playwright.sync_api", reason=f"no Playwright: {HOW}")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        except api.Error as error:
            pytest.skip(f"no Chromium ({error.message.splitlines()[0]}): {HOW}")
        yield browser
        browser.close()


#: every text with a colour and a ground of its own: the lowest contrast, and where it is
CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const luminance = rgb => { const [r, g, b] = rgb.slice(0, 3).map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126*r + 0.7152*g + 0.0722*b; };
  const ground = element => { for (let e = element; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = [99, ""];
  for (const element of document.querySelectorAll("body *:not(svg *)")) {
    if (![...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!element.checkVisibility() || element.tagName === "SCRIPT") continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 100)];
  }
  return worst; }"""


def check_page(browser: Any, url: str, width: int, scheme: str) -> Any:
    """No console error, no request, no overflow to the side, contrast, and the keyboard reaches every control."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(5000)
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(url)
    assert not errors
    assert [one for one in requests if not one.startswith("data:")] == [url]
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where
    controls = page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex]')].filter(e => e.checkVisibility()).length"
    )
    assert controls
    page.evaluate("window.reached = new Set()")
    for _ in range(controls):
        page.keyboard.press("Tab")
        page.evaluate("window.reached.add(document.activeElement)")
    missed = page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex]')]"
        ".filter(e => e.checkVisibility() && !window.reached.has(e)).map(e => e.outerHTML.slice(0, 80))"
    )
    assert missed == []
    wide = page.evaluate(
        "[...document.querySelectorAll('.scroll, pre')]"
        ".filter(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0).length"
    )
    assert wide == 0  # what scrolls can be reached by the keyboard
    tables = "[...document.querySelectorAll('table')].filter(e => e.scrollWidth > e.parentElement.clientWidth).length"
    assert width > 640 or page.evaluate(tables) == 0  # on a telephone rows are folded
    return page
