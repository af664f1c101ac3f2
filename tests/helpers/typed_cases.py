"""Small random questions about graphs of several node and edge types, and models of every form that reads such."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import GATConv, GraphConv, HeteroConv, HGTConv, SAGEConv, SimpleConv, to_hetero
from torch_geometric.transforms import ToUndirected

from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal
from hand_edits import Cut
from truth import Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLASSES = 3

Relation = tuple[str, str, str]
TypedEdge = tuple[Relation, int, int]

WRITES: Relation = ("author", "writes", "paper")
CITES: Relation = ("paper", "cites", "paper")
IN: Relation = ("paper", "in", "venue")
WIDTHS = {"author": 3, "paper": 4, "venue": 2}
REVERSE = {("paper", "rev_writes", "author"): WRITES, ("venue", "rev_in", "paper"): IN}
METADATA = (list(WIDTHS), [WRITES, CITES, IN, *REVERSE])


def library(seed: int, sizes: Sequence[int] = (3, 4, 2), edges: Sequence[int] = (4, 3, 2)) -> HeteroData:
    """Authors write papers, which cite each other and appear in venues; every edge with its reverse."""
    random = np.random.default_rng(seed)
    data = HeteroData()
    counts = dict(zip(WIDTHS, sizes, strict=True))
    for kind, width in WIDTHS.items():
        data[kind].x = torch.from_numpy(random.normal(size=(counts[kind], width)) * 2).float()
    for relation, count in zip((WRITES, CITES, IN), edges, strict=True):
        ends = [(u, v) for u in range(counts[relation[0]]) for v in range(counts[relation[2]])]
        if relation == CITES:
            ends = [(u, v) for u, v in ends if u < v]
        chosen = random.choice(len(ends), size=min(count, len(ends)), replace=False)
        data[relation].edge_index = torch.tensor([ends[i] for i in sorted(chosen)]).T.contiguous()
    return ToUndirected()(data)


# Models: two rounds of messages each.


class Convs(torch.nn.Module):
    """Layers of one kind for each relation, twice, and a linear layer."""

    def __init__(self, kind: str) -> None:
        super().__init__()

        def side_by_side(widths: dict[str, int]) -> HeteroConv:
            made = {
                "SAGE": lambda a, b: SAGEConv((a, b), 5),
                "GAT": lambda a, b: GATConv((a, b), 5, add_self_loops=False),
                "GraphConv": lambda a, b: GraphConv((a, b), 5),
            }[kind]
            return HeteroConv({r: made(widths[r[0]], widths[r[2]]) for r in METADATA[1]}, aggr="sum")

        self.first, self.second = side_by_side(WIDTHS), side_by_side(dict.fromkeys(WIDTHS, 5))
        self.head = torch.nn.Linear(5, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict).items()}
        return {kind: self.head(x) for kind, x in self.second(x_dict, edge_index_dict).items()}


class Attributes(torch.nn.Module):
    """Attention that reads what edges carry, once, for papers alone."""

    def __init__(self) -> None:
        super().__init__()
        convs = {r: GATConv((WIDTHS[r[0]], WIDTHS[r[2]]), 5, add_self_loops=False, edge_dim=2) for r in METADATA[1]}
        self.first, self.head = HeteroConv(convs), torch.nn.Linear(5, CLASSES)

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        return self.head(self.first(x_dict, edge_index_dict, edge_attr_dict)["paper"])


class Transformer(torch.nn.Module):
    """HGT."""

    def __init__(self) -> None:
        super().__init__()
        self.into = torch.nn.ModuleDict({kind: torch.nn.Linear(width, 6) for kind, width in WIDTHS.items()})
        self.first, self.second = HGTConv(6, 6, METADATA, heads=2), HGTConv(6, 6, METADATA)
        self.head = torch.nn.Linear(6, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: self.into[kind](x).relu() for kind, x in x_dict.items()}
        x_dict = self.second(self.first(x_dict, edge_index_dict), edge_index_dict)
        return {kind: self.head(x) for kind, x in x_dict.items()}


class Relational(torch.nn.Module):
    """As RGCN: a mean for each relation times a matrix of its own; by PyG's simplest layer, or by hand without any."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.into = torch.nn.ModuleDict({kind: torch.nn.Linear(width, 5) for kind, width in WIDTHS.items()})
        self.matrices = torch.nn.ModuleList(torch.nn.Linear(5, 5, bias=False) for _ in METADATA[1])
        self.layer = None if by_hand else SimpleConv("mean")
        self.head = torch.nn.Linear(5, CLASSES)

    def mean(self, x, size, edge_index):
        if self.layer is not None:
            return self.layer((x, x.new_zeros(size, 5)), edge_index)
        total = x.new_zeros(size, 5).index_add(0, edge_index[1], x[edge_index[0]])
        count = x.new_zeros(size).index_add(0, edge_index[1], x.new_ones(edge_index.size(1)))
        return total / count.clamp(min=1)[:, None]

    def forward(self, x_dict, edge_index_dict):
        x_dict = {kind: self.into[kind](x) for kind, x in x_dict.items()}
        for _ in range(2):
            new = dict(x_dict)
            for relation, matrix in zip(METADATA[1], self.matrices, strict=True):
                source, _, target = relation
                got = self.mean(matrix(x_dict[source]), len(x_dict[target]), edge_index_dict[relation])
                new[target] = new[target] + got
            x_dict = {kind: x.tanh() for kind, x in new.items()}
        return self.head(x_dict["paper"])


