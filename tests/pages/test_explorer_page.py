"""The explorer in a real browser: what somebody clicks and types, and what the page then says."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.pages.assets import script, style_within
from butfor.pages.explore import explorer_of
from butfor.pages.server import Server
from butfor.pages.widget import answer_message
from butfor.testing import random_problem
from explorer_pages import edge_of, edits, find, idle, node_of, open_panel, said, there
from explorers import graphs_explorer, link_explorer, node_explorer, typed_explorer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from butfor.pages.explorer import Explorer

pytestmark = pytest.mark.browser
# The first view loads kernels, and machines are busy.
expect.set_options(timeout=60_000)


def test_a_clicked_edge_goes_and_the_prediction_follows(serve: Callable[..., Page]) -> None:
    explorer = node_explorer()
    page = serve(explorer)
    view = explorer.answer("target", {"target": 0})
    before = view["unedited"]
    assert f"Node 0 is predicted {before['name']} ({before['number']:.2f})." in said(page)
    told, record = view["told"][0], view["edits"][0]
    edge_of(page, told).click(force=True)
    after = explorer.answer("predict", {"target": 0, "edits": record})
    assert f"After 1 edit it is {after['name']} ({after['number']:.2f})." in said(page)
    assert edits(page) == [f"without {told}"]
    assert page.locator(".drawing .line.deleted").count() == 1
    assert page.locator(".drawing").get_attribute("aria-label") == f"node 0 and its neighbourhood; edits: {told}"
    page.locator("h1").click()
    page.keyboard.press("Control+z")
    assert edits(page) == []
    page.keyboard.press("Control+y")
    assert edits(page) == [f"without {told}"]
    page.get_by_role("button", name="Undo").click()
    assert "Node 0 is predicted" in said(page)
    page.get_by_role("button", name="Redo").click()
    page.get_by_role("button", name="Restore all").click()
    assert edits(page) == []


def test_everything_by_keyboard(serve: Callable[..., Page]) -> None:
    page = serve(node_explorer())
    summary = page.locator("summary", has_text="Edges")
    summary.focus()
    page.keyboard.press("Enter")
    box = there(page, 0)
    name = str(box.get_attribute("aria-label")).removesuffix(" is there")
    box.focus()
    page.keyboard.press("Space")
    assert edits(page) == [f"without {name}"]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"{name} is there"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    idle(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"{name} is protected"
    assert edits(page) == []  # what is protected now was taken back
    assert "What the rules do not allow here was taken back." in page.locator(".message").inner_text()
    page.keyboard.press("Space")
    idle(page)
    page.get_by_role("button", name="Find the smallest").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer .verdict")
    assert edits(page)


def test_the_smallest_under_the_rules_of_the_page(serve: Callable[..., Page]) -> None:
    explorer = node_explorer()
    page = serve(explorer)
    result = explorer.subject.explain(0, butfor.Exact(all_smallest=True))  # type: ignore[union-attr]
    answer = find(page)
    assert str(result) in answer
    assert result.verdict in answer
    assert len(edits(page)) == result.size
    first = edits(page)
    if result.alternatives:
        page.get_by_role("button", name="Next set").click()
        expect(page.locator(".answer")).to_contain_text(f"set 2 of {1 + len(result.alternatives)}")
        assert edits(page) != first
        page.get_by_role("button", name="Previous set").click()
        assert edits(page) == first
    open_panel(page, "Edges")
    gone = first[0].removeprefix("without ")
    page.get_by_label(f"{gone} is protected", exact=True).check()
    idle(page)
    find(page)
    assert f"without {gone}" not in edits(page)
    assert page.locator(".drawing .line.protected").count() == 1


def test_wanted_class_probability_and_costs(serve: Callable[..., Page]) -> None:
    explorer = node_explorer(seed=1, nodes=8)
    page = serve(explorer)
    before = explorer.answer("target", {"target": 0})["unedited"]["label"]
    wanted = next(label for label in range(3) if label != before)
    page.get_by_label("wanted").select_option(str(wanted))
    idle(page)
    expected = explorer.subject.asking(butfor.Goal(wanted=wanted)).explain(0, butfor.Exact(all_smallest=True))  # type: ignore[union-attr]
    assert str(expected) in find(page)
    page.get_by_label("wanted").select_option("")
    page.get_by_label("probability at least").fill("0.6")
    page.get_by_label("probability at least").press("Enter")
    idle(page)
    likely = explorer.subject.asking(butfor.Goal(probability=0.6)).explain(0, butfor.Exact(all_smallest=True))  # type: ignore[union-attr]
    assert str(likely) in find(page)
    page.get_by_label("probability at least").fill("")
    page.get_by_label("probability at least").press("Enter")
    open_panel(page, "Edges")
    cheap = find(page)
    assert cheap
    gone = edits(page)[0].removeprefix("without ")
    page.get_by_label(f"Cost of deleting {gone}", exact=True).fill("30")
    page.get_by_label(f"Cost of deleting {gone}", exact=True).press("Enter")
    idle(page)
    find(page)
    assert f"without {gone}" not in edits(page)


def test_edges_are_added_by_two_clicks_or_by_name(serve: Callable[..., Page]) -> None:
    explorer = node_explorer()
    page = serve(explorer)
    view = explorer.answer("target", {"target": 0})
    known = {tuple(edge) for edge in view["lines"]["edge"]}
    (a, b), (c, d) = [pair for pair in itertools.combinations(range(12), 2) if pair not in known][:2]
    node_of(page, str(a)).click()
    node_of(page, str(b)).click()
    page.get_by_role("button", name=f"Add the edge {a}–{b}").click()
    page.wait_for_selector(".line.added")
    assert edits(page) == [f"with {a}–{b}"]
    open_panel(page, "Add an edge")
    page.get_by_label("from", exact=True).fill(str(c))
    page.get_by_label("to", exact=True).fill(str(d))
    page.get_by_role("button", name="Add the edge", exact=True).click()
    expect(page.locator(".drawing .line.added")).to_have_count(2)
    assert edits(page) == [f"with {a}–{b}", f"with {c}–{d}"]
    rules = {"add": [[a, b], [c, d]]}
    after = explorer.answer("predict", {"target": 0, "rules": rules, "edits": [["add", a, b], ["add", c, d]]})
    assert f"it is {after['name']} ({after['number']:.2f})" in said(page)
    page.get_by_label("from", exact=True).fill("99")
    page.get_by_role("button", name="Add the edge", exact=True).click()
    assert page.locator(".message").inner_text() == "99 is not in this neighbourhood."
    page.get_by_label("the search may add edges").select_option("two")
    idle(page)
    assert "proved" in find(page)


def test_features_change_where_the_rules_allow_it(serve: Callable[..., Page]) -> None:
    page = serve(node_explorer())
    open_panel(page, "Change a feature")
    expect(page.locator("details[open]")).to_contain_text("The rules allow no feature to change.")
    values = page.get_by_label("features of the target may become")
    values.fill("seven")
    values.press("Enter")
    assert "seven are no numbers" in page.locator(".message").inner_text()
    values.fill("0, 3")
    values.press("Enter")
    idle(page)
    boxes = page.locator(".features input")
    assert boxes.count() == 8
    boxes.nth(0).check()
    idle(page)
    assert len(edits(page)) == 1
    page.get_by_label("filter", exact=True).last.fill("feature 0 of node 0 at 3")
    page.locator(".features input").nth(0).check()
    idle(page)
    assert [edit.split(" instead")[0] for edit in edits(page)] == ["feature 0 of node 0 at 3"]
    assert page.locator(".drawing .star").count() == 1


def test_from_node_to_node(serve: Callable[..., Page], complaints: list[str]) -> None:
    page = serve(node_explorer())
    neighbour = next(label for label in map(str, range(1, 12)) if node_of(page, label).count())
    node_of(page, neighbour).click()
    page.get_by_role("button", name=f"Explain {neighbour}", exact=True).click()
    expect(page.locator(".said")).to_contain_text(f"Node {neighbour} ")
    target = page.get_by_label("target:")
    target.fill("7")
    target.press("Enter")
    expect(page.locator(".said")).to_contain_text("Node 7 ")
    target.fill("99")
    target.press("Enter")
    expect(page.locator(".message")).not_to_be_empty()
    assert page.locator(".message").inner_text() == "node '99' is not in this graph (from 0 to 11)"
    complaints.clear()  # the browser notes that the question was refused
    assert said(page).startswith("Node 7 ")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".said")).to_contain_text(f"Node {neighbour} ")


@pytest.mark.parametrize("make", [link_explorer, graphs_explorer, typed_explorer])
def test_links_graphs_and_types(serve: Callable[..., Page], make: Callable[[], Explorer]) -> None:
    explorer = make()
    page = serve(explorer)
    answer = find(page)
    assert "proved" in answer
    assert "✓ That is the goal." in said(page)
    assert page.locator(".line.deleted").count() >= len(edits(page)) > 0
    if make is link_explorer:
        assert page.locator(".line.link").count() == 2  # in the picture and in the legend


def test_typed_edges_are_added_by_their_relation(serve: Callable[..., Page]) -> None:
    page = serve(typed_explorer())
    open_panel(page, "Add an edge")
    page.get_by_label("from", exact=True).fill("author 2")
    page.get_by_label("to", exact=True).fill("paper 2")
    page.get_by_label("relation").select_option("author writes paper")
    page.get_by_role("button", name="Add the edge", exact=True).click()
    expect(page.locator(".message")).to_have_text("author 2 is no author of this neighbourhood.")
    page.get_by_label("from", exact=True).fill("author 0")
    page.get_by_label("to", exact=True).fill("paper 0")
    page.get_by_role("button", name="Add the edge", exact=True).click()
    expect(page.locator(".drawing .line.added")).to_have_count(1)
    assert edits(page) == ["with author 0 → paper 0 (writes)"]


def test_saved_states_come_back(serve: Callable[..., Page], tmp_path: Path) -> None:
    page = serve(node_explorer(), accept_downloads=True)
    open_panel(page, "Edges")
    there(page, 0).uncheck()
    page.locator("input[aria-label$='is protected']").nth(1).check()
    idle(page)
    before = edits(page), said(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save", exact=True).click()
    kept = tmp_path / "state.json"
    download.value.save_as(kept)
    assert download.value.suggested_filename == "butfor-node-0.json"
    again = serve(node_explorer())
    again.locator("input[type=file]").set_input_files(kept)
    again.wait_for_selector(".line.deleted")
    assert (edits(again), said(again)) == before
    assert again.locator(".drawing .line.protected").count() == 1
    other = serve(node_explorer(seed=4))
    other.locator("input[type=file]").set_input_files(kept)
    expect(other.locator(".message")).not_to_be_empty()
    assert other.locator(".message").inner_text() == "This file was saved with another model or graph."
    for content in (
        "{",
        "[]",
        '{"butfor": "explorer"}',
        "null",
        json.dumps({**json.loads(kept.read_text()), "state": {}}),
    ):
        (tmp_path / "bad.json").write_text(content)
        again.locator(".message").evaluate("element => element.replaceChildren()")
        again.locator("input[type=file]").set_input_files(tmp_path / "bad.json")
        expect(again.locator(".message")).not_to_be_empty()
        assert (edits(again), said(again)) == before


def test_exports(serve: Callable[..., Page], tmp_path: Path) -> None:
    page = serve(node_explorer(), accept_downloads=True)
    find(page)
    # What is found is then made by hand.
    expect(page.locator("ul.edits li:not(.none)")).not_to_have_count(0)
    idle(page)
    made = {}
    for name in ("Result as JSON", "Picture as SVG", "Picture as PNG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        made[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(made[name])
    plain = json.loads(made["Result as JSON"].read_text())
    assert butfor.Counterfactual.from_dict(plain["found"]).found
    assert plain["by_hand"]["edits"]
    assert plain["by_hand"]["after"]["reached"]
    from xml.etree import ElementTree

    picture = ElementTree.fromstring(made["Picture as SVG"].read_text())
    assert picture.tag.endswith("svg")
    assert "That is the goal" in made["Picture as SVG"].read_text()
    assert made["Picture as PNG"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert made["Picture as PNG"].stat().st_size > 5_000


def crowd(edges: int = 2_000) -> Explorer:
    """A neighbourhood of two thousand edges: a hub in the middle of a random graph."""
    generator = torch.Generator().manual_seed(0)
    nodes = 700
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    hub = torch.stack([torch.zeros(300, dtype=torch.long), torch.arange(1, 301)])
    ends = torch.cat([pairs, hub], dim=1)
    torch.manual_seed(0)
    data = Data(x=torch.randn(nodes, 4, generator=generator), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    return explorer_of(GCN(4, 8, num_layers=2, out_channels=3).eval(), data, 0)


def test_large_neighbourhoods_are_folded_up(serve: Callable[..., Page]) -> None:
    page = serve(crowd())
    assert page.locator(".drawing .node").count() == 40
    caption = page.locator(".picture .partial").inner_text()
    assert "Showing 40 of" in caption
    page.get_by_role("button", name="Show more").click()
    idle(page)
    assert page.locator(".drawing .node").count() == 80
    page.get_by_role("button", name="Undo").click()
    idle(page)
    assert page.locator(".drawing .node").count() == 40
    page.locator(".drawing .node").nth(3).click()
    page.get_by_role("button", name="Unfold").click()
    idle(page)
    assert page.locator(".drawing .node").count() > 40
    open_panel(page, "Edges")
    expect(page.locator("table.list tbody tr")).to_have_count(200)
    page.get_by_label("filter").first.fill("0–17")
    assert 0 < page.locator("table.list tbody tr").count() < 200
    there(page, 0).uncheck()
    assert len(edits(page)) == 1


def test_a_search_shows_how_it_gets_on_and_can_be_stopped(serve: Callable[..., Page]) -> None:
    page = serve(crowd())
    page.get_by_role("button", name="Find the smallest").click()
    expect(page.locator(".progress")).to_contain_text("evaluations")
    # At once: the search may be over, and the button gone, before a pointer gets there.
    page.get_by_role("button", name="Stop").evaluate_all("buttons => buttons.forEach(button => button.click())")
    page.wait_for_selector(".answer .verdict", timeout=60_000)
    assert "proved: at least" in page.locator(".progress").inner_text()
    assert page.get_by_role("button", name="Find the smallest").is_enabled()


NASTY = [
    '<img src=x onerror="document.title=1">',
    "</script><script>document.title='2'</script>",
    "a\u2028b",
    "'\"&<",
    "𝒳" * 60,
]


def test_names_are_only_ever_text(serve: Callable[..., Page]) -> None:
    model, data = random_problem(3, nodes=5, density=0.7)
    data.node_ids = NASTY
    data.class_names = ["<b>one</b>", "</script>", "{{three}}"]
    page = serve(explorer_of(model, data, 0, title="</title><script>document.title='3'</script>"))
    open_panel(page, "Edges")
    there(page, 0).uncheck()
    find(page)
    assert page.title() == "</title><script>document.title='3'</script>"
    assert page.locator("img").count() == 0
    assert page.locator("#page script, #page b").count() == 0
    assert "<img src=x" in said(page)


def test_foreign_scripts_do_not_run(serve: Callable[..., Page], complaints: list[str]) -> None:
    page = serve(node_explorer())
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken=1\">')")
    page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 2'; document.body.append(s)"
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.broken") is None
    assert complaints
    assert all("Content Security Policy" in complaint for complaint in complaints)
    complaints.clear()


def test_a_server_that_is_gone(serve: Callable[..., Page], visit: Callable[..., Page], complaints: list[str]) -> None:
    server = Server(node_explorer())
    page = visit(server.url)
    expect(page.locator(".said")).not_to_be_empty()
    idle(page)
    server.close()
    page.locator("summary", has_text="Edges").click()
    there(page, 0).click()
    expect(page.locator(".message")).not_to_be_empty()
    assert page.locator(".message").inner_text() == "The explorer does not answer; was it ended?"
    complaints.clear()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(serve: Callable[..., Page], width: int, scheme: str) -> None:
    page = serve(node_explorer(), viewport={"width": width, "height": 844}, color_scheme=scheme)
    assert Axe().run(page).violations_count == 0
    for title in ("Edges", "Add an edge", "Change a feature"):
        open_panel(page, title)
    there(page, 0).uncheck()
    find(page)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    # Nothing is wider than the window.
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_widget_is_the_same_page(visit: Callable[..., Page], tmp_path: Path) -> None:
    """A notebook stands in: it hands messages on, and has a style of its own that must not change."""
    explorer = node_explorer()
    code = script("explorer", last="explorer/widget.js")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>notebook</title>
        <style>{style_within("explorer", ".butfor-widget")}</style>
        <body><button id="theirs">theirs</button><div id="cell"></div></body></html>""",
        encoding="utf-8",
    )
    page = visit(notebook.as_uri())
    plain = page.evaluate("getComputedStyle(document.getElementById('theirs')).borderRadius")
    page.expose_function("ask", lambda message: answer_message(explorer, message))
    page.evaluate(
        """async ([code, opened]) => {
          const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
          const widget = (await import(url)).default;
          const heard = [];
          const model = {
            get: () => opened,
            on: (_, hear) => heard.push(hear),
            off: () => {},
            send: async (message) => { const reply = await window.ask(message); heard.forEach((hear) => hear(reply)); },
          };
          widget.render({ model, el: document.getElementById("cell") });
        }""",
        [code, explorer.opened()],
    )
    expect(page.locator(".said")).not_to_be_empty()
    idle(page)
    open_panel(page, "Edges")
    there(page, 0).uncheck()
    assert len(edits(page)) == 1
    assert "✓" in said(page) or "✗" in said(page)
    assert plain == page.evaluate("getComputedStyle(document.getElementById('theirs')).borderRadius")
    assert page.evaluate("getComputedStyle(document.querySelector('.butfor-widget button')).borderRadius") == "6px"
