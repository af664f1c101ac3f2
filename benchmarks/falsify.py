"""Try to catch a false proof: whatever is claimed of small random questions is held against every set of their edits.

    python -m benchmarks.falsify                              # two minutes of each part
    python -m benchmarks.falsify --parts certificates --seconds 600 --seed 1

Needs the folder ``tests`` of the repository, whose brute force shares no code with the library. Every case has a
number; one that fails is told by it, and ``--seed NUMBER --seconds 1`` begins there.

- ``bounds``: the checker's intervals over random families of edited graphs; every score lies within them. Levels and
  subsets are as they are, or so few that numbers of edits take their place.
- ``search``: the search's bounds over such families, also where features change, and the sets that it hands over: none
  that reaches what is needed is missing, however the search is broken off and taken up again.
- ``claims``: what `Exact` claims, with bounds also where there is little to prune; deletions, groups, additions and
  features, costs, rules and all goals; nodes, links and whole graphs, also of several types; in single and double
  precision.
- ``certificates``: the proofs of the same answers, which have to be confirmed; and trees cut at random for claims that
  go too far, which have to be refused.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

import butfor
from butfor.certificate import cases
from butfor.certificate.check import Refused
from butfor.certificate.record import BOUNDED, TRIED, Certificate
from butfor.certificate.subject import Subject, listed
from butfor.edits.edits import pack
from butfor.methods.exact import Tuning
from butfor.oracle import registry
from butfor.oracle.program.oracle import ProgramOracle, program_oracle

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "helpers")]

from claims import check_claims  # noqa: E402
from families import EXACT, bounding_of, margins, missed, sifted, subsets  # noqa: E402
from gnns import LOCAL  # noqa: E402
from mixed_cases import CLASSES, KINDS, mixed_case  # noqa: E402
from program_cases import (  # noqa: E402
    BY_HAND,
    CARRIES,
    Hand,
    HandGraphs,
    HandLinks,
    all_edits,
    hand_case,
    kind_case,
)
from task_cases import MODELS as TASKS  # noqa: E402
from task_cases import task_case  # noqa: E402
from typed_mixed_cases import ENCODERS, typed_question  # noqa: E402
from typed_mixed_cases import TASKS as TYPED_TASKS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from program_cases import ProgramCase
    from truth import Question, Truth

# Bounds and the search that prunes with them, also where there is little to prune.
PRUNING = butfor.Exact(all_smallest=True, threads=1, tuning=Tuning(bounding_pays=2, margins_pay=1))

# At most so many edits are free at once, and so many nodes of each graph are asked about.
MOST_FREE, MOST_TARGETS = 8, 3

ACTS: tuple[Callable[[Tensor], Tensor], ...] = (torch.tanh, torch.relu, torch.sigmoid, torch.abs, nn.LeakyReLU(0.1))

LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "mean": lambda given, out: pyg.SAGEConv(given, out),
    "max": lambda given, out: pyg.SAGEConv(given, out, aggr="max"),
    "min": lambda given, out: pyg.SAGEConv(given, out, aggr="min"),
    "sum": lambda given, out: pyg.GraphConv(given, out),
    "GIN": lambda given, out: pyg.GINConv(nn.Sequential(nn.Linear(given, out), nn.BatchNorm1d(out), nn.ReLU())),
    "GCN": lambda given, out: pyg.GCNConv(given, out),
    "GCN without loops": lambda given, out: pyg.GCNConv(given, out, add_self_loops=False),
    "GATv2": lambda given, out: pyg.GATv2Conv(given, out),
    "Transformer": lambda given, out: pyg.TransformerConv(given, out),
    "EdgeConv": lambda given, out: pyg.EdgeConv(nn.Linear(2 * given, out)),
    "SG": lambda given, out: pyg.SGConv(given, out, K=2),
}


class Net(nn.Module):
    """One or two layers of any kind, with norms, residuals or jumping knowledge, and a linear layer behind."""

    def __init__(self, random: np.random.Generator, width: int) -> None:
        super().__init__()
        self.names = [str(name) for name in random.choice(list(LAYERS), size=random.integers(1, 3))]
        given = [width, 5]
        self.layers = nn.ModuleList(LAYERS[name](given[i], 5) for i, name in enumerate(self.names))
        self.act = ACTS[random.integers(len(ACTS))]
        self.norm = nn.LayerNorm(5) if random.random() < 0.2 else nn.Identity()
        self.residual, self.jumping = bool(random.random() < 0.4), bool(random.random() < 0.3)
        self.lin = nn.Linear(5 * len(self.names) if self.jumping else 5, CLASSES)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter += float(random.choice([0.0, 0.3, 1.5])) * torch.randn_like(parameter)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The scores of all nodes."""
        hidden: list[Tensor] = []
        for layer in self.layers:
            new = self.act(self.norm(layer(x, edge_index)))
            x = new + x if self.residual and hidden else new
            hidden.append(x)
        out: Tensor = self.lin(torch.cat(hidden, dim=1) if self.jumping else x)
        return out


