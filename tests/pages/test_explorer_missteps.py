"""The explorer in a real browser, where somebody is quick, changes their mind, or meets an error."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch
from playwright.sync_api import expect
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.pages.explore import explorer_of
from butfor.pages.server import Server
from butfor.testing import links, random_problem
from explorer_pages import edits, find, idle, node_of, open_panel, said
from explorers import node_explorer, typed_explorer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def untick(page: Page, number: int) -> None:
    """Delete an edge of the list, which has been unfolded."""
    page.locator("input[aria-label$='is there']").nth(number).click()
    idle(page)


def message(page: Page) -> str:
    idle(page)
    return page.locator(".message").inner_text()


def focused(page: Page) -> str:
    """The panel of what has the focus."""
    idle(page)
    return str(
        page.evaluate("document.activeElement.closest('section, details')?.querySelector('h2')?.textContent ?? ''")
    )


def test_the_address_works_as_a_link_of_another_page(browser: Any) -> None:
    """As in a notebook's output, or in a terminal inside the browser."""
    with Server(node_explorer()) as server:

        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(f'<a href="{server.url}">explorer</a>'.encode())

            def log_message(self, *_: object) -> None:
                pass

        other = http.server.HTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=other.handle_request, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://localhost:{other.server_port}/")  # to a browser another site than 127.0.0.1
        page.get_by_role("link").click()
        expect(page.locator(".said")).not_to_be_empty()
        page.close()
        other.server_close()


def test_what_failed_changes_nothing(serve: Callable[..., Page], complaints: list[str]) -> None:
    page = serve(node_explorer())
    open_panel(page, "Edges")
    untick(page, 0)
    untick(page, 1)
    both = edits(page)
    assert len(both) == 2
    page.route("**/api", lambda route: route.fulfill(status=400, json={"error": "not now"}))
    page.get_by_role("button", name="Undo").click()
    assert message(page) == "not now"
    assert edits(page) == both
    page.unroute("**/api")
    page.get_by_role("button", name="Undo").click()
    assert edits(page) == both[:1]
    page.get_by_role("button", name="Redo").click()
    assert edits(page) == both
    assert all("400" in complaint for complaint in complaints)
    complaints.clear()


def test_an_answer_belongs_to_its_question(serve: Callable[..., Page]) -> None:
    page = serve(node_explorer())
    find(page)
    assert page.locator(".answer .verdict").count() == 1
    open_panel(page, "Edges")
    page.locator("input[aria-label$='is protected']").first.click()
    idle(page)
    assert page.locator(".answer .verdict").count() == 0  # under other rules another set may be the smallest
    find(page)
    page.get_by_label("wanted").select_option(index=2)
    idle(page)
    assert page.locator(".answer .verdict").count() == 0


def test_who_goes_elsewhere_gives_the_search_up(serve: Callable[..., Page]) -> None:
    explorer = node_explorer()
    page = serve(explorer)

    held: list[Route] = []

    def hold(route: Route) -> None:
        """The search is asked for, and its number is long in coming."""
        begins = (route.request.post_data_json or {}).get("verb") == "search"
        if begins:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api", hold)
    page.get_by_role("button", name="Find the smallest").click()
    page.locator(".chooser input").fill("1")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".said")).to_contain_text("Node 1 is predicted")
    held.pop().continue_()
    page.wait_for_timeout(1000)
    assert message(page) == ""
    assert edits(page) == []
    assert page.locator(".answer .verdict").count() == 0
    expect(page.get_by_role("button", name="Find the smallest")).to_be_enabled()


def test_directed_edges_are_added_in_either_direction(serve: Callable[..., Page]) -> None:
    torch.manual_seed(0)
    ends = torch.tensor([[1, 2, 3, 0], [0, 0, 1, 3]])
    explorer = explorer_of(GCN(4, 8, 2, 3).eval(), Data(x=torch.randn(4, 4), edge_index=ends), 0, directed=True)
    page = serve(explorer)
    node_of(page, "1").click()
    node_of(page, "0").click()
    page.get_by_role("button", name="Add the edge 0 → 1").click()
    page.wait_for_selector(".line.added")
    assert edits(page) == ["with 0→1"]
    after = explorer.answer("predict", {"target": 0, "rules": {"add": [[0, 1]]}, "edits": [["add", 0, 1]]})
    assert f"it is {after['name']} ({after['number']:.2f})" in said(page)


