"""Small random questions about graphs of several types, with every kind of edit, rule, task and model."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import GATConv, HANConv, HeteroConv, HGTConv, RGCNConv, SAGEConv, global_mean_pool, to_hetero

from butfor.edits.addition import Addition
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from hand_edits import Act, Cut, Join, Put
from truth import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.edits.edit import Edit

Relation = tuple[str, str, str]
TypedEdge = tuple[Relation, int, int]

# One relation with a reverse, one that is its own reverse, one that has none.
WRITES: Relation = ("author", "writes", "paper")
WRITTEN_BY: Relation = ("paper", "rev_writes", "author")
CITES: Relation = ("paper", "cites", "paper")
REVIEWS: Relation = ("author", "reviews", "paper")
RELATIONS = [WRITES, CITES, WRITTEN_BY, REVIEWS]
COUNTS, WIDTHS = {"author": 3, "paper": 4}, {"author": 2, "paper": 3}
METADATA = (list(WIDTHS), RELATIONS)
HIDDEN, CLASSES = 5, 3

# What edges carry has a width of its own in each relation, and reviews carry nothing.
CARRIED = {WRITES: 2, WRITTEN_BY: 2, CITES: 1}


def ways(edge: TypedEdge) -> list[TypedEdge]:
    """The columns that an edge is made of."""
    relation, u, v = edge
    if relation == WRITES:
        return [edge, (WRITTEN_BY, v, u)]
    return [edge, (CITES, v, u)] if relation == CITES else [edge]


# Encoders: z_dict from x_dict and edge_index_dict.


class Layers(torch.nn.Module):
    """HeteroConv, twice."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.first = HeteroConv({r: made(WIDTHS[r[0]], WIDTHS[r[2]], r) for r in RELATIONS})
        self.second = HeteroConv({r: made(HIDDEN, HIDDEN, r) for r in RELATIONS})

    def forward(self, x_dict, edge_index_dict, *more):
        x_dict = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict, *more).items()}
        return self.second(x_dict, edge_index_dict, *more)


class Transformer(torch.nn.Module):
    """HGT, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = HGTConv(WIDTHS, 6, METADATA), HGTConv(6, HIDDEN, METADATA)

    def forward(self, x_dict, edge_index_dict):
        return self.second(self.first(x_dict, edge_index_dict), edge_index_dict)


class ByHand(torch.nn.Module):
    """As RGCN: sums for each relation times a matrix of its own, without any layer of PyG."""

    def __init__(self) -> None:
        super().__init__()
        self.own = torch.nn.ModuleDict({kind: torch.nn.Linear(width, HIDDEN) for kind, width in WIDTHS.items()})
        self.matrices = torch.nn.ModuleList(torch.nn.Linear(WIDTHS[r[0]], HIDDEN, bias=False) for r in RELATIONS)

    def forward(self, x_dict, edge_index_dict):
        z = {kind: layer(x_dict[kind]) for kind, layer in self.own.items()}
        for (source, name, target), matrix in zip(RELATIONS, self.matrices, strict=True):
            sender, receiver = edge_index_dict[source, name, target]
            z[target] = z[target].index_add(0, receiver, matrix(x_dict[source])[sender])
        return {kind: value.tanh() for kind, value in z.items()}


class Joined(torch.nn.Module):
    """PyG's RGCN on all types as one graph whose edges know their relation, as ``to_homogeneous`` makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.into = torch.nn.ModuleDict({kind: torch.nn.Linear(width, HIDDEN) for kind, width in WIDTHS.items()})
        self.layer = RGCNConv(HIDDEN, HIDDEN, len(RELATIONS))

    def forward(self, x_dict, edge_index_dict):
        x = torch.cat([layer(x_dict[kind]) for kind, layer in self.into.items()])
        first = {"author": 0, "paper": len(x_dict["author"])}
        ends = [edge_index_dict[r] + torch.tensor([[first[r[0]]], [first[r[2]]]]) for r in RELATIONS]
        kinds = torch.repeat_interleave(torch.arange(len(RELATIONS)), torch.tensor([one.size(1) for one in ends]))
        z = self.layer(x, torch.cat(ends, dim=1), kinds).tanh()
        return {"author": z[: first["paper"]], "paper": z[first["paper"] :]}