# Questions.


def question(random: np.random.Generator) -> Question:
    """A small random question that brute force can answer."""
    seed = int(random.integers(1 << 20))
    if random.random() < 0.15:
        return task_case(str(random.choice(list(TASKS))), seed)
    if random.random() < 0.15:
        kind, what = str(random.choice(list(ENCODERS))), str(random.choice(list(TYPED_TASKS)))
        what = "node class" if kind == "attributes" else what
        return typed_question(kind, what, str(random.choice(["delete", "add", "change", "mixed"])), seed)
    if random.random() < 0.3:
        return mixed_case(str(random.choice(KINDS)), seed, bool(random.integers(2)))
    asked = mixed_case("GraphSAGE", seed, bool(random.integers(2)))
    torch.manual_seed(seed)
    model, data = Net(random, asked.data.x.size(1)).eval(), asked.data
    if random.random() < 0.4:
        model, data = model.double(), data.clone().update({"x": data.x.double()})
    asked = replace(asked, model=model, data=data, name=f"{'+'.join(model.names)}, seed {seed}")
    with torch.no_grad():
        # No class always wins.
        model.lin.bias -= torch.from_numpy(asked.scores.mean(axis=(0, 1))).to(model.lin.bias)
    reach = butfor.prepare(model, data, directed=asked.directed).predictor.reach
    return replace(asked, hops=reach)


def some(asked: Question, random: np.random.Generator) -> list[Truth]:
    """Some targets whose answer is not too close to call."""
    clear = asked.clear
    return [clear[i] for i in random.permutation(len(clear))[:MOST_TARGETS]]


def program_case(random: np.random.Generator) -> ProgramCase:
    """A question about a program: any kind of model, of nodes, links or whole graphs."""
    seed, directed = int(random.integers(1 << 30)), bool(random.integers(2))
    names = [str(name) for name in random.choice(list(BY_HAND), size=2)]
    options: dict[str, Any] = {"seed": seed % 1000, "act": ACTS[random.integers(len(ACTS))]}
    first, second = (int(node) for node in random.choice(9, 2, replace=False))
    kind = random.random()
    if kind < 0.5:
        case = kind_case(LOCAL[str(random.choice(list(LOCAL)))], seed, directed, first, False)
    elif kind < 0.8:
        case = hand_case(Hand(*names, **options), seed, directed, first)
    elif kind < 0.9:
        pool = str(random.choice(["sum", "mean", "maximum"]))
        case = hand_case(HandGraphs(pool, *names, **options), seed, directed, None)
    else:
        case = hand_case(HandLinks(*names, **options), seed, directed, butfor.Pair(first, second))
    if random.random() < 0.65:
        return case
    carries = {name: CARRIES[name] for name in case.fields if name in CARRIES}
    return replace(case, space=butfor.EditSpace(add=butfor.Within(hops=2, most=8), carries=carries))


# What is held against brute force. Each returns how many claims were tried.


def bounds(random: np.random.Generator) -> int:
    """The checker's intervals contain what every set of a family leads to."""
    case = program_case(random)
    if not len(case.edits) or not isinstance(case.problem.oracle, ProgramOracle):
        return 0
    subject, count = Subject.of(case.problem, math.inf), len(case.edits)
    if subject.bounds is None:
        return 0
    cases.MOST_SUBSETS, cases.LEVELS = int(random.choice([0, 2, 6, 256])), int(random.choice([0, 1, 2, 3]))
    cases.subsets.cache_clear()
    sign = -1 if subject.pairs[0, 1] > 0 else 1
    tried = 0
    for most in (0, 1, 2, 3, 4, 6):
        order, gone = random.permutation(count), int(random.integers(3))
        left = order[gone : gone + int(random.integers(4, MOST_FREE + 1))]
        made, free = np.zeros((2, count + 1), dtype=bool)
        made[order[:gone]], free[left] = True, True
        sets = [(*order[:gone], *more) for size in range(most + 1) for more in itertools.combinations(left, size)]
        scores = case.truth(pack(sets))
        truth = -sign * scores if scores.shape[1] == 1 else scores @ subject.pairs.T
        low, high = (end[: len(subject.pairs)] for end in subject.bounds.ends(made, free, most))
        room = 1e-6 * (1 + np.abs(truth))
        assert ((low <= truth + room) & (high >= truth - room))[np.isfinite(scores).all(axis=1)].all()
        tried += len(sets)
    return tried