class Plain(torch.nn.Module):
    """For `to_hetero`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 5), SAGEConv((-1, -1), 5)
        self.head = torch.nn.Linear(5, CLASSES)

    def forward(self, x, edge_index):
        return self.head(self.second(self.first(x, edge_index).relu(), edge_index).relu())


KINDS = ("SAGE", "GAT", "GraphConv", "attributes", "HGT", "RGCN", "RGCN by hand", "to_hetero")


def build(kind: str, seed: int, data: HeteroData) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "attributes":
            return Attributes().eval()
        if kind == "HGT":
            return Transformer().eval()
        if kind.startswith("RGCN"):
            return Relational("hand" in kind).eval()
        if kind == "to_hetero":
            model = to_hetero(Plain(), METADATA, aggr="sum").eval()
            with torch.no_grad():
                model(data.x_dict, data.edge_index_dict)
            return model
        return Convs(kind).eval()


# Questions.


def forward_of(relation: Relation, u: int, v: int) -> TypedEdge:
    """An edge as a person counts it: of the forward relation, and a citation from the lower number."""
    if relation in REVERSE:
        return REVERSE[relation], v, u
    return (relation, min(u, v), max(u, v)) if relation == CITES else (relation, u, v)


def typed_edges(data: HeteroData) -> list[TypedEdge]:
    return sorted({forward_of(r, u, v) for r in data.edge_types for u, v in data[r].edge_index.T.tolist()})


def scores_without(
    model: torch.nn.Module, data: HeteroData, sets: Sequence[Iterable[TypedEdge]], node_type: str
) -> np.ndarray:
    """The scores of all nodes of a type without these edges, for each set: edited graphs laid side by side."""
    sets, count = [set(some) for some in sets], len(sets)
    x = {kind: data[kind].x.double().repeat(count, 1) for kind in data.node_types}
    ends, attr = {}, {}
    for relation in data.edge_types:
        pairs = data[relation].edge_index.T.tolist()
        shift = torch.tensor([[data[relation[0]].num_nodes], [data[relation[2]].num_nodes]])
        kept = [[i for i, (u, v) in enumerate(pairs) if forward_of(relation, u, v) not in gone] for gone in sets]
        parts = [data[relation].edge_index[:, some] + number * shift for number, some in enumerate(kept)]
        ends[relation] = torch.cat(parts, dim=1)
        if "edge_attr" in data[relation]:
            attr[relation] = torch.cat([data[relation].edge_attr[some] for some in kept]).double()
    model = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        out = model(x, ends, attr) if isinstance(model, Attributes) else model(x, ends)
    out = out[node_type] if isinstance(out, dict) else out
    return out.view(count, data[node_type].num_nodes, -1).numpy()


@dataclass(frozen=True, eq=False)
class TypedQuestion(Question):
    """A question about the nodes of one type."""

    node_type: str = "paper"

    @property
    def targets(self) -> Sequence[int]:
        return range(self.data[self.node_type].num_nodes)

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        sets = [[edge for act in np.flatnonzero(row) for edge in self.acts[act].edges] for row in chosen]
        return scores_without(self.model, self.data, sets, self.node_type)


@cache
def typed_case(kind: str, seed: int) -> TypedQuestion:
    """A small random question; its rules vary with the seed."""
    random = np.random.default_rng([sum(kind.encode()), seed])
    data = library(seed, edges=(4, 3, 3))
    if kind == "attributes":
        carried = {edge: random.normal(size=2) for edge in typed_edges(data)}
        for relation in data.edge_types:
            pairs = data[relation].edge_index.T.tolist()
            rows = [carried[forward_of(relation, u, v)] for u, v in pairs]
            data[relation].edge_attr = torch.from_numpy(np.array(rows)).float()
    edges = [typed_edges(data)[i] for i in random.permutation(len(typed_edges(data)))]
    backwards = {forward: relation for relation, forward in REVERSE.items()}

    def written(edge: TypedEdge) -> TypedEdge:
        """The same edge, sometimes by its reverse."""
        relation, u, v = edge
        return edge if random.random() < 0.5 else (backwards.get(relation, relation), v, u)

    price = (lambda: int(random.choice([4, 10, 15]))) if seed % 2 else (lambda: 10)
    groups, costs, rules = {}, {}, {}
    acts: list[Cut] = []
    if seed % 3 == 0:
        acts.append(Cut((edges.pop(), edges.pop()), price()))
        groups["pair"] = [written(edge) for edge in acts[0].edges]
        costs["pair"] = acts[0].tenths / 10
    if seed % 4 == 1:
        rules["protected"] = [written(edge) for edge in edges[:2]]
        edges = edges[2:]
    if seed % 4 == 2:
        rules["allowed"] = [written(edge) for edge in edges[:-2]] + [edge for act in acts for edge in act.edges]
        edges = edges[:-2]
    if seed % 4 == 3:
        rules["relations"] = [("paper", "rev_writes", "author"), CITES]
        edges = [edge for edge in edges if edge[0] != IN]
        acts = [act for act in acts if all(edge[0] != IN for edge in act.edges)]
    for edge in edges:
        acts.append(Cut((edge,), price()))
        if acts[-1].tenths != 10:
            costs[written(edge)] = acts[-1].tenths / 10
    space = EditSpace(costs=costs, groups=groups, max_edits=(None, 3)[seed % 5 == 4], **rules)
    node_type = "paper" if kind in ("attributes", "RGCN", "RGCN by hand") or seed % 2 else "author"
    model = build(kind, seed, data)
    goal = (Goal(), Goal(least=0.05), Goal(wanted=seed % CLASSES))[seed % 3]
    question = TypedQuestion(f"{kind}, seed {seed}", model, data, tuple(acts), None, goal, space, node_type=node_type)
    name = f"head.{node_type}.bias" if kind == "to_hetero" else "head.bias"
    # No class shall always win; only sets that are small enough count.
    small = question.scores[question.allowed(0)]
    with torch.no_grad():
        bias = dict(model.named_parameters())[name]
        bias -= torch.from_numpy(small.mean(axis=(0, 1))).to(bias)
    return replace(question)  # without the scores of before