class Plain(torch.nn.Module):
    """For `to_hetero`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), HIDDEN), SAGEConv((-1, -1), HIDDEN)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def _converted() -> torch.nn.Module:
    model = to_hetero(Plain(), METADATA)
    with torch.no_grad():  # so that its layers know their widths
        model(
            {kind: torch.ones(2, width) for kind, width in WIDTHS.items()},
            {r: torch.zeros(2, 1, dtype=torch.long) for r in RELATIONS},
        )
    return model


ENCODERS: dict[str, Any] = {
    "HeteroConv": lambda: Layers(lambda a, b, _: SAGEConv((a, b), HIDDEN)),
    "attributes": lambda: Layers(
        lambda a, b, r: GATConv((a, b), HIDDEN, add_self_loops=False, edge_dim=CARRIED.get(r))
    ),
    "to_hetero": _converted,
    "HGT": Transformer,
    # Its attention over relations reads the mean of all nodes, so that it sees the whole graph.
    "HAN": lambda: HANConv(WIDTHS, HIDDEN, METADATA),
    "by hand": ByHand,
    "RGCN": Joined,
}


# Models of every task.


class Nodes(torch.nn.Module):
    """The papers' classes, or one number each."""

    def __init__(self, encoder: torch.nn.Module, out: int) -> None:
        super().__init__()
        self.encoder, self.head = encoder, torch.nn.Linear(HIDDEN, out)

    def forward(self, x_dict, edge_index_dict):
        return self.head(self.encoder(x_dict, edge_index_dict)["paper"])


class NodesWithAttributes(Nodes):
    """The same of edges that carry something, as a dictionary of all types."""

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        return {kind: self.head(z) for kind, z in self.encoder(x_dict, edge_index_dict, edge_attr_dict).items()}


class Links(torch.nn.Module):
    """Whether an author and a paper are linked, by encode and decode."""

    def __init__(self, encoder: torch.nn.Module, out: int) -> None:
        super().__init__()
        self.encoder, self.head = encoder, torch.nn.Linear(2 * HIDDEN, out)

    def encode(self, x_dict, edge_index_dict):
        return self.encoder(x_dict, edge_index_dict)

    def decode(self, z_dict, edge_label_index):
        authors, papers = edge_label_index
        return self.head(torch.cat([z_dict["author"][authors], z_dict["paper"][papers]], dim=1))


class ForwardLinks(Links):
    """The same in one call."""

    def forward(self, x_dict, edge_index_dict, edge_label_index):
        return self.decode(self.encode(x_dict, edge_index_dict), edge_label_index)


class Graphs(torch.nn.Module):
    """The class of the whole graph: the mean of each type, added up."""

    def __init__(self, encoder: torch.nn.Module, out: int) -> None:
        super().__init__()
        self.encoder, self.head = encoder, torch.nn.Linear(HIDDEN, out)

    def read(self, x_dict, edge_index_dict, batch_dict):
        z_dict = self.encoder(x_dict, edge_index_dict)
        return self.head(sum(global_mean_pool(z, batch_dict[kind]) for kind, z in z_dict.items()))

    def forward(self, x_dict, edge_index_dict, batch_dict):
        return self.read(x_dict, edge_index_dict, batch_dict)


class AloneGraphs(Graphs):
    """The same for one graph at a time."""

    def forward(self, x_dict, edge_index_dict):
        return self.read(x_dict, edge_index_dict, dict.fromkeys(x_dict))


TASKS: dict[str, Any] = {
    "node class": lambda encoder: Nodes(encoder, CLASSES),
    "node value": lambda encoder: Nodes(encoder, 1),
    "link": lambda encoder: ForwardLinks(encoder, 1),
    "link class": lambda encoder: Links(encoder, 2),
    "graph class": lambda encoder: Graphs(encoder, CLASSES),
    "graph value, alone": lambda encoder: AloneGraphs(encoder, 1),
}


