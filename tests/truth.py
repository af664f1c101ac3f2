"""Small random problems in which edges may go and nothing else, and the truth about them by `brute_force`.

Shares no code with the library. Costs are whole tenths, so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from brute_force import Cut, Pair, Question, Truth, edge_of, edges_of, node_scores, subsets
from butfor.edits.space import EditSpace
from butfor.models import PaperGCN
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butfor.edits.deletion import Deletion

__all__ = [
    "Case",
    "Pair",
    "Truth",
    "larger_case",
    "pairs_of",
    "random_case",
    "random_model",
    "scores_after",
    "solve",
    "subsets",
]

Edges = tuple[Pair, ...]

TENTHS = (1, 2, 3, 5, 10, 10, 13, 20, 30)


@dataclass(frozen=True)
class Case:
    """A model, a graph and the rules: one problem for each of the nodes."""

    name: str
    model: torch.nn.Module
    data: Data
    classes: int
    directed: bool
    protected: Edges = ()
    tenths: dict[Pair, int] = field(default_factory=dict)
    wanted: int | None = None
    least: float = 0.0

    @property
    def links(self) -> list[Pair]:
        """The edges as a person counts them, self-loops left out."""
        return edges_of(self.data, self.directed)

    @property
    def free(self) -> list[Pair]:
        """The edges that may go."""
        return [pair for pair in self.links if pair not in self.protected]

    @property
    def features(self) -> set[str]:
        """What is special about this case."""
        columns = self.data.edge_index.T.tolist()
        marks = {
            "protected": bool(self.protected),
            "costs": bool(self.tenths),
            "wanted": self.wanted is not None,
            "least": self.least > 0,
            "weighted": self.data.edge_weight is not None,
            "loops": any(u == v for u, v in columns),
            "duplicates": len({(u, v) for u, v in columns}) < len(columns),
            "directed": self.directed,
            "undirected": not self.directed,
            f"{self.classes} classes": True,
        }
        return {name for name, present in marks.items() if present}

    @property
    def asked(self) -> dict:
        """The rules as `explain` takes them."""
        costs = {pair: tenths / 10 for pair, tenths in self.tenths.items()}
        return {
            "directed": self.directed,
            "space": EditSpace(protected=self.protected, costs=costs),
            "goal": Goal(self.wanted, self.least),
        }


def pairs_of(edits: Iterable[Deletion]) -> Edges:
    """The deleted edges as pairs."""
    return tuple((edit.source, edit.target) for edit in edits)


def solve(case: Case) -> list[Truth]:
    """The truth for every node that can be asked about, its sets as pairs of nodes."""
    acts = tuple(Cut((pair,), case.tenths.get(pair, 10)) for pair in case.free)
    question = Question(case.name, case.model, case.data, acts, **case.asked)
    return [
        replace(truth, lead={pairs_of(edits): lead for edits, lead in truth.lead.items()}) for truth in question.truths
    ]


def scores_after(case: Case, free: list[Pair], removed: np.ndarray) -> np.ndarray:
    """The scores of every node without each row of removed edges: (rows, nodes, classes)."""
    return node_scores(case.model, case.data, case.directed, [Cut((pair,)) for pair in free], removed)


def random_case(kind: str, seed: int) -> Case:
    """A small random problem for this kind of model; its rules vary with the seed."""
    random = np.random.default_rng([sum(kind.encode()), seed])
    directed = bool(random.random() < 0.4)
    nodes = int(random.integers(4, 11))
    ends = _random_edges(random, nodes, directed)
    x = random.normal(size=(nodes, 3)) * random.choice([1.0, 3.0]) + random.choice([0.0, 3.0])
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(ends))
    if kind in ("GCN", "PaperGCN") and random.random() < 0.3:
        data.edge_weight = torch.from_numpy(_weights(random, ends, directed)).float()
    classes = int(random.integers(2, 6))
    model = random_model(kind, int(random.integers(2**31)), classes, data)
    case = Case(f"{kind}, seed {seed}", model, data, classes, directed)
    order = [case.links[i] for i in random.permutation(len(case.links))]
    # Brute force takes every subset of what is not protected, so not more than ten edges may go.
    free = 10 if random.random() < 0.7 else int(random.integers(0, 8))
    priced = order if random.random() < 0.4 else []
    return replace(
        case,
        protected=tuple(order[free:]),
        tenths={pair: int(random.choice(TENTHS)) for pair in priced if random.random() < 0.8},
        wanted=int(random.integers(classes)) if random.random() < 0.3 else None,
        least=float(random.choice([0.05, 0.3, 1.0])) if random.random() < 0.25 else 0.0,
    )


def larger_case(seed: int) -> Case:
    """A GCN on a sparse graph of 20 to 40 nodes, too many edges for brute force; every other one has costs."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(20, 41))
    pairs = random_tree(random, nodes, extra=nodes // 3)
    ends = np.array([*pairs, *(pair[::-1] for pair in pairs)], dtype=np.int64).T.copy()
    x = torch.from_numpy(random.normal(size=(nodes, 3)) * 2).float()
    data = Data(x=x, edge_index=torch.from_numpy(ends))
    model = random_model("GCN", 6 * seed + 1 + seed % 2, 3, data)  # two or three layers
    tenths = {pair: int(random.choice([8, 10, 13])) for pair in pairs} if seed % 2 else {}
    return Case(f"larger GCN, seed {seed}", model, data, 3, False, tenths=tenths)


def random_model(kind: str, seed: int, classes: int, data: Data) -> torch.nn.Module:
    """A random model whose classes are evenly matched on this graph, half of the way to its last edge."""
    layers = 1 + seed % 3
    build = {
        "GCN": lambda: GCN(data.num_features, 8, layers, classes, jk=(None, "cat", "last")[seed // 3 % 3]),
        "PaperGCN": lambda: PaperGCN(data.num_features, classes, hidden=6),
        "GIN": lambda: GIN(data.num_features, 8, min(layers, 2), classes),
        "GraphSAGE": lambda: GraphSAGE(data.num_features, 8, min(layers, 2), classes),
        "GAT": lambda: GAT(data.num_features, 8, min(layers, 2), classes),
    }[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build().eval()
    bias = [value for name, value in model.named_parameters() if name.endswith("bias") and len(value) == classes][-1]
    with torch.no_grad():
        both = [model(data.x, data.edge_index), model(data.x, data.edge_index[:, :0])]
        bias -= torch.cat(both).mean(dim=0)
    return model


def random_tree(random: np.random.Generator, nodes: int, extra: int) -> list[Pair]:
    """A tree that grows from its latest nodes, so that it is deep, and some edges more."""
    pairs = {(int(random.integers(max(0, v - 4), v)), v) for v in range(1, nodes)}
    more = [sorted(random.choice(nodes, 2, replace=False).tolist()) for _ in range(extra)]
    return sorted(pairs | {(u, v) for u, v in more})


def _random_edges(random: np.random.Generator, nodes: int, directed: bool) -> np.ndarray:
    pairs = random_tree(random, nodes, extra=int(random.integers(0, 7)))
    if random.random() < 0.2:
        pairs = [pair for pair in pairs if random.random() < 0.8]
    if directed:
        pairs = [pair if random.random() < 0.5 else pair[::-1] for pair in pairs]
        pairs += [pair[::-1] for pair in pairs if random.random() < 0.25]
    if pairs and random.random() < 0.2:
        pairs += [pairs[i] for i in random.choice(len(pairs), 2)]
    both = pairs if directed else [*pairs, *(pair[::-1] for pair in pairs)]
    if random.random() < 0.2:
        both += [(node, node) for node in random.choice(nodes, 2).tolist()]
    columns = np.array(both, dtype=np.int64).reshape(-1, 2)
    return random.permutation(columns).T.copy()


def _weights(random: np.random.Generator, ends: np.ndarray, directed: bool) -> np.ndarray:
    """From few values, so that some edges are alike; the same both ways where there is one edge both ways."""
    values = {edge_of(pair, directed): random.choice([0.5, 1.0, 2.0]) for pair in ends.T.tolist()}
    return np.array([values[edge_of(pair, directed)] for pair in ends.T.tolist()], dtype=np.float64)
