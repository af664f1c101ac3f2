"""butfor beside its peers on the same graphs, models and nodes: what is found, how small, what holds, what it costs.

    python -m benchmarks.peers                 # 8 test nodes of each graph, some minutes on one core
    python -m benchmarks.peers --write         # also put the tables into docs/results/peers.md

The graphs and weights of the paper are the published ones if they are in ../shared/data/reference, and are made from a
seed otherwise; Cora is left out if it is not in ../shared/data/planetoid. docs/results/peers.md says what the rows are.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.explain import AttentionExplainer
from torch_geometric.nn import GAT, GCN

import butfor
from benchmarks.cf_gnn import REFERENCE, load
from benchmarks.exact import CORA, fit
from butfor.models import PaperGCN
from butfor.paper.dense_cf_gnn import dense_cf_gnn
from butfor.paper.explainers import explainers_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor, nn
    from torch_geometric.data import Data
    from torch_geometric.explain import ExplainerAlgorithm

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "peers.md"
BEGIN, END = "<!-- written by benchmarks.peers -->", "<!-- until here -->"
HEADINGS = ("method", "found", "mean size", "proved smallest", "valid", "CPU ms a node")

# An explainer's ranking is cut after 1, 2, ... edges until the class changes; an attack gets as many flips.
MOST_EDGES, MOST_FLIPS = 10, 2
# So many of all pairs of nodes are looked at by PyG's attacks at a time.
BLOCK = 5_000

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Answer:
    """The edits that a method proposes for one node."""

    removed: Pairs
    added: Pairs = frozenset()
    proved: bool = False

    @property
    def size(self) -> int:
        """How many edges are changed."""
        return len(self.removed) + len(self.added)


@dataclass(frozen=True)
class Case:
    """A model and a graph, and the nodes that are explained."""

    title: str
    model: nn.Module
    data: Data
    nodes: list[int]

    @cached_property
    def classes(self) -> Tensor:
        """The class that the model predicts for each node."""
        with torch.no_grad():
            return self.model(self.data.x, self.data.edge_index).argmax(1)

    def is_valid(self, node: int, answer: Answer) -> bool:
        """Whether the unmodified model says another class on the whole graph once the edits are made."""
        gone = {pair for u, v in answer.removed for pair in ((u, v), (v, u))}
        new = [pair for u, v in answer.added for pair in ((u, v), (v, u))]
        left = [pair for pair in map(tuple, self.data.edge_index.T.tolist()) if pair not in gone]
        with torch.no_grad():
            logits = self.model(self.data.x, torch.tensor(left + new).T.contiguous())
        return int(logits[node].argmax()) != int(self.classes[node])


# How a method answers for the nodes of a case, in their order.
Run = Callable[[Case], "Iterable[Answer | None]"]


def cases(count: int) -> Iterator[Case]:
    """The paper's model on two of its graphs, and two usual models on Cora."""
    for name, title in (("tree_cycles", "Tree-Cycles"), ("ba_shapes", "BA-Shapes")):
        model, data = load(name, None)
        source = "published graph and weights" if REFERENCE.is_dir() else "graph and model made from seed 0"
        yield Case(f"{title}, the paper's GCN ({source})", model, data, spread(data, count))
    if CORA.exists():
        data = butfor.datasets.load_graph(CORA)
        for kind in (GCN, GAT):
            torch.manual_seed(0)
            model = fit(kind(data.num_features, 16, num_layers=2, out_channels=7, dropout=0.5), data, 100)
            yield Case(f"Cora, a two-layer {kind.__name__}", model, data, spread(data, count))


def spread(data: Data, count: int) -> list[int]:
    """Test nodes, evenly spaced."""
    nodes = data.test_mask.nonzero().flatten()
    return nodes[np.linspace(0, len(nodes) - 1, min(count, len(nodes))).astype(int)].tolist()


def by_butfor(method: butfor.methods.Method) -> Run:
    """One of butfor's methods, all nodes in one call."""
    return lambda case: [answer_of(result) for result in butfor.explain(case.model, case.data, case.nodes, method)]


def answer_of(result: butfor.Counterfactual) -> Answer | None:
    """The edits of one of butfor's results."""
    if not result.found:
        return None
    return Answer(frozenset(result.removed_edges), proved=result.status.value == "optimal")


def by_ranking(algorithm: ExplainerAlgorithm | None) -> Run:
    """An explainer of PyG ranks edges once, and so many of the highest are removed that the class changes."""

    def run(case: Case) -> list[Answer | None]:
        found: dict[int, Answer] = {}
        session, masks = butfor.prepare(case.model, case.data), {}
        for size in range(1, MOST_EDGES + 1):
            left = [node for node in case.nodes if node not in found]
            method = butfor.RemoveSubgraph(algorithm, size=size, memory=masks)
            for result in session.explain(left, method) if left else ():
                if (answer := answer_of(result)) is not None:
                    found[result.target] = answer
        return [found.get(node) for node in case.nodes]

    return run


