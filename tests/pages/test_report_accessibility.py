"""axe-core finds nothing wrong with the report: in light and dark, wide and narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

import butfor
from page_runs import library, molecules, of_every_status, trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUNS = {
    "statuses": of_every_status,
    "trees": lambda: trees().results,
    "library": lambda: library().results,
    "molecules": lambda: molecules().results,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: butfor.report(results(), folder / f"{name}.html") for name, results in RUNS.items()}


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']} ({node['html'][:120]})" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "name", ["statuses", *(pytest.param(name, marks=pytest.mark.slow) for name in RUNS if name != "statuses")]
)
def test_axe_finds_nothing(
    visit: Callable[..., Page], pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
    page = visit(pages[name].as_uri(), **options)
    assert violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.locator(".rows tbody tr").nth(1).click()
    assert violations(page) == []
    page.get_by_role("searchbox").fill("nothing is called this")
    assert violations(page) == []


def test_axe_finds_what_is_wrong(visit: Callable[..., Page], pages: dict[str, Path]) -> None:
    page = visit(pages["trees"].as_uri())
    page.evaluate("document.querySelector('.search span').remove()")
    page.evaluate("document.querySelector('.search input').placeholder = ''")
    assert any(one.startswith("label: ") for one in violations(page))
