"""A recorded walk through the explorer: the pictures of docs/how-to/explorer.md.

    python docs/scripts/walk.py

Takes the example and trains the paper's GCN on BA-Shapes, opens the explorer in Chromium, clicks, and takes pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

import butfor
from butfor.pages.explore import explorer_of
from butfor.pages.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[1] / "images"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
# The first view compiles or loads kernels.
expect.set_options(timeout=60_000)


def opened(browser: Browser, server: Server, **options: object) -> Page:
    """The page, when it shows its first target."""
    page = browser.new_context(**{"viewport": {"width": 1180, "height": 760}, **options}).new_page()  # type: ignore[arg-type]
    page.goto(server.url)
    expect(page.locator(".said")).not_to_be_empty()
    return page


def shot(page: Page, name: str) -> None:
    """A picture for the documents."""
    expect(page.locator(".explorer:not([aria-busy])")).to_be_visible()
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / f"explorer-{name}.png")
    print(f"docs/images/explorer-{name}.png")


def cycle(browser: Browser) -> None:
    """A node of a six-cycle: one edge by hand, then the fewest, then the next set, then one protected."""
    model, data = butfor.example()
    with Server(explorer_of(model, data, 597, title="Tree-Cycles")) as server:
        page = opened(browser, server)
        shot(page, "1-target")
        page.locator("summary", has_text="Edges").click()
        page.get_by_label("595–596 is there").uncheck()
        shot(page, "2-by-hand")
        page.get_by_role("button", name="Restore all").click()
        page.get_by_role("button", name="Find the smallest").click()
        page.wait_for_selector(".answer .verdict")
        gone = page.locator("ul.edits li").first.inner_text().split()[1]
        shot(page, "3-smallest")
        page.get_by_label(f"{gone} is protected", exact=True).check()
        page.get_by_role("button", name="Find the smallest").click()
        page.wait_for_selector(".answer .verdict")
        shot(page, "4-protected")


def hub(browser: Browser) -> None:
    """A node with nearly two thousand edges around it, while the search goes on; dark."""
    data = butfor.datasets.ba_shapes(seed=7)
    model, _ = butfor.models.trained_gcn(data, seed=7)
    with Server(explorer_of(model, data, 2, title="BA-Shapes")) as server:
        page = opened(browser, server, color_scheme="dark")
        page.get_by_role("button", name="Find the smallest").click()
        page.wait_for_timeout(3000)
        shot(page, "5-hub")
        page.get_by_role("button", name="Stop").click()


def main() -> None:
    """All pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        cycle(browser)
        hub(browser)
        browser.close()


if __name__ == "__main__":
    main()