def by_dense_cf_gnn(momentum: float) -> Run:
    """Algorithm 1 with the choices of the published code, in dense matrices, one node at a time."""
    settings = butfor.CFGNN.published(momentum=momentum)

    def run(case: Case) -> Iterator[Answer | None]:
        for node in case.nodes:
            removed = dense_cf_gnn(case.model, case.data, node, int(case.classes[node]), settings)
            yield None if removed is None else Answer(frozenset(removed))

    return run


def by_attack(case: Case) -> Iterator[Answer | None]:
    """PyG's own PRBCDAttack, which adds and deletes edges anywhere, with more and more flips."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG calls this part of it experimental
        from torch_geometric.contrib.nn import PRBCDAttack
    data, before = case.data, pairs_of(case.data.edge_index)
    for node in case.nodes:
        answer = None
        for flips in range(1, MOST_FLIPS + 1):
            torch.manual_seed(0)
            attack = PRBCDAttack(case.model, BLOCK, log=False)
            after, _ = attack.attack(data.x, data.edge_index, case.classes, flips, torch.tensor([node]))
            now = pairs_of(after)
            tried = Answer(before - now, now - before)
            if tried.size and case.is_valid(node, tried):
                answer = tried
                break
        yield answer


def pairs_of(edge_index: Tensor) -> Pairs:
    """The undirected edges of a graph, without self-loops."""
    return frozenset((u, v) for u, v in edge_index.T.tolist() if u < v)


def methods(case: Case) -> Iterator[tuple[str, Run]]:
    """What is compared on this graph, by its title."""
    momentum = 0.9 if "BA-Shapes" in case.title else 0.0
    yield "butfor: Exact", by_butfor(butfor.Exact(threads=1))
    yield "butfor: Descent", by_butfor(butfor.Descent())
    yield "butfor: Greedy", by_butfor(butfor.Greedy())
    yield "butfor: CFGNN, choices of the published code", by_butfor(butfor.CFGNN.published(momentum=momentum))
    yield "PyG: GNNExplainer, edges removed", by_ranking(None)
    if isinstance(case.model, GAT):  # which is here for its attention
        yield "PyG: Attention, edges removed", by_ranking(AttentionExplainer())
        return
    for title, algorithm in explainers_for(case.model, case.data).items():
        yield f"PyG: {title if title == 'PGExplainer' else f'Captum: {title}'}, edges removed", by_ranking(algorithm)
    yield "butfor: PRBCD, deletions", by_butfor(butfor.PRBCD())
    yield "PyG: PRBCDAttack, additions too", by_attack
    if isinstance(case.model, PaperGCN):
        yield "the paper's algorithm, dense", by_dense_cf_gnn(momentum)


def row(case: Case, title: str, run: Run) -> tuple[str, ...]:
    """Run one method on a case, time it and check what it says."""
    if "butfor" in title:
        run(Case(case.title, case.model, case.data, case.nodes[:1]))  # compiles or loads the kernels
    start = time.process_time()
    answers = list(run(case))
    seconds = (time.process_time() - start) / len(case.nodes)
    found = [(node, answer) for node, answer in zip(case.nodes, answers, strict=True) if answer is not None]
    valid = sum(case.is_valid(node, answer) for node, answer in found)
    proved = f"{sum(answer.proved for _, answer in found)}" if "butfor" in title else "–"
    return (
        title,
        share(found, case),
        mean([answer.size for _, answer in found]),
        proved,
        f"{valid}",
        f"{1e3 * seconds:.1f}",
    )


def quoted(case: Case) -> tuple[str, ...] | None:
    """What the paper's published code found for these nodes, by its published results; no code is run."""
    name = {"Tree-Cycles": "tree_cycles", "BA-Shapes": "ba_shapes"}.get(case.title.split(",")[0], "")
    path = REFERENCE / f"{name}_published_results.json"
    title = "the paper's published code, as quoted"
    if not name:
        return None
    if not path.is_file():
        return (title, "not at hand", "–", "–", "–", "–")
    sizes = json.loads(path.read_text())["size"]
    found = [sizes[str(node)] for node in case.nodes if sizes.get(str(node)) is not None]
    return (title, share(found, case), mean(found), "–", "–", "–")


def share(found: Sequence[object], case: Case) -> str:
    """How many of the nodes."""
    return f"{len(found)} of {len(case.nodes)}"


def mean(sizes: Sequence[int]) -> str:
    """The mean, if there is one."""
    return f"{np.mean(sizes):.2f}" if sizes else "–"


def table(case: Case) -> str:
    """The rows of one graph in Markdown, printed as they come."""
    lines = [f"**{case.title}**", "", *map(line, (HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))))]
    print(*lines, sep="\n", flush=True)
    for cells in chain(starmap(partial(row, case), methods(case)), filter(None, [quoted(case)])):
        lines.append(line(cells))
        print(lines[-1], flush=True)  # some take a while
    return "\n".join(lines)


def line(cells: Sequence[str]) -> str:
    """A row in Markdown."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the tables and, if asked to, write them into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8, help="how many nodes of each graph")
    parser.add_argument("--write", action="store_true", help="also write the tables into docs/results/peers.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    made = []
    for case in cases(options.nodes):
        made.append(table(case))
        print()
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        tables = "\n\n".join(made)
        PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