# Questions.


@dataclass(frozen=True, eq=False)
class TypedTask(Question):
    """A question about papers, one link of an author and a paper, or the graph."""

    what: str = "node class"

    @property
    def task(self) -> str:
        return self.what.split()[0]

    @property
    def targets(self) -> Sequence[Any]:
        return {"node": range(COUNTS["paper"]), "link": (Pair(1, 2),), "graph": (None,)}[self.task]

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        double = copy.deepcopy(self.model).double().eval()
        # A model that reads the mean of all nodes is asked about one edited graph at a time.
        step = 1 if "HAN" in self.name else len(chosen)
        with torch.no_grad():
            parts = [self._asked(double, chosen[first : first + step]) for first in range(0, len(chosen), step)]
        return torch.cat(parts).view(len(chosen), len(self.targets), -1).numpy()

    def _asked(self, model: torch.nn.Module, chosen: np.ndarray) -> torch.Tensor:
        x, ends, attr = edited(self.data, self.acts, chosen, self.space.carries)
        count = torch.arange(len(chosen))
        if self.task == "link":
            (pair,) = self.targets
            pairs = [count * COUNTS[kind] + end for kind, end in zip(COUNTS, pair, strict=True)]
            return model.decode(model.encode(x, ends), torch.stack(pairs))
        if self.task == "graph":
            return model.read(x, ends, {kind: count.repeat_interleave(size) for kind, size in COUNTS.items()})
        return model(x, ends, attr)["paper"] if attr else model(x, ends)

    def records(self, row: int) -> tuple[Edit, ...]:
        acts = [act for act, taken in zip(self.acts, self.chosen[row], strict=True) if taken]
        cut = sorted(edge for act in acts if isinstance(act, Cut) for edge in act.edges)
        joined = sorted(act.ends for act in acts if isinstance(act, Join))
        put = sorted((act.node, act.feature, act.value) for act in acts if isinstance(act, Put))
        return (
            *(Deletion(u, v, relation) for relation, u, v in cut),
            *(Addition(u, v, relation) for relation, u, v in joined),
            *(
                Change(node, feature, float(self.data[kind].x[node, feature]), value, kind)
                for (kind, node), feature, value in put
            ),
        )

    def _connected(self, target: Any) -> np.ndarray:
        """Which subsets leave connected what was connected before; of small graphs all is in the neighbourhood."""
        order = [(kind, node) for kind, size in COUNTS.items() for node in range(size)]
        at = {node: i for i, node in enumerate(order)}
        owner = {edge: i for i, act in enumerate(self.acts) if isinstance(act, Cut) for edge in act.edges}
        together = np.tile(np.eye(len(order), dtype=bool), (len(self.chosen), 1, 1))

        def join(edge: TypedEdge, there: Any) -> None:
            (source, _, kind), u, v = edge
            i, j = at[source, u], at[kind, v]
            together[:, i, j] |= there
            together[:, j, i] |= there

        for edge in edges_of(self.data):
            join(edge, ~self.chosen[:, owner[edge]] if edge in owner else True)
        for i, act in enumerate(self.acts):
            if isinstance(act, Join):
                join(act.ends, self.chosen[:, i])
        for _ in range(3):  # paths of up to eight edges
            together = together @ together
        fine: np.ndarray = (together | ~together[0]).all(axis=(1, 2))
        return fine


def edges_of(data: HeteroData) -> list[TypedEdge]:
    """The edges as a person counts them."""
    cites = {(CITES, min(u, v), max(u, v)) for u, v in data[CITES].edge_index.T.tolist()}
    return [(r, u, v) for r in (WRITES, REVIEWS) for u, v in data[r].edge_index.T.tolist()] + sorted(cites)


