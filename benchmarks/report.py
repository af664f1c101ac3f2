"""A report of many results: how long it takes to write it, how large it is, and how quick it is in a browser.

    python -m benchmarks.report                     # 10,000 results: some minutes, most of them for explaining
    python -m benchmarks.report --results 1000
    python -m benchmarks.report --out page.html     # write it there; if it is there, only measure it in the browser

A preferential-attachment graph with as many nodes as results, so that there are hubs and most pictures are full; a
two-layer GCN that learnt to tell high degrees from low ones; `Greedy`, so that there are answers that are not proved.
Every node is explained. The page is then opened in Chromium, some times: the first view is complete when all of it has
been painted. A keystroke in the search box and a click on a target count until what they changed has been painted.
Beside the time that passed stands the CPU time of the page's main thread, which does not depend on how busy the machine
is.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import networkx
import torch
from playwright.sync_api import Page, sync_playwright
from torch_geometric.data import Data
from torch_geometric.nn import GCN
from torch_geometric.utils import degree, to_undirected

import butfor

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
OPENED, CLICKS = 5, 24
WORDS = ["n", "no", "node 7", "class 1", "node 77", "–12", "zzz", ""]

# Two frames after now, everything that was changed before is on the screen.
PAINTED = (
    "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
)
TYPED = f"""async (word) => {{
  const box = document.querySelector("input[type=search]"), start = performance.now();
  box.value = word;
  box.dispatchEvent(new Event("input"));
  return (await ({PAINTED})()) - start;
}}"""
CLICKED = f"""async (row) => {{
  const start = performance.now();
  document.querySelectorAll(".rows tbody th button")[row].click();
  return (await ({PAINTED})()) - start;
}}"""


def run(nodes: int) -> list[butfor.Counterfactual]:
    """Explain every node."""
    torch.manual_seed(0)
    edges = torch.tensor(list(networkx.barabasi_albert_graph(nodes, 2, seed=0).edges)).T
    edge_index = to_undirected(edges)
    label = torch.bucketize(degree(edge_index[0]), torch.tensor([2.5, 4.5]))
    data = Data(x=torch.randn(nodes, 8), edge_index=edge_index, y=label)
    model = GCN(8, 16, 2, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()
    return butfor.explain(model.eval(), data, range(nodes), butfor.Greedy(), progress=True)


def write(path: Path, number: int) -> None:
    """Write the report of a run."""
    results = run(number)
    started = time.process_time()
    butfor.report(results, path, title=f"{number} results")
    seconds = time.process_time() - started
    sizes = [result.size for result in results if result.size is not None]
    print(f"{number} results, {len(sizes)} with an answer, of {statistics.mean(sizes):.1f} edits on average")
    print(f"the report was written in {seconds:.1f} s of CPU time")


@dataclass
class Watch:
    """Milliseconds of what a page does: elapsed, and of its main thread's CPU time."""

    page: Page
    times: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.session = self.page.context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu(self) -> float:
        """What the main thread has spent."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def open(self, path: Path) -> None:
        """Open a page until it has been painted."""
        self.page.goto(path.as_uri())
        self.note("first view", self.page.evaluate(PAINTED), 0)

    def act(self, name: str, script: str, argument: str | int) -> None:
        """Do something in the page."""
        before = self.cpu()
        self.note(name, self.page.evaluate(script, argument), before)

    def note(self, name: str, elapsed: float, before: float) -> None:
        """Keep a time."""
        self.times.setdefault(name, []).append((elapsed, self.cpu() - before))


def browse(path: Path) -> None:
    """Open a page some times, use it, and print what that took."""
    times: dict[str, list[tuple[float, float]]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for _ in range(OPENED):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            watch = Watch(page, times)
            watch.open(path)
        for word in WORDS:
            watch.act("keystroke in the search", TYPED, word)
        for row in range(1, CLICKS + 1):
            watch.act("click on a target", CLICKED, row)
        browser.close()
    print(f"{'milliseconds, median (most)':<28} {'CPU':>16} {'elapsed':>16}")
    for name, some in times.items():
        columns = [f"{statistics.median(each):.0f} ({max(each):.0f})" for each in zip(*some, strict=True)]
        print(f"{name:<28} {columns[1]:>16} {columns[0]:>16}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="keep the page here, or measure the one that is there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.out or Path(folder) / "report.html"
        if not path.exists():
            write(path, arguments.results)
        print(f"{path.stat().st_size / 1e6:.1f} MB")
        browse(path)


if __name__ == "__main__":
    main()
