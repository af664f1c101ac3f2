"""A real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from butfor.pages.server import Server
from explorer_pages import idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page, Request

    from butfor.pages.explorer import Explorer

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests of a file: as long as it is open, an event loop runs, which other files must not meet."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM} (apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What the browser complained of. A test that expects a complaint looks at it and clears the list."""
    found: list[str] = []
    yield found
    assert not found


@pytest.fixture
def visit(browser: Browser, complaints: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens an address, with the options of a context such as ``viewport``; the page may ask nobody else."""
    contexts: list[BrowserContext] = []

    def open_page(address: str, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        home = urlsplit(address)

        def requested(request: Request) -> None:
            asked = urlsplit(request.url)
            same = asked.path == home.path if home.scheme == "file" else asked.netloc == home.netloc
            if asked.scheme not in ("data", "blob") and not (asked.scheme == home.scheme and same):
                complaints.append(f"the page asked for {request.url}")

        page = context.new_page()
        page.on("request", requested)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def serve(visit: Callable[..., Page]) -> Iterator[Callable[..., Page]]:
    """Opens the page of an explorer, and waits for its first view."""
    servers: list[Server] = []

    def opened(explorer: Explorer, **options: Any) -> Page:
        servers.append(Server(explorer))
        page = visit(servers[-1].url, **options)
        expect(page.locator(".said")).not_to_be_empty()
        idle(page)
        return page

    yield opened
    for server in servers:
        server.close()