def edited(data: HeteroData, acts: Sequence[Act], chosen: np.ndarray, carries: Any) -> tuple[dict, dict, dict]:
    """Features, edges and what they carry after every row of chosen acts, in double precision, side by side."""
    count = len(chosen)
    x = {kind: data[kind].x.double().repeat(count, 1).view(count, size, -1) for kind, size in COUNTS.items()}
    ends: dict[Relation, list] = {r: [] for r in RELATIONS}
    attr: dict[Relation, list] = {r: [] for r in RELATIONS if "edge_attr" in data[r]}
    for number, row in enumerate(chosen):
        taken = [act for act, on in zip(acts, row, strict=True) if on]
        gone = {way for act in taken if isinstance(act, Cut) for edge in act.edges for way in ways(edge)}
        for relation in RELATIONS:
            shift = np.array([number * COUNTS[relation[0]], number * COUNTS[relation[2]]])
            for column, pair in enumerate(data[relation].edge_index.T.tolist()):
                if (relation, *pair) not in gone:
                    ends[relation].append(shift + pair)
                    if relation in attr:
                        attr[relation].append(data[relation].edge_attr[column].tolist())
        for act in taken:
            if isinstance(act, Put):
                kind, node = act.node
                x[kind][number, node, act.feature] = act.value
            for relation, *pair in ways(act.ends) if isinstance(act, Join) else ():
                shift = np.array([number * COUNTS[relation[0]], number * COUNTS[relation[2]]])
                ends[relation].append(shift + pair)
                if relation in attr:
                    said = carries["edge_attr"]
                    attr[relation].append(said.get(relation, said.get(WRITES)))
    return (
        {kind: value.flatten(0, 1) for kind, value in x.items()},
        {r: torch.from_numpy(np.array(some, dtype=np.int64).reshape(-1, 2)).T.contiguous() for r, some in ends.items()},
        {r: torch.tensor(some, dtype=torch.float64).view(-1, CARRIED[r]) for r, some in attr.items()},
    )


def small_library(random: np.random.Generator, attributes: bool = False) -> tuple[HeteroData, list[TypedEdge]]:
    """A random graph, and the edges that it does not have."""
    data = HeteroData()
    for kind, size in COUNTS.items():
        data[kind].x = torch.from_numpy(np.round(random.normal(size=(size, WIDTHS[kind])) * 2, 2)).float()
        data[kind].x[:, 0] = torch.from_numpy(random.integers(0, 2, size)).float()
    absent: list[TypedEdge] = []
    chosen = {}
    for relation, count in ((WRITES, 4), (CITES, 3), (REVIEWS, 3)):
        pairs = [(u, v) for u in range(COUNTS[relation[0]]) for v in range(COUNTS["paper"])]
        pairs = [(u, v) for u, v in pairs if relation != CITES or u < v]
        pairs = [pairs[i] for i in random.permutation(len(pairs))]
        chosen[relation] = sorted(pairs[:count])
        absent += [(relation, u, v) for u, v in pairs[count:]]
    for relation in RELATIONS:
        columns = [way for forward, some in chosen.items() for pair in some for way in ways((forward, *pair))]
        mine = [(u, v) for name, u, v in columns if name == relation]
        data[relation].edge_index = torch.tensor(mine).T.contiguous()
    if attributes:
        known = {edge: random.normal(size=CARRIED[edge[0]]).round(2) for edge in edges_of(data) if edge[0] in CARRIED}
        of_way = {way: value for edge, value in known.items() for way in ways(edge)}
        for relation in CARRIED:
            rows = [of_way[relation, u, v] for u, v in data[relation].edge_index.T.tolist()]
            data[relation].edge_attr = torch.from_numpy(np.array(rows)).float()
    return data, [absent[i] for i in random.permutation(len(absent))]