def search(random: np.random.Generator) -> int:
    """The compiled search rules out no set that reaches what is needed."""
    case = program_case(random)
    if isinstance(case.target, butfor.Pair):
        return 0
    if random.random() < 0.5:
        case = replace(case, space=all_edits(case.fields))
    found = bounding_of(case, (None, int(random.integers(CLASSES)))[random.integers(2)])
    if found is None:
        return 0
    bounding, pairs, every = found
    # Edits of which no two set the same feature.
    chosen = np.zeros((1, len(case.edits)), dtype=bool)
    chosen[0, random.permutation(len(case.edits))[:MOST_FREE]] = True
    order = random.permutation(np.flatnonzero(case.edits.without_conflicts(chosen)[0]))
    sets = subsets(order, range(len(order) + 1))
    truth = dict(zip(map(frozenset, sets), margins(case, sets, pairs, every), strict=True))
    finite = [margin for margin in truth.values() if np.isfinite(margin)]
    if not finite:
        return 0
    tried = 0
    for size in random.permutation(np.unique(np.minimum([1, 2, 3, 5, len(order)], len(order)))).tolist():
        made = order[: int(random.integers(3))]
        below = [truth[frozenset(one)] for one in sets if len(one) <= size + len(made) and set(made) <= set(one)]
        bound = bounding.least_margin(made, np.setdiff1d(order, made), size)
        assert bound <= min(below) + EXACT * (1 + abs(truth[frozenset()]))
        needed = float(np.quantile(finite, random.random() ** 2))
        small = {one: margin for one, margin in truth.items() if len(one) <= size}
        assert not missed(small, sifted(bounding, order, size, needed, int(random.choice([3, 50, 10**6]))), needed)
        tried += len(below) + len(small)
    return tried


def claims(random: np.random.Generator) -> int:
    """What `Exact` claims is true."""
    asked = question(random)
    truths = some(asked, random)
    if not truths:
        return 0
    for truth, result in zip(truths, asked.ask([truth.target for truth in truths], PRUNING), strict=True):
        check_claims(asked, truth, result)
    return len(truths)


def certificates(random: np.random.Generator) -> int:
    """Proofs are confirmed, and what looks like a proof of something false is refused."""
    asked = question(random)
    truths = some(asked, random)
    session = butfor.prepare(
        *(asked.model, asked.data), task=asked.task, goal=asked.goal, space=asked.space, directed=asked.directed,
        node_type=asked.node_type,
    )  # fmt: skip
    tried = 0
    for truth in truths:
        budget = butfor.Budget(evaluations=None, seconds=2)
        proof = session.explain(truth.target, replace(PRUNING, certificate=True), budget=budget).certificate
        problem = session.problem(truth.target)
        if proof is not None:
            tried += 1
            session.check(proof)
            assert proof.limit <= truth.cost + 1e-9
        if truth.tenths is None:
            continue
        for limit in (truth.cost + 0.1, None):
            ids = session.graph_id, session.model_id, session.space_id
            tree = cut(Subject.of(problem, math.inf if limit is None else limit), random)
            false = Certificate(problem.target, limit, listed(problem), tree, str(problem.goal), *ids)
            assert is_refused(session, false)
            tried += 1
    return tried


def cut(subject: Subject, random: np.random.Generator) -> tuple[int, ...]:
    """A whole tree of random branches, whose leaves are said to be bounded wherever sets are left to be tried."""
    tree: list[int] = []
    share = float(random.choice([0.02, 0.2, 0.6]))
    stack: list[tuple[tuple[int, ...], np.ndarray]] = [((), np.arange(len(subject.costs)))]
    while stack:
        made, free = stack.pop()
        if not subject.most(made, free):
            tree.append(TRIED)
        elif random.random() < share or len(tree) > 2000:
            tree.append(BOUNDED)
        else:
            edit = int(random.choice(free))
            tree.append(edit)
            left = free[free != edit]
            stack += [(made, left), ((*made, edit), left)]
    return tuple(tree)


def is_refused(session: butfor.Session, certificate: Certificate) -> bool:
    """Whether the checker finds something wrong with it."""
    try:
        session.check(certificate)
    except Refused:
        return True
    return False


PARTS: dict[str, Callable[[np.random.Generator], int]] = {
    "bounds": bounds, "search": search, "claims": claims, "certificates": certificates,
}  # fmt: skip


# Parts that are also run with the bounds that stacks of GCN layers have.
WITH_GCN = ("claims", "certificates")


def main(parts: list[str], seconds: float, seed: int) -> None:
    """Try to falsify, part by part, until the time is up."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    known = list(registry.FAST_ORACLES)
    most, levels = cases.MOST_SUBSETS, cases.LEVELS
    for part in parts:
        end, number, asked, tried, false = time.monotonic() + seconds, seed, 0, 0, 0
        while time.monotonic() < end:
            registry.FAST_ORACLES[:] = known if number % 3 == 0 and part in WITH_GCN else [program_oracle]
            try:
                count = PARTS[part](np.random.default_rng([number, 7]))
            except Exception as problem:
                false += 1
                print(f"{part}, case {number}: {type(problem).__name__}: {str(problem)[:400]}", flush=True)
                count = 0
            cases.MOST_SUBSETS, cases.LEVELS = most, levels
            cases.subsets.cache_clear()
            asked, tried, number = asked + (count > 0), tried + count, number + 1
        print(f"{part}: {asked:,} cases from {seed}, {tried:,} claims, {false} false", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=120.0, help="for each part")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case")
    options = parser.parse_args()
    main(options.parts, options.seconds, options.seed)