def test_an_edge_that_is_taken_back_is_none_that_the_search_may_add(serve: Callable[..., Page]) -> None:
    explorer = node_explorer()
    page = serve(explorer)
    asked: list[dict[str, Any]] = []
    page.on("request", lambda request: asked.append(request.post_data_json or {}))
    known = {tuple(edge) for edge in explorer.answer("target", {"target": 0})["lines"]["edge"]}
    pair = next((0, other) for other in range(1, 12) if (0, other) not in known)
    open_panel(page, "Add an edge")
    for _ in range(2):
        page.get_by_label("from", exact=True).fill(str(pair[1]))
        page.get_by_label("to", exact=True).fill(str(pair[0]))
        page.get_by_role("button", name="Add the edge", exact=True).click()
        assert edits(page) == [f"with {pair[0]}–{pair[1]}"]
    assert message(page) == f"{pair[1]} and {pair[0]} are joined already."
    page.get_by_role("button", name="Take back").click()
    assert edits(page) == []
    assert asked[-1]["rules"]["add"] is None


def test_ends_of_a_new_edge_are_of_the_types_of_its_relation(serve: Callable[..., Page]) -> None:
    page = serve(typed_explorer())
    open_panel(page, "Add an edge")
    page.get_by_label("relation").select_option(label="author writes paper")
    page.get_by_label("from", exact=True).fill("paper 2")
    page.get_by_label("to", exact=True).fill("2")
    page.get_by_role("button", name="Add the edge", exact=True).click()
    assert message(page) == "paper 2 is no author of this neighbourhood."
    assert edits(page) == []


def test_a_cost_that_was_given_can_become_1(serve: Callable[..., Page]) -> None:
    _model, data = random_problem(3, nodes=12, density=0.3)
    page = serve(node_explorer(space=butfor.EditSpace(costs=dict.fromkeys(links(data), 2.0))))
    open_panel(page, "Edges")
    cost = page.locator("input.cost").first
    assert cost.input_value() == "2"
    cost.fill("1")
    cost.press("Tab")
    idle(page)
    assert page.locator("input.cost").first.input_value() == "1"


def test_edges_that_go_together_have_one_cost(serve: Callable[..., Page]) -> None:
    _model, data = random_problem(3, nodes=12, density=0.3)
    group = links(data)[:2]
    page = serve(node_explorer(space=butfor.EditSpace(groups={"both": group}, costs={"both": 2.5})))
    open_panel(page, "Edges")
    for u, v in group:
        cost = page.get_by_label(f"Cost of deleting {u}–{v}", exact=True)
        assert cost.input_value() == "2.5"
        expect(cost).to_be_disabled()


def test_the_focus_stays_close(serve: Callable[..., Page]) -> None:
    page = serve(node_explorer())
    open_panel(page, "Edges")
    untick(page, 0)
    untick(page, 1)
    page.keyboard.press("Control+z")  # the checkbox has the focus, in which no text is typed
    assert len(edits(page)) == 1
    page.get_by_role("button", name="Take back").first.focus()
    page.keyboard.press("Enter")
    assert edits(page) == []
    assert focused(page) == "Edits"
    undo = page.get_by_role("button", name="Undo")
    undo.focus()
    while undo.is_enabled():
        page.keyboard.press("Enter")
        idle(page)
    assert focused(page) == "Edits"
    page.get_by_role("button", name="Find the smallest").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer .verdict")
    assert focused(page) == "Smallest counterfactual"


@pytest.mark.parametrize(
    "part",
    [
        {"goal": None},
        {"edits": ["{"]},
        {"edits": [3]},
        {"unfolded": None},
        {"rules": {"protected": [], "costs": [3], "add": None, "features": None}},
        {"rules": {"protected": [], "costs": [], "add": None, "features": {"values": 3}}},
        {"limit": "many"},
        None,
    ],
    ids=str,
)
def test_damaged_files_are_refused(
    serve: Callable[..., Page], tmp_path: Path, complaints: list[str], part: dict[str, Any] | None
) -> None:
    explorer = node_explorer()
    page = serve(explorer)
    rules = {"protected": [], "costs": [], "add": None, "features": None}
    goal = {"wanted": None, "probability": None}
    state = {"target": 1, "edits": [], "rules": rules, "goal": goal, "unfolded": [], "limit": 40}
    kept = {"butfor": "explorer", "version": 1, "ids": explorer.opened()["ids"], "state": part and {**state, **part}}
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(kept))
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".message")).to_have_text("This file is damaged.")
    assert "Node 0 is predicted" in said(page)
    file.write_text(json.dumps({**kept, "state": state}))
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".said")).to_contain_text("Node 1 is predicted")
    assert not complaints
