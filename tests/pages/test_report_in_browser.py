"""The report in a real browser: searching, filtering, stepping, saving, and what it must not do."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

import butfor
from page_runs import NASTY, content, edited, library, links, molecules, of_every_status, reread, trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Download, Locator, Page

    Visit = Callable[..., Page]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = {"viewport": {"width": 390, "height": 844}}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a report by its name; each is written once."""
    folder = tmp_path_factory.mktemp("pages")
    results = {
        "trees": lambda: trees().results,
        "library": lambda: library().results,
        "links": lambda: links().results,
        "molecules": lambda: molecules().results,
        "edited": lambda: edited().results,
        "statuses": of_every_status,
        "alone": lambda: reread(trees().results),
        "many": lambda: [replace(result, target=at) for at, result in enumerate(reread(trees().results) * 20)],
    }

    def page(name: str) -> Path:
        path = folder / f"{name}.html"
        return path if path.exists() else butfor.report(results[name](), path, title=f"The {name}")

    return page


def rows(page: Page) -> Locator:
    return page.locator(".rows tbody tr:not([aria-hidden])")


def targets(page: Page) -> list[str]:
    return page.locator(".rows tbody th").all_inner_texts()


def told(page: Page) -> str:
    return page.locator("p.told").inner_text()


def deleted(page: Page) -> int:
    return page.locator(".drawing .line.deleted").count()


