"""Random questions to put to the program of a model, and what the model itself says of the edited graphs.

The graphs are edited by hand (`hand_edits`) and the model is run on the whole of them, in double precision, so that
what differs is wrong.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

import butfor
from butfor.edits.addition import Addition
from butfor.edits.deletion import Deletion
from butfor.edits.edits import pack
from butfor.session import Session
from gnns import EDGE_WIDTH, KINDS_OF_EDGES, Kind
from hand_edits import Act, Cut, Join, Put, edge_of, edited
from random_graphs import random_edges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butfor.edits.edits import Edits
    from butfor.oracle.base import Oracle
    from butfor.problem import Problem

WIDTH, CLASSES = 4, 3
CARRIES = {"edge_weight": 0.7, "edge_attr": [0.5] * EDGE_WIDTH, "edge_type": 1}
EXACT = 1e-7


# Layers in plain torch: what people write who do not use PyG's.


def sums(messages: Tensor, receiver: Tensor, count: int) -> Tensor:
    return messages.new_zeros(count, *messages.shape[1:]).index_add(0, receiver, messages)


def mean(x: Tensor, edge_index: Tensor) -> Tensor:
    sender, receiver = edge_index
    count = sums(torch.ones_like(x[sender, :1]), receiver, len(x)).clamp(min=1)
    return x + sums(x[sender], receiver, len(x)) / count


def largest(x: Tensor, edge_index: Tensor) -> Tensor:
    sender, receiver = edge_index
    index = receiver[:, None].expand(-1, x.size(1))
    return x + torch.zeros_like(x).scatter_reduce(0, index, x[sender], "amax", include_self=False)


def smallest(x: Tensor, edge_index: Tensor) -> Tensor:
    sender, receiver = edge_index
    index = receiver[:, None].expand(-1, x.size(1))
    return x - torch.zeros_like(x).scatter_reduce(0, index, 2 * x[sender], "amin", include_self=False)


def attention(x: Tensor, edge_index: Tensor) -> Tensor:
    sender, receiver = edge_index
    weight = (x[sender] * x[receiver]).sum(dim=-1, keepdim=True).tanh().exp()
    return x + sums(weight * x[sender], receiver, len(x)) / (sums(weight, receiver, len(x)) + 1e-3)


def symmetric(x: Tensor, edge_index: Tensor) -> Tensor:
    """With a self-loop for each node, and both degrees."""
    loops = torch.arange(len(x))
    sender, receiver = torch.cat([edge_index, torch.stack([loops, loops])], dim=1)
    degree = sums(torch.ones_like(x[sender, 0]), receiver, len(x)).pow(-0.5)
    return sums((degree[sender] * degree[receiver])[:, None] * x[sender], receiver, len(x))


def backwards(x: Tensor, edge_index: Tensor) -> Tensor:
    receiver, sender = edge_index.flip(0).flip(0)
    return x + 0.5 * sums(x[sender].tanh(), receiver, len(x))


def loops_apart(x: Tensor, edge_index: Tensor) -> Tensor:
    """Self-loops carry another message than edges between two nodes."""
    own = edge_index[0] == edge_index[1]
    sender, receiver = edge_index[:, ~own]
    out = x + sums(x[sender] - x[receiver], receiver, len(x))
    return out + 2 * sums(x[edge_index[0, own]], edge_index[1, own], len(x))


def degrees(x: Tensor, edge_index: Tensor) -> Tensor:
    count = sums(torch.ones_like(x[edge_index[0], :1]), edge_index[1], len(x))
    return x * (1 + count.log1p()) + 0.3 * mean(x, edge_index) * (count > 2)


def gated(x: Tensor, edge_index: Tensor) -> Tensor:
    sender, receiver = edge_index
    both = torch.cat([x[sender], x[receiver]], dim=1)
    gate = torch.sigmoid(both[:, ::2] - both[:, 1::2])
    return x + sums(gate * x[sender], receiver, len(x))


BY_HAND: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    one.__name__: one for one in (mean, largest, smallest, attention, symmetric, backwards, loops_apart, degrees, gated)
}


class Hand(nn.Module):
    """Two layers in plain torch, with matrices around them."""

    def __init__(self, *layers: str, seed: int = 0, act: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inside = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in layers)
            self.last = nn.Linear(WIDTH, CLASSES)
        self.names, self.act = layers, act

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for linear, name in zip(self.inside, self.names, strict=True):
            x = self.act(linear(BY_HAND[name](x, edge_index)))
        return x

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.encode(x, edge_index))


class HandLinks(Hand):
    """Whether two nodes are linked: one number."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        z = self.encode(x, edge_index)
        return (z[edge_label_index[0]] * self.last(z[edge_label_index[1]]).sum(-1, keepdim=True)).sum(-1)


POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "maximum": global_max_pool}


class HandGraphs(Hand):
    """The class of a whole graph."""

    def __init__(self, pool: str, *layers: str, **options: Any) -> None:
        super().__init__(*layers, **options)
        self.pool = POOLS[pool]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.last(self.pool(self.encode(x, edge_index), batch))


# Graphs and edits.


def random_graph(seed: int, directed: bool, fields: Sequence[str] = (), nodes: int = 9) -> Data:
    """Self-loops, copies of edges and nodes without any, each in some of them; an edge carries the same both ways."""
    random = np.random.default_rng([seed, directed])
    ends = random_edges(random, nodes, directed)
    edges = sorted({edge_of(pair, directed) for pair in ends.T.tolist()})
    number = [edges.index(edge_of(pair, directed)) for pair in ends.T.tolist()]
    carried = {
        "edge_weight": 0.5 + random.random(len(edges)),
        "edge_attr": random.normal(size=(len(edges), EDGE_WIDTH)),
        "edge_type": random.integers(0, KINDS_OF_EDGES, len(edges)),
    }
    data = Data(x=torch.from_numpy(random.normal(size=(nodes, WIDTH))), edge_index=torch.from_numpy(ends))
    for name in fields:
        data[name] = torch.from_numpy(random.normal(size=(nodes, 3)) if name == "pos" else carried[name][number])
    return data


def all_edits(fields: Sequence[str] = ()) -> butfor.EditSpace:
    """Deletions, additions and changed features."""
    return butfor.EditSpace(
        add=butfor.Within(hops=2, most=6),
        features=butfor.Features(values=[0.0, 1.5], within=1, columns=[0, 2]),
        carries={name: CARRIES[name] for name in fields if name in CARRIES},
    )


