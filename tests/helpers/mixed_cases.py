"""Small random questions with all kinds of edits and rules: deletions, groups, additions, features, costs, limits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE

from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.models import PaperGCN
from butfor.problem.goal import Goal
from hand_edits import Act, Cut, Join, Put, edge_of
from truth import Question

KINDS = ("GCN", "PaperGCN", "GraphSAGE", "GAT", "weighted GCN", "GAT with attributes")
CLASSES = 3


def build(kind: str, seed: int, width: int) -> tuple[torch.nn.Module, int]:
    """A random model, and how far it sees: layers that normalise by degree see one hop more."""
    depth = 1 + seed % 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "PaperGCN":
            return PaperGCN(width, CLASSES, hidden=6).eval(), 4
        if kind == "GraphSAGE":
            return GraphSAGE(width, 8, depth, CLASSES).eval(), depth
        if kind == "GAT":
            return GAT(width, 8, depth, CLASSES).eval(), depth
        if kind == "GAT with attributes":
            return GAT(width, 8, depth, CLASSES, edge_dim=2, v2=True).eval(), depth
        return GCN(width, 8, depth, CLASSES, jk=(None, "cat")[seed // 2 % 2]).eval(), depth + 1


@cache
def mixed_case(kind: str, seed: int, only_cuts: bool = False) -> Question:
    """A small random question; which rules there are varies with the seed."""
    random = np.random.default_rng([sum(kind.encode()), seed, only_cuts])
    directed, nodes = bool(seed % 3 == 1), int(random.integers(5, 7))
    pairs = list(itertools.permutations(range(nodes), 2) if directed else itertools.combinations(range(nodes), 2))
    pairs = [pairs[i] for i in random.permutation(len(pairs))]
    edges = sorted(pairs[: nodes + int(random.integers(1, 4)) + 3 * only_cuts])
    absent = pairs[len(edges) :]
    data, carries = _graph(random, kind, seed, directed, nodes, edges)

    price = (lambda: int(random.choice([3, 5, 10, 10, 13, 20]))) if seed % 2 else (lambda: 10)
    shuffled = [edges[i] for i in random.permutation(len(edges))]
    acts: list[Act] = []
    groups, costs = {}, {}
    if seed % 3 != 2:
        for name in ("one", "two"):
            acts.append(Cut(tuple(sorted([shuffled.pop(), shuffled.pop()])), price()))
            groups[name], costs[name] = (
                [edge[::-1] if not directed else edge for edge in acts[-1].edges],
                acts[-1].tenths,
            )
    free = shuffled[: 9 if only_cuts else 4]
    for edge in free:
        acts.append(Cut((edge,), price()))
        costs[edge if directed else edge[::-1]] = acts[-1].tenths
    features: list[Features] = []
    add = []
    if not only_cuts:
        for ends in absent[:3]:
            acts.append(Join(ends, price()))
            costs[ends] = acts[-1].tenths
            add.append(ends)
        first, second = (int(node) for node in random.choice(nodes, 2, replace=False))
        tenths = price()
        features.append(Features(columns=[0], nodes=[first], cost=tenths / 10))
        acts.append(Put(first, 0, 1.0 - float(data.x[first, 0]), tenths))
        tenths = price()
        if seed % 2:
            features.append(Features(values=[-4.0, 4.0], columns=[1], nodes=[second], cost=tenths / 10))
            acts += [Put(second, 1, value, tenths) for value in (-4.0, 4.0)]
        else:
            features.append(Features(between=(-3.0, 3.0), steps=3, columns=[2], nodes=[second], cost=tenths / 10))
            acts += [Put(second, 2, value, tenths) for value in (-3.0, 0.0, 3.0)]
    stay = [edge for edge in shuffled if edge not in free]
    limits = {"allowed": [*free, *(edge for act in acts[: len(groups)] for edge in act.edges)]}
    space = EditSpace(
        **({"protected": stay} if seed % 2 else limits),
        costs={name: tenths / 10 for name, tenths in costs.items() if tenths != 10},
        groups=groups,
        add=add,
        carries=carries,
        features=features,
        max_edits=(None, None, 2, 4)[seed % 4],
        keep_connected=seed % 4 == 3,
    )
    goals = [
        Goal(),
        Goal(wanted=seed % CLASSES),
        Goal(least=0.2),
        Goal(probability=0.6),
        Goal(wanted=1, probability=0.5, least=0.1),
    ]
    model, hops = build(kind, seed, 3)
    goal = goals[seed % len(goals)]
    return _evened(Question(f"{kind}, seed {seed}", model, data, tuple(acts), directed, goal, space, hops))


def _graph(
    random: np.random.Generator, kind: str, seed: int, directed: bool, nodes: int, edges: list[tuple[int, int]]
) -> tuple[Data, dict[str, Any]]:
    """The graph, some edges in it twice, and what an added edge carries."""
    columns = [*edges] if directed else [*edges, *(edge[::-1] for edge in edges)]
    columns += [columns[0], columns[len(edges) % len(columns)]] if seed % 4 == 2 else []
    x = np.round(random.normal(size=(nodes, 3)) * 2, 2)
    x[:, 0] = random.integers(0, 2, nodes)
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.tensor(columns).T.contiguous())
    if kind == "weighted GCN":
        weight = {edge: float(random.choice([0.5, 1.0, 2.0])) for edge in edges}
        data.edge_weight = torch.tensor([weight[edge_of(pair, directed)] for pair in columns])
        return data, {"edge_weight": 1.5} if seed % 2 else {}
    if kind == "GAT with attributes":
        attr = {edge: random.normal(size=2).round(2).tolist() for edge in edges}
        data.edge_attr = torch.tensor([attr[edge_of(pair, directed)] for pair in columns])
        return data, {"edge_attr": [0.5, -1.0]}
    return data, {}


def _evened(question: Question) -> Question:
    """The same with the last bias of its model shifted, so that no class always wins."""
    bias = [p for name, p in question.model.named_parameters() if name.endswith("bias") and len(p) == CLASSES][-1]
    with torch.no_grad():
        bias -= torch.from_numpy(question.scores.mean(axis=(0, 1))).to(bias)
    return replace(question)  # without the scores of before
