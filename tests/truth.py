"""Small random problems and their truth: every subset of the edges, in one run of the model.

Shares no code with the library. The edited graphs are laid side by side here, in plain numpy, and a copy of
the model in double precision is run on all of them at once. Costs are whole tenths, so that sums are exact.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from butfor.edits.space import EditSpace
from butfor.models import PaperGCN
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butfor.edits.deletion import Deletion

# Leads closer than this to what is asked, or to each other, may be told apart wrongly in single precision.
CLOSE = 1e-4
# Leads closer than this are equal but for rounding.
SAME = 2e-6

Pair = tuple[int, int]
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
        pairs = [(u, v) if self.directed else (min(u, v), max(u, v)) for u, v in self.data.edge_index.T.tolist()]
        return sorted({pair for pair in pairs if pair[0] != pair[1]})

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


@dataclass(frozen=True)
class Truth:
    """What brute force knows about one node."""

    node: int
    before: int
    tenths: int | None  # the least cost; None where nothing reaches the goal
    lead: dict[Edges, float]  # all sets of that cost, and by how much each leads
    close: bool  # whether some subset is too close to call

    @property
    def cost(self) -> float:
        return float("inf") if self.tenths is None else self.tenths / 10

    @property
    def decisive(self) -> set[Edges]:
        """The sets that may be called the most decisive: one, but where leads are too close to tell apart."""
        most = max(self.lead.values())
        near = {edges for edges, lead in self.lead.items() if lead >= most - CLOSE}
        same = {edges for edges in near if self.lead[edges] >= most - SAME}
        return {min(same)} if near == same else near

    @property
    def necessity(self) -> dict[Pair, float]:
        counts = Counter(pair for edges in self.lead for pair in edges)
        return {pair: count / len(self.lead) for pair, count in counts.items()}


def pairs_of(edits: Iterable[Deletion]) -> tuple[Pair, ...]:
    """The deleted edges as pairs."""
    return tuple((edit.source, edit.target) for edit in edits)


def solve(case: Case) -> list[Truth]:
    """The truth for every node that can be asked about: those not of the wanted class already."""
    free = case.free
    removed = subsets(len(free))
    scores = scores_after(case, free, removed)
    tenths = removed @ np.array([case.tenths.get(pair, 10) for pair in free], dtype=np.int64)
    truths = []
    for node in range(case.data.num_nodes):
        rows = scores[:, node]
        before = int(rows[0].argmax())
        if before == case.wanted:
            continue
        own = rows[:, before if case.wanted is None else case.wanted]
        others = np.delete(rows, before if case.wanted is None else case.wanted, axis=1).max(axis=1)
        lead = others - own if case.wanted is None else own - others
        close = bool((np.abs(lead - case.least) < CLOSE).any() or abs(lead[0]) < CLOSE)
        reached = lead > case.least
        if not reached.any():
            truths.append(Truth(node, before, None, {}, close))
            continue
        least = int(tenths[reached].min())
        smallest = np.flatnonzero(reached & (tenths == least))
        sets = {tuple(free[i] for i in np.flatnonzero(removed[row])): float(lead[row]) for row in smallest}
        truths.append(Truth(node, before, least, sets, close))
    return truths


def subsets(count: int) -> np.ndarray:
    """All subsets of so many things, one a row; row number r holds thing i where bit i of r is set."""
    return (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1


def scores_after(case: Case, free: list[Pair], removed: np.ndarray) -> np.ndarray:
    """The scores of every node in every edited graph: (edited graphs, nodes, classes)."""
    number = {pair: i for i, pair in enumerate(free)}
    ends = case.data.edge_index.numpy()
    pairs = [(u, v) if case.directed else (min(u, v), max(u, v)) for u, v in ends.T.tolist()]
    link = np.array([number.get(pair, len(free)) for pair in pairs], dtype=np.int64)
    gone = np.concatenate([removed, np.zeros((len(removed), 1), dtype=bool)], axis=1)[:, link]
    graph, column = np.nonzero(~gone)
    nodes = case.data.num_nodes
    edge_index = torch.from_numpy(ends[:, column] + graph * nodes)
    fields = {}
    if case.data.edge_weight is not None:
        fields["edge_weight"] = case.data.edge_weight[torch.from_numpy(column)].double()
    model = copy.deepcopy(case.model).double().eval()
    with torch.no_grad():
        out = model(case.data.x.double().repeat(len(removed), 1), edge_index, **fields)
    return out.numpy().reshape(len(removed), nodes, -1)


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
    number = (lambda u, v: (u, v)) if directed else (lambda u, v: (min(u, v), max(u, v)))
    values = {number(u, v): random.choice([0.5, 1.0, 2.0]) for u, v in ends.T.tolist()}
    return np.array([values[number(u, v)] for u, v in ends.T.tolist()], dtype=np.float64)
