"""The truth by brute force: after every subset of the edits, made by hand (`hand_edits`), what does the model say?

Shares no code with the library: a copy of the model in double precision is run on all edited graphs. Costs are whole
tenths, so that sums are exact.

A `Question` is any model, graph and goal, with the allowed edits as single acts. A `Case` is the plain one, in which
edges may go and nothing else; `random_case` makes many of them. Other questions are made in `mixed_cases` (all kinds of
edits), `task_cases` (links, whole graphs, numbers), `typed_cases` (graphs of several types) and `gnns` (every kind of
model); `claims` holds results against the truth.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
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
from hand_edits import Act, Cut, Join, Pair, Put, edge_of, edges_of, node_scores, subsets
from random_graphs import random_edges, random_model, random_tree, random_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butfor.edits.edit import Edit

__all__ = [
    "CLOSE",
    "Case",
    "Pair",
    "Question",
    "Truth",
    "find_truth",
    "judge",
    "larger_case",
    "pairs_of",
    "random_case",
    "random_model",
    "scores_after",
    "solve",
    "subsets",
]

# Leads closer than this to what is asked, or to each other, may be told apart wrongly in single precision.
CLOSE = 1e-4
# Leads closer than this are equal but for rounding.
SAME = 2e-6

TENTHS = (1, 2, 3, 5, 10, 10, 13, 20, 30)

Edges = tuple[Pair, ...]


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
        """The target, where targets are nodes."""
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


# Plain cases: edges may go, and nothing else.


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
    ends = random_edges(random, nodes, directed)
    x = random.normal(size=(nodes, 3)) * random.choice([1.0, 3.0]) + random.choice([0.0, 3.0])
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(ends))
    if kind in ("GCN", "PaperGCN") and random.random() < 0.3:
        data.edge_weight = torch.from_numpy(random_weights(random, ends, directed)).float()
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