def test_the_first_view(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    expect(page).to_have_title("The trees")
    expect(page.locator("h1")).to_have_text("The trees")
    assert told(page) == "All 30 results"
    assert rows(page).count() == 30
    first = trees().results[0]
    expect(page.locator(".sentence")).to_have_text(str(first))
    expect(page.locator(".verdict")).to_have_text(first.verdict)
    assert page.locator(".drawing .node").count() == first.nodes
    assert deleted(page) == first.size
    expect(page.locator(".drawing")).to_have_attribute("aria-label", f"Picture of node 600: {_edits(first)}")
    assert page.url.endswith("#0")


def _edits(result: butfor.Counterfactual) -> str:
    return ", ".join(f"without {source}–{target}" for source, target in result.removed_edges)


def test_search(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    box = page.get_by_role("searchbox")
    box.press_sequentially("Node 607")
    assert targets(page) == ["node 607"]
    assert told(page) == "1 of 30 results"
    box.fill("nothing is called this")
    assert told(page) == "0 of 30 results"
    expect(rows(page)).to_have_text("No result matches.")
    source, target = trees().results[3].removed_edges[0]
    box.fill(f"{source}–{target}")
    assert "node 603" in targets(page)
    page.get_by_role("button", name="Clear filters").click()
    assert told(page) == "All 30 results"
    expect(box).to_have_value("")


def test_filters(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("statuses").as_uri())
    for status in butfor.Status:
        page.get_by_role("checkbox", name=status.value).check()
        assert rows(page).count() == 1
        assert status.value in rows(page).inner_text()
        page.get_by_role("checkbox", name=status.value).uncheck()
    page.get_by_role("checkbox", name="unknown").check()
    page.get_by_role("checkbox", name="failed").check()
    assert targets(page) == ["node 603", "node 605"]
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Before").select_option("unknown")
    assert targets(page) == ["node 605"]
    page.get_by_role("button", name="Clear filters").click()
    found = of_every_status()[0]
    assert found.after is not None
    page.get_by_label("After").select_option(found.after.name)
    assert targets(page) == ["node 600", "node 601"]
    page.get_by_label("Least size").fill(str((found.size or 0) + 1))
    assert told(page) == "0 of 6 results"
    page.get_by_label("Least size").fill("")
    page.get_by_label("Greatest size").fill(str(found.size))
    assert told(page) == "2 of 6 results"


@pytest.mark.parametrize("column", ["target", "status", "before", "after", "size", "bound"])
def test_sorting(visit: Visit, pages: Callable[[str], Path], column: str) -> None:
    page = visit(pages("statuses").as_uri())
    results = of_every_status()
    head = page.locator("thead button", has_text=column)
    head.click()
    expect(page.locator("thead th", has_text=column)).to_have_attribute("aria-sort", "ascending")
    up = targets(page)
    head.click()
    expect(page.locator("thead th", has_text=column)).to_have_attribute("aria-sort", "descending")
    down = targets(page)
    keys = {
        "target": lambda result: result.target,
        "status": lambda result: list(butfor.Status).index(result.status),
        "before": lambda result: result.before.name,
        "after": lambda result: None if result.after is None else result.after.name,
        "size": lambda result: result.size,
        "bound": lambda result: float("inf") if result.lower_bound is None else result.lower_bound,
    }
    key = keys[column]
    with_value = [result for result in results if key(result) is not None]
    without = [result for result in results if key(result) is None]
    for shown, reverse in ((up, False), (down, True)):
        wanted = [*sorted(with_value, key=key, reverse=reverse), *without]
        assert shown == [result.target_name for result in wanted]


def test_arrow_keys_go_from_row_to_row(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    page.locator(".rows tbody button[tabindex='0']").focus()
    for key, target in [
        ("ArrowDown", 601),
        ("ArrowDown", 602),
        ("ArrowUp", 601),
        ("PageDown", 611),
        ("End", 629),
        ("ArrowDown", 629),
        ("Home", 600),
    ]:
        page.keyboard.press(key)
        expect(page.locator(".detail h2")).to_have_text(f"node {target}")
        expect(page.locator(".rows tr[aria-current]")).to_contain_text(f"node {target}")
        expect(page.locator(".rows tr[aria-current] button")).to_be_focused()
        expect(page.locator(".rows tr[aria-current]")).to_be_in_viewport()
    assert page.locator(".rows tbody button[tabindex='0']").count() == 1


def test_everything_is_reached_by_keyboard(visit: Visit, pages: Callable[[str], Path]) -> None:
    """The tabulator key reaches every control, and the bars of charts work like buttons."""
    page = visit(pages("trees").as_uri())
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
        )
    for name in ["Across the run", "Zoom in", "Show all", "Save as SVG", "How it was found", "size", "Clear filters"]:
        assert name in reached, name
    bar = page.get_by_role("button", name="1 edit: ")
    bar.focus()
    page.keyboard.press("Enter")
    assert told(page) == f"{sum(result.size == 1 for result in trees().results)} of 30 results"


def test_a_click_shows_the_picture(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    for at in (5, 12):
        result = trees().results[at]
        page.get_by_role("button", name=result.target_name, exact=True).click()
        expect(page.locator(".sentence")).to_have_text(str(result))
        assert deleted(page) == result.size
        assert page.url.endswith(f"#{at}")


def test_the_address_names_a_result(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(f"{pages('trees').as_uri()}#7")
    expect(page.locator(".detail h2")).to_have_text("node 607")
    page.evaluate("location.hash = '#9'")
    expect(page.locator(".detail h2")).to_have_text("node 609")
    for senseless in ("#999", "#-1", "#nonsense"):
        page = visit(pages("trees").as_uri() + senseless)
        expect(page.locator(".detail h2")).to_have_text("node 600")


def test_stepping_through_alternatives(visit: Visit, pages: Callable[[str], Path]) -> None:
    at = next(i for i, result in enumerate(trees().results) if len(result.alternatives) >= 2)
    result = trees().results[at]
    page = visit(f"{pages('trees').as_uri()}#{at}")
    number = 1 + len(result.alternatives)
    status = page.locator(".stepper span")
    seen = []
    for step in range(number):
        expect(status).to_have_text(f"set {step + 1} of {number}")
        seen.append(page.locator(".edits li").all_inner_texts())
        assert deleted(page) == result.size
        page.get_by_role("button", name="Next set").click()
    expect(page.get_by_role("button", name="Next set")).to_be_focused()
    expect(status).to_have_text(f"set 1 of {number}")
    sets = [result.edits, *result.alternatives]
    assert seen == [[f"without {edit.told(result.name, '–')}" for edit in edits] for edits in sets]
    page.get_by_role("button", name="Previous set").click()
    expect(status).to_have_text(f"set {number} of {number}")


def test_necessity(visit: Visit, pages: Callable[[str], Path]) -> None:
    at = next(i for i, result in enumerate(trees().results) if result.alternatives)
    page = visit(f"{pages('trees').as_uri()}#{at}")
    shares = trees().results[at].necessity
    assert shares is not None
    shown = sorted(page.locator(".shares .number").all_inner_texts())
    assert shown == sorted(f"{round(100 * share)} %" for _, share in shares)


def test_the_overview_filters(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("statuses").as_uri())
    page.get_by_role("button", name="no answer: ").click()
    assert targets(page) == ["node 602", "node 603", "node 604", "node 605"]
    expect(page.get_by_role("checkbox", name="unknown")).to_be_checked()
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("button", name="gap ≥50 %").click()
    assert targets(page) == ["node 601"]
    assert told(page) == "1 of 6 results with a gap of ≥50 %"
    page.get_by_role("button", name="Clear filters").click()
    page.locator(".matrix button").click()
    assert targets(page) == ["node 600", "node 601"]


def test_what_recurs_leads_to_its_targets(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    for title, told_as in (("Edits that recur", "with"), ("Nodes that recur", "at node")):
        button = page.locator(".card", has_text=title).locator("button").first
        name, number = button.locator(".name").inner_text(), int(button.locator(".number").inner_text())
        assert number > 1
        button.click()
        assert told(page) == f"{number} of 30 results {told_as} {name}"
        assert rows(page).count() == number
        behind = [result for result in trees().results if any(name in _named(edit) for edit in result.edits)]
        assert set(targets(page)) <= {result.target_name for result in behind}
        page.get_by_role("button", name="Clear filters").click()


def _named(edit: butfor.Deletion) -> set[str]:
    return {f"{edit.source}–{edit.target}", str(edit.source), str(edit.target)}


def saved(page: Page, name: str) -> Download:
    with page.expect_download() as started:
        page.get_by_role("button", name=name).click()
    return started.value


def test_the_picture_as_svg(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    download = saved(page, "Save as SVG")
    assert download.suggested_filename == "node-600.svg"
    root = ElementTree.parse(download.path()).getroot()
    assert root.tag == f"{SVG}svg"
    result = trees().results[0]
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert [title for title in titles if title and title.endswith(", deleted")] == [
        f"{source}–{target}, deleted" for source, target in result.removed_edges
    ]
    dashed = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray", "none") not in ("none", "")]
    assert len(dashed) == result.size
    words = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert str(result) in words
    assert result.verdict in words
    assert "class=" not in download.path().read_text()


def test_the_picture_as_png(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    download = saved(page, "Save as PNG")
    assert download.suggested_filename == "node-600.png"
    content = download.path().read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert width > 600
    assert height > 400
    start, packed = 8, b""
    while start < len(content):
        (length,) = struct.unpack(">I", content[start : start + 4])
        if content[start + 4 : start + 8] == b"IDAT":
            packed += content[start + 8 : start + 8 + length]
        start += length + 12
    assert len(set(zlib.decompress(packed))) > 50, "the picture has one colour"


def test_the_picture_can_be_moved_and_zoomed(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri())
    drawing = page.locator(".drawing")
    drawing.scroll_into_view_if_needed()

    def box() -> list[float]:
        return [float(value) for value in (drawing.get_attribute("viewBox") or "").split()]

    whole = box()
    page.get_by_role("button", name="Zoom in").click()
    assert box()[2] == pytest.approx(0.8 * whole[2], abs=0.2)
    page.get_by_role("button", name="Zoom out").click()
    assert box() == pytest.approx(whole, abs=0.2)
    place = drawing.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 40, place["y"] + 40)
    page.mouse.down()
    page.mouse.move(place["x"] + 90, place["y"] + 60)
    page.mouse.up()
    assert box()[0] < whole[0]
    page.get_by_role("button", name="Show all").click()
    assert box() == pytest.approx(whole, abs=0.2)


def test_a_molecule_looks_like_one(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("molecules").as_uri())
    written = page.locator(".drawing text").all_text_contents()
    # The ends of the removed bond have their numbers; carbon with its three hydrogens is a corner.
    assert written == ["N1", "O2", "O"]
    assert deleted(page) == 2, "a double bond has two lines"
    assert page.locator(".drawing .edge").count() == 3
    expect(page.locator(".card", has_text="Bonds that recur").locator("button")).to_have_count(1)
    expect(page.locator(".recurring .name")).to_have_text("N=O")
    assert page.locator(".card", has_text="Nodes that recur").count() == 0
    page.get_by_role("button", name="Next set").click()
    assert page.locator(".drawing text").all_text_contents() == ["N1", "O", "O3"]
    assert deleted(page) == 1


def test_links_and_additions_and_changes(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("links").as_uri())
    assert page.locator(".drawing .line.link").count() == 1
    assert page.locator(".drawing .ring").count() == 2
    expect(page.locator(".legend")).to_contain_text("predicted link")
    page = visit(f"{pages('edited').as_uri()}#2")
    assert page.locator(".drawing .line.added").count() == 1
    assert page.locator(".drawing .star").count() == 1
    expect(page.locator(".legend")).to_contain_text("added edge")
    expect(page.locator(".legend")).to_contain_text("changed feature")


def test_types_in_the_legend(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("library").as_uri())
    legend = page.locator(".legend li").all_inner_texts()
    assert [legend.count(name) for name in ("paper", "author")] == [1, 1]
    assert "class 0" in legend or "class 1" in legend


def test_results_without_their_graph(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("alone").as_uri())
    expect(page.locator(".top .note")).to_have_text("The graph was not given, so pictures show the edits alone.")
    assert deleted(page) == trees().results[0].size
    assert page.locator(".drawing .edge").count() == trees().results[0].size


def test_names_stay_text(visit: Visit, tmp_path: Path) -> None:
    first = trees().results[0]
    results = [
        replace(first, names=((first.target, name),), before=replace(first.before, name=name), note=name)
        for name in NASTY
    ]
    path = butfor.report(results, tmp_path / "names.html", title=NASTY[0])
    page = visit(path.as_uri())
    for number in range(len(NASTY)):
        page.evaluate(f"location.hash = '#{number}'")
        expect(page.locator(".detail h2")).to_have_text(content(path)["results"][number]["target"])
    expect(page.locator("h1")).to_have_text(NASTY[0])
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, #page script").count() == 0
    _fits(page)


def test_no_other_script_runs(
    visit: Visit, pages: Callable[[str], Path], tmp_path: Path, complaints: list[str]
) -> None:
    """The policy holds: what somebody writes into the file is not run, and nothing is loaded."""
    text = pages("trees").read_text("utf-8")
    spoiled = tmp_path / "spoiled.html"
    injected = (
        "<script>window.hacked = 1</script><b onclick='1' style='color: red'></b><img src='https://example.org/x.png'>"
    )
    spoiled.write_text(text.replace("<noscript>", f"{injected}<noscript>", 1), "utf-8")
    page = visit(spoiled.as_uri())
    expect(page.locator("h1")).to_have_text("The trees")
    assert page.evaluate("window.hacked") is None
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hacked = 2'}))"
    )
    page.evaluate("fetch('https://example.org/').catch(() => 0)")
    assert page.evaluate("window.hacked") is None
    blocked = [text for text in complaints if "Content Security Policy" in text]
    assert len(blocked) >= 4
    assert {*complaints} - {*blocked} <= {"the page asked for https://example.org/x.png"}
    complaints.clear()


def test_it_opens_without_a_network(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("trees").as_uri(), offline=True)
    assert told(page) == "All 30 results"


@pytest.mark.parametrize("name", ["trees", "library", "links", "molecules", "statuses"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(visit: Visit, pages: Callable[[str], Path], name: str, scheme: str) -> None:
    page = visit(pages(name).as_uri(), color_scheme=scheme, **PHONE)
    _fits(page)
    page.locator(".overview summary").click()
    _fits(page)
    rows(page).nth(1).click()
    expect(page.locator(".detail header")).to_be_in_viewport()
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator(".filters")).to_be_in_viewport()


@pytest.mark.parametrize("name", ["trees", "library"])
def test_on_a_screen(visit: Visit, pages: Callable[[str], Path], name: str) -> None:
    _fits(visit(pages(name).as_uri()))


def _fits(page: Page) -> None:
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, "the page has to be scrolled sideways"


def test_dark_and_light_differ(visit: Visit, pages: Callable[[str], Path]) -> None:
    colours = [
        visit(pages("trees").as_uri(), color_scheme=scheme).evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(22, 24, 28)"]


def test_on_paper(visit: Visit, pages: Callable[[str], Path]) -> None:
    """All rows that fit on some pages, in dark letters, without controls."""
    page = visit(pages("many").as_uri(), color_scheme="dark")
    assert rows(page).count() < 60
    page.emulate_media(media="print")
    expect(rows(page)).to_have_count(401)
    expect(rows(page).last).to_have_text("and 200 more")
    for hidden in (".filters", ".line-above button", ".exports", ".zoom"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator(".drawing")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    expect(rows(page)).not_to_have_count(401)
    assert rows(page).count() < 60


def test_rows_are_drawn_as_they_come_into_view(visit: Visit, pages: Callable[[str], Path]) -> None:
    page = visit(pages("many").as_uri())
    assert "node 599" not in targets(page)
    page.locator(".rows").evaluate("(element) => { element.scrollTop = element.scrollHeight; }")
    expect(page.get_by_role("button", name="node 599", exact=True)).to_be_visible()
    assert rows(page).count() < 60
    page.get_by_role("searchbox").fill("node 59")
    expect(page.get_by_role("button", name="node 59", exact=True)).to_be_in_viewport()
