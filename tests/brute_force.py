"""The truth by brute force: every subset of the edits made by hand in plain torch, and the model run on all of them.

Shares no code with the library: edited graphs are laid side by side here, and a copy of the model in double precision
says what it predicts. Costs are whole tenths, so that sums are exact.

A `Question` is any model, graph and goal, with the allowed edits as single acts; `find_truth` finds the cheapest sets.
Questions are made in `truth` (edges may go, and nothing else), `mixed_cases` (all kinds of edits), `task_cases` (links,
whole graphs and numbers), `typed_cases` (graphs of several types) and `gnns` (every kind of model).
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.addition import Addition
from butfor.edits.change import Change
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from butfor.edits.edit import Edit

# Leads closer than this to what is asked, or to each other, may be told apart wrongly in single precision.
CLOSE = 1e-4
# Leads closer than this are equal but for rounding.
SAME = 2e-6

# What edges and nodes may carry besides features.
EDGE_FIELDS = ("edge_weight", "edge_attr", "edge_type")
NODE_FIELDS = ("pos",)

Pair = tuple[int, int]


# Edits, and graphs after them.


@dataclass(frozen=True)
class Cut:
    """All these edges go; in a graph of several types each is (relation, source, target)."""

    edges: tuple[Any, ...]
    tenths: int = 10


@dataclass(frozen=True)
class Join:
    """This edge comes."""

    ends: Pair
    tenths: int = 10


@dataclass(frozen=True)
class Put:
    """This feature gets this value."""

    node: int
    feature: int
    value: float
    tenths: int = 10


Act = Cut | Join | Put


def subsets(count: int) -> np.ndarray:
    """All subsets of so many things, one a row; row number r holds thing i where bit i of r is set."""
    return (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1


def edge_of(pair: Sequence[int], directed: bool) -> Pair:
    """An edge as a person names it, whichever of its directions this is."""
    u, v = pair
    return (u, v) if directed else (min(u, v), max(u, v))


def edges_of(data: Data, directed: bool) -> list[Pair]:
    """The edges as a person counts them: neither copies nor self-loops, and each direction only where it matters."""
    return sorted({edge_of(pair, directed) for pair in data.edge_index.T.tolist() if pair[0] != pair[1]})


def edited(
    data: Data, directed: bool, acts: Sequence[Act], chosen: np.ndarray, carries: Mapping[str, Any] | None = None
) -> Data:
    """The graph after every row of chosen acts, in double precision, side by side; ``batch`` tells them apart."""
    taken, nodes, count = torch.from_numpy(chosen), data.num_nodes, len(chosen)
    old = [edge_of(pair, directed) for pair in data.edge_index.T.tolist()]
    present = torch.ones(count, len(old), dtype=torch.bool)
    x = data.x.double().repeat(count, 1).view(count, nodes, -1)
    ends, added = data.edge_index, []
    for number, act in enumerate(acts):
        if isinstance(act, Cut):
            gone = torch.tensor([edge in act.edges for edge in old], dtype=torch.bool)
            present &= ~(taken[:, number, None] & gone)
        elif isinstance(act, Join):
            ways = [act.ends] if directed else [act.ends, act.ends[::-1]]
            ends = torch.cat([ends, torch.tensor(ways).T], dim=1)
            added += [taken[:, number, None]] * len(ways)
        else:
            x[taken[:, number], act.node, act.feature] = act.value
    copies, column = torch.cat([present, *added], dim=1).nonzero(as_tuple=True)
    graph = Data(x=x.view(count * nodes, -1), edge_index=ends[:, column] + copies * nodes)
    graph.batch = torch.arange(count).repeat_interleave(nodes)
    for name in EDGE_FIELDS:
        if name in data:
            new = torch.as_tensor((carries or {}).get(name, 1.0)).to(data[name])
            values = torch.cat([data[name], new.expand(len(added), *data[name].shape[1:])])[column]
            graph[name] = values.double() if values.is_floating_point() else values
    for name in NODE_FIELDS:
        if name in data:
            graph[name] = data[name].double().repeat(count, 1)
    return graph


def node_scores(
    model: torch.nn.Module,
    data: Data,
    directed: bool,
    acts: Sequence[Act],
    chosen: np.ndarray,
    carries: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """The scores of every node after every row of chosen acts: (rows, nodes, classes)."""
    graph = edited(data, directed, acts, chosen, carries)
    fields = {name: graph[name] for name in EDGE_FIELDS if name in graph}
    double = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        out = double(graph.x, graph.edge_index, **fields)
    return out.numpy().reshape(len(chosen), data.num_nodes, -1)


# What is true after every subset.


class Judged(NamedTuple):
    """What the scores of one target mean, after each subset of the edits; the first is the empty one."""

    before: int
    lead: np.ndarray  # by how much the goal is reached, if it is positive
    reached: np.ndarray
    unsure: np.ndarray  # too close to call
    tie: bool  # whether the class before is


def judge(scores: np.ndarray, goal: Goal) -> Judged:
    """Scores are rows of classes or, where the goal has a threshold, of one number."""
    if goal.threshold is not None:
        above = scores[:, 0] - goal.threshold
        before, lead = int(above[0] > 0), above if above[0] <= 0 else -above
        tie = abs(above[0]) < CLOSE
    else:
        before = int(scores[0].argmax())
        own = before if goal.wanted is None else goal.wanted
        behind = np.delete(scores, own, axis=1).max(axis=1) - scores[:, own]
        lead = behind if goal.wanted is None else -behind
        second, first = np.sort(scores[0])[-2:]
        tie = first - second < CLOSE
    lead = lead - goal.least
    reached, unsure = lead > 0, np.abs(lead) < CLOSE
    if goal.probability is not None:
        # Of the class that is predicted.
        chance = 1 / np.exp(scores - scores.max(axis=1)[:, None]).sum(axis=1)
        reached &= chance >= goal.probability
        unsure |= np.abs(chance - goal.probability) < CLOSE
    return Judged(before, lead, reached, unsure, bool(tie))


@dataclass(frozen=True)
class Truth:
    """What brute force knows about one target."""

    target: Any
    before: int
    tenths: int | None  # the least cost; None where nothing reaches the goal
    lead: dict[tuple[Any, ...], float]  # all sets of that cost, and by how much each leads
    close: bool  # whether any subset is too close to call
    doubtful: bool  # whether one is that could matter to the answer

    @property
    def node(self) -> int:
        return self.target

    @property
    def cost(self) -> float:
        return float("inf") if self.tenths is None else self.tenths / 10

    @property
    def decisive(self) -> set[tuple[Any, ...]]:
        """The sets that may be called the most decisive: one, but where leads are too close to tell apart."""
        most = max(self.lead.values())
        near = {edits for edits, lead in self.lead.items() if lead >= most - CLOSE}
        same = {edits for edits in near if self.lead[edits] >= most - SAME}
        return {min(same)} if near == same else near

    @property
    def necessity(self) -> dict[Any, float]:
        """The share of the sets that each edit is in."""
        counts = Counter(edit for edits in self.lead for edit in edits)
        return {edit: count / len(self.lead) for edit, count in counts.items()}


def find_truth(
    target: Any,
    judged: Judged,
    tenths: np.ndarray,
    allowed: np.ndarray,
    name: Callable[[int], tuple[Any, ...]],
) -> Truth:
    """The cheapest of all subsets that are allowed and reach the goal; ``name`` says what a row is called."""
    reached = judged.reached & allowed
    least = int(tenths[reached].min()) if reached.any() else None
    unsure = judged.unsure & allowed
    matters = unsure if least is None else unsure & (tenths <= least)
    smallest = [] if least is None else np.flatnonzero(reached & (tenths == least)).tolist()
    return Truth(
        target=target,
        before=judged.before,
        tenths=least,
        lead={name(row): float(judged.lead[row]) for row in smallest},
        close=bool(unsure.any() or judged.tie),
        # That the intact graph does not reach the goal needs no telling.
        doubtful=bool(matters[1:].any() or judged.tie),
    )


# Questions.


@dataclass(frozen=True, eq=False)
class Question:
    """A model, a graph, a goal, and the rules twice: as single acts for brute force, and as the library takes them.

    The targets are all nodes; ``hops`` is how far the model sees, degrees included, and needed only where all must stay
    connected. Other tasks and graphs say in `outputs` what the model predicts after edits.
    """

    name: str
    model: torch.nn.Module
    data: Any
    acts: tuple[Act, ...]
    directed: bool | None = False
    goal: Goal = field(default_factory=Goal)
    space: EditSpace = field(default_factory=EditSpace)
    hops: int = 0
    node_type: str | None = None

    @property
    def task(self) -> str:
        return "node"

    @property
    def targets(self) -> Sequence[Any]:
        return range(self.data.num_nodes)

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        """What the model says after every row of chosen acts: (rows, targets, classes)."""
        return node_scores(self.model, self.data, self.directed, self.acts, chosen, self.space.carries)

    @cached_property
    def chosen(self) -> np.ndarray:
        """All subsets of the acts, one a row."""
        return subsets(len(self.acts))

    @cached_property
    def scores(self) -> np.ndarray:
        return self.outputs(self.chosen)

    @cached_property
    def tenths(self) -> np.ndarray:
        return self.chosen @ np.array([act.tenths for act in self.acts], dtype=np.int64)

    def judged(self, target: Any) -> Judged:
        return judge(self.scores[:, list(self.targets).index(target)], self.goal)

    @cached_property
    def truths(self) -> list[Truth]:
        """The truth about every target that can be asked about: those not of the wanted class already."""
        found = []
        for target in self.targets:
            judged = self.judged(target)
            if judged.before != self.goal.wanted:
                found.append(find_truth(target, judged, self.tenths, self.allowed(target), self.records))
        return found

    @property
    def clear(self) -> list[Truth]:
        """The truth about the targets whose answer is not too close to call."""
        return [truth for truth in self.truths if not truth.doubtful]

    def allowed(self, target: Any) -> np.ndarray:
        """Which subsets set no feature twice, are small enough and, where that is asked, cut nothing off."""
        slots = [(act.node, act.feature) if isinstance(act, Put) else None for act in self.acts]
        fine = np.ones(len(self.chosen), dtype=bool)
        for i, j in itertools.combinations(range(len(self.acts)), 2):
            if slots[i] is not None and slots[i] == slots[j]:
                fine &= ~(self.chosen[:, i] & self.chosen[:, j])
        if self.space.max_edits is not None:
            fine &= self.chosen.sum(axis=1) <= self.space.max_edits
        return fine & self._connected(target) if self.space.keep_connected else fine

    def _connected(self, target: int) -> np.ndarray:
        """Which subsets leave connected what was connected in the target's neighbourhood."""
        edges = [edge_of(pair, self.directed) for pair in self.data.edge_index.T.tolist()]
        joins = [act.ends for act in self.acts if isinstance(act, Join)]
        inside = _near(target, {*edges, *joins}, self.directed, self.hops)
        owner = {edge: i for i, act in enumerate(self.acts) if isinstance(act, Cut) for edge in act.edges}
        nodes = self.data.num_nodes
        together = np.tile(np.eye(nodes, dtype=bool), (len(self.chosen), 1, 1))
        for u, v in edges:
            if u in inside and v in inside:
                there = ~self.chosen[:, owner[u, v]] if (u, v) in owner else True
                together[:, u, v] |= there
                together[:, v, u] |= there
        for i, act in enumerate(self.acts):
            if isinstance(act, Join) and set(act.ends) <= inside:
                u, v = act.ends
                together[:, u, v] |= self.chosen[:, i]
                together[:, v, u] |= self.chosen[:, i]
        for _ in range(int(np.ceil(np.log2(nodes)))):  # paths of up to as many edges as there are nodes
            together = together @ together
        fine: np.ndarray = (together | ~together[0]).all(axis=(1, 2))
        return fine

    def records(self, row: int) -> tuple[Edit, ...]:
        """What the library should call this subset."""
        acts = [act for act, taken in zip(self.acts, self.chosen[row], strict=True) if taken]
        cut = [edge for act in acts if isinstance(act, Cut) for edge in act.edges]
        puts = [act for act in acts if isinstance(act, Put)]
        return (
            *(Deletion(u, v, *relation) for *relation, u, v in sorted(cut)),
            *sorted(Addition(*act.ends) for act in acts if isinstance(act, Join)),
            *sorted(Change(a.node, a.feature, float(self.data.x[a.node, a.feature]), a.value) for a in puts),
        )

    def row(self, edits: Iterable[Edit]) -> int:
        """The subset that these records are; a part of a group is none."""
        left, number = set(edits), 0
        for i in range(len(self.acts)):
            mine = set(self.records(2**i))
            if mine <= left:
                left -= mine
                number += 2**i
            assert not mine & left, f"{self.name}: only a part of {mine} was done"
        assert not left, f"{self.name}: {left} is not allowed at all"
        return number

    def ask(self, targets: Iterable[Any], method: butfor.methods.Method) -> list[butfor.Counterfactual]:
        """What the library says of these targets, with as much time as it likes."""
        targets = list(targets)
        results = butfor.explain(
            self.model,
            self.data,
            None if targets == [None] else targets,
            method,
            goal=self.goal,
            space=self.space,
            budget=butfor.Budget(evaluations=None),
            directed=self.directed,
            node_type=self.node_type,
        )
        return results if isinstance(results, list) else [results]


def _near(target: int, edges: set[Pair], directed: bool, hops: int) -> set[int]:
    """The nodes whose messages reach the target within so many hops."""
    ways = edges if directed else edges | {(v, u) for u, v in edges}
    inside = {target}
    for _ in range(hops):
        inside |= {u for u, v in ways if v in inside}
    return inside
