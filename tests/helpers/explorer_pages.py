"""What somebody does on the explorer's page, and what it then says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

__all__ = ["edge_of", "edits", "find", "idle", "node_of", "open_panel", "said", "there"]


def idle(page: Page) -> None:
    """Wait until all is answered."""
    expect(page.locator(".explorer:not([aria-busy])")).to_be_visible()


def said(page: Page) -> str:
    idle(page)
    return page.locator(".said").inner_text()


def edits(page: Page) -> list[str]:
    idle(page)
    return [item.inner_text().removesuffix("✕").strip() for item in page.locator("ul.edits li:not(.none)").all()]


def open_panel(page: Page, title: str) -> None:
    page.locator("summary", has_text=title).click()


def there(page: Page, number: int) -> Locator:
    return page.locator("input[aria-label$='is there']").nth(number)


def edge_of(page: Page, name: str) -> Locator:
    """The line of an edge in the picture."""
    return page.locator(".drawing .edge", has=page.locator(f"title:text-is('{name}')")).locator(".hit")


def node_of(page: Page, label: str) -> Locator:
    return page.locator(".drawing .node", has=page.locator("title", has_text=f"{label}:")).first


def find(page: Page) -> str:
    """Find the smallest; what is then said."""
    page.get_by_role("button", name="Find the smallest").click()
    page.wait_for_selector(".answer .verdict")
    return page.locator(".answer").inner_text()