@dataclass(frozen=True, eq=False)
class ProgramCase:
    """A model, a graph and a target, to be asked about some edits.

    ``fresh`` makes the model in double precision, the same each time.
    """

    fresh: Callable[[], nn.Module]
    data: Data
    directed: bool
    target: Any
    space: butfor.EditSpace = field(default_factory=butfor.EditSpace)
    fields: tuple[str, ...] = ()
    probabilities: bool = False

    @property
    def task(self) -> str:
        return "graph" if self.target is None else "link" if isinstance(self.target, butfor.Pair) else "node"

    @cached_property
    def session(self) -> Session:
        goal = butfor.Goal(threshold=self.threshold) if self.task == "link" else None
        return Session.of(self.fresh(), self.data, task=self.task, goal=goal, space=self.space, directed=self.directed)

    @cached_property
    def threshold(self) -> float:
        """Of a link's score: near enough to what it is that few edits cross it."""
        pair = torch.tensor(self.target)[:, None]
        with torch.no_grad():
            return float(self.fresh()(self.data.x, self.data.edge_index, edge_label_index=pair)) - 0.05

    @cached_property
    def problem(self) -> Problem:
        return self.session.problem(self.target)

    @property
    def edits(self) -> Edits:
        return self.problem.edits

    @cached_property
    def acts(self) -> list[Act]:
        """What each edit is, in words that `hand_edits` knows."""
        acts: list[Act] = []
        for number in range(len(self.edits)):
            records = self.edits.records([number])
            record = records[0]
            if isinstance(record, Deletion):
                acts.append(Cut(tuple(edge_of((one.source, one.target), self.directed) for one in records)))
            elif isinstance(record, Addition):
                acts.append(Join((record.source, record.target)))
            else:
                acts.append(Put(record.node, record.feature, record.after))
        return acts

    def truth(self, sets: np.ndarray) -> np.ndarray:
        """What the model says of the whole graph after each edit set; of a link, how far above the threshold."""
        chosen = np.zeros((len(sets), len(self.acts)), dtype=bool)
        for row, edits in zip(chosen, sets, strict=True):
            row[edits[edits >= 0]] = True
        graph = edited(self.data, self.directed, self.acts, chosen, self.space.carries)
        given = {name: graph[name] for name in self.fields}
        first = torch.arange(len(sets)) * self.data.num_nodes
        if self.task == "link":
            given["edge_label_index"] = torch.stack([first + node for node in self.target])
        elif self.task == "graph":
            given["batch"] = graph.batch
        with torch.no_grad():
            out = self.fresh()(graph.x, graph.edge_index, **given)
        out = out[first + self.target] if self.task == "node" else out
        out = out - self.threshold if self.task == "link" else out
        return (out.log() if self.probabilities else out).reshape(len(sets), -1).numpy()

    def sets(self, seed: int = 0) -> np.ndarray:
        """Single edits and random sets of all sizes, none of which sets a feature twice."""
        random, count = np.random.default_rng(seed), len(self.edits)
        rows = [random.random(count) < share for share in (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) for _ in range(2)]
        rows = list(self.edits.without_conflicts(np.array(rows).reshape(-1, count)))
        singles = random.permutation(count)[:12]
        return pack([*map(np.flatnonzero, rows), *([one] for one in singles)])

    def questions(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Several prefixes, and what may follow each: nothing, one edit or many."""
        random = np.random.default_rng(seed)
        prefixes, candidates, counts = [], [], []
        for share in (0.0, 0.15, 0.3, 0.0, 0.6, 0.9):
            row = self.edits.without_conflicts(random.random((1, len(self.edits))) < share)[0]
            prefix = np.flatnonzero(row)
            rest = random.permutation(np.setdiff1d(np.arange(len(self.edits)), prefix))
            rest = rest[self.edits.permits(pack([[*prefix, edit] for edit in rest]))] if len(rest) else rest
            rest = rest[: int(random.integers(0, 9))]
            prefixes.append(prefix)
            candidates.append(rest)
            counts.append(len(rest))
        return pack(prefixes), np.concatenate(candidates), np.concatenate([[0], np.cumsum(counts)])

    def disagreement(self, oracle: Oracle, seed: int = 0) -> float:
        """How far an oracle is from the truth at most, by `logits`, by `extend`, and by `logits` again."""
        sets = self.sets(seed)
        prefixes, candidates, pointers = self.questions(seed)
        whole = np.concatenate([np.repeat(prefixes, np.diff(pointers), axis=0), candidates[:, None]], axis=1)
        apart = 0.0
        for asked, answers in (
            (sets, lambda: oracle.logits([(self.edits, sets)])[0]),
            (whole, lambda: oracle.extend(self.edits, prefixes, candidates, pointers)),
            (sets[::-1], lambda: oracle.logits([(self.edits, sets[::-1])])[0]),
        ):
            if len(asked):
                truth = self.truth(asked)
                apart = max(apart, _apart(answers().double().numpy().reshape(truth.shape[0], -1), truth))
        return apart


def _apart(mine: np.ndarray, truth: np.ndarray) -> float:
    """The largest difference, relative where numbers are large; a number above a threshold comes as two scores."""
    if truth.shape[1] == 1 and mine.shape[1] == 2:
        mine = mine[:, 1:] - mine[:, :1]
    return float((np.abs(mine - truth) / (1 + np.abs(truth))).max())


def kind_case(kind: Kind, seed: int, directed: bool, target: int, everything: bool) -> ProgramCase:
    """A question about one of the models of `gnns`, on a random graph."""
    data = random_graph(seed, directed, kind.fields)
    single = data.clone()
    for name in ("x", *kind.fields):
        single[name] = data[name].float() if data[name].is_floating_point() else data[name]
    model = kind.make(single).double()
    space = all_edits(kind.fields) if everything else butfor.EditSpace()
    return ProgramCase(
        lambda: copy.deepcopy(model), data, directed, target, space, kind.fields, kind.probabilities
    )  # fmt: skip


def hand_case(model: nn.Module, seed: int, directed: bool, target: Any, everything: bool = False) -> ProgramCase:
    """A question about a model in plain torch, on a random graph."""
    model = model.double().eval()
    space = all_edits() if everything else butfor.EditSpace()
    return ProgramCase(lambda: copy.deepcopy(model), random_graph(seed, directed), directed, target, space)