def _acts(
    random: np.random.Generator, data: HeteroData, absent: list[TypedEdge], edits: str
) -> tuple[list[Act], dict[str, Any], dict[Any, float]]:
    """Acts of the kinds asked for, with the rules that say the same, and what is not 1 of their costs."""
    acts: list[Act] = []
    costs: dict[Any, float] = {}
    rules: dict[str, Any] = {"delete": edits in ("delete", "mixed"), "add": (), "features": []}

    def price() -> int:
        return int(random.choice([5, 10, 10, 13, 20]))

    def written(edge: TypedEdge) -> TypedEdge:
        """The same edge, sometimes by its reverse."""
        return ways(edge)[-1] if random.random() < 0.5 else edge

    if rules["delete"]:
        edges = [edges_of(data)[i] for i in random.permutation(10)]
        free = edges[: 4 if edits == "mixed" else 9]
        acts += [Cut((edge,), price()) for edge in free]
        rules["allowed"] = [written(edge) for edge in free]
    if edits in ("add", "mixed"):
        by_relation = {r: [edge for edge in absent if edge[0] == r] for r in (WRITES, CITES, REVIEWS)}
        new = [edge for some in by_relation.values() for edge in some[: 1 if edits == "mixed" else 3]]
        acts += [Join(edge, price()) for edge in new]
        rules["add"] = [written(edge) for edge in new]
    for act in acts:
        edge = act.edges[0] if isinstance(act, Cut) else act.ends
        costs |= {written(edge): act.tenths / 10} if act.tenths != 10 else {}
    if edits in ("change", "mixed"):
        author, paper, tenths = int(random.integers(3)), int(random.integers(4)), price()
        rules["features"].append(Features(columns=[0], nodes=[paper], node_type="paper", cost=tenths / 10))
        acts.append(Put(("paper", paper), 0, 1.0 - float(data["paper"].x[paper, 0]), tenths))
        rules["features"].append(Features(values=[-4.0, 4.0], columns=[1], nodes=[author], node_type="author"))
        acts += [Put(("author", author), 1, value) for value in (-4.0, 4.0)]
    if edits == "change":
        rules["features"].append(Features(values=[3.0], columns=[2], nodes=range(4), node_type="paper", cost=0.5))
        acts += [Put(("paper", node), 2, 3.0, 5) for node in range(4)]
    return acts, rules, costs


@cache
def typed_question(kind: str, what: str, edits: str, seed: int = 0) -> TypedTask:
    """A small random question for this encoder, task and kind of edits: "delete", "add", "change" or "mixed"."""
    random = np.random.default_rng([sum(kind.encode()), sum(what.encode()), sum(edits.encode()), seed])
    data, absent = small_library(random, kind == "attributes")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.integers(1000)))
        encoder = ENCODERS[kind]()
        model = (NodesWithAttributes(encoder, CLASSES) if kind == "attributes" else TASKS[what](encoder)).eval()
    if kind == "HGT":
        with torch.no_grad():  # what it says of nodes differs little
            model.head.weight *= 30
    acts, rules, costs = _acts(random, data, absent, edits)
    carries = {"edge_attr": {WRITES: [0.5, -1.0], CITES: [2.0]}} if kind == "attributes" else {}
    # In a neighbourhood that is a part of the graph other paths count, so only where the whole graph is searched.
    connected = edits == "mixed" and what.startswith("graph")
    space = EditSpace(
        **rules, costs=costs, carries=carries, max_edits=4 if edits == "mixed" else None, keep_connected=connected
    )
    node_type = {"node": "paper", "link": ("author", "paper"), "graph": None}[what.split()[0]]
    question = TypedTask(
        f"{kind}, {what}, {edits}, {seed}",
        model,
        data,
        tuple(acts),
        None,
        Goal(),
        space,
        node_type=node_type,
        what=what,
    )
    small = question.scores[question.allowed(None)]
    if small.shape[2] > 1:
        with torch.no_grad():
            model.head.bias -= torch.from_numpy(small.mean(axis=(0, 1))).float()
        # Where all edits are allowed, one alone shall rarely do.
        return replace(question, goal=Goal(least=0.2 * float(small.std()) if edits == "mixed" else 0.0))
    # A threshold that some edits cross, but not the first best.
    intact = small[0, 0, 0]
    far = small[np.abs(small[:, 0, 0] - intact).argmax(), 0, 0]
    share = 0.7 if edits == "mixed" else 0.4
    asked = replace(question, goal=Goal(threshold=float(np.float32(intact + share * (far - intact)))))
    vars(asked)["scores"] = question.scores  # of the same model
    return asked
