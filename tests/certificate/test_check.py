"""Certificates that hold are confirmed; whatever is changed in one, it is refused with a sentence."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, GraphSAGE, global_add_pool

import butfor
from butfor.certificate import write
from butfor.certificate.check import Refused
from butfor.certificate.record import BOUNDED, TRIED, Certificate
from butfor.certificate.write import Unwritten, written
from sampling import split
from truth import Case, solve

MODELS = {
    "GCN": lambda: GCN(4, 6, 2, 3),
    "GraphSAGE": lambda: GraphSAGE(4, 6, 2, 3),
    "GraphSAGE, max": lambda: GraphSAGE(4, 6, 2, 3, aggr="max"),
    "GIN": lambda: GIN(4, 6, 2, 3),
}


def random_graph(seed: int, nodes: int = 8, edges: int = 11) -> Data:
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    ends = pairs[torch.randperm(len(pairs), generator=generator)[:edges]].T
    return Data(x=torch.randn(nodes, 4, generator=generator), edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def prepared(name: str, seed: int = 0) -> butfor.Session:
    torch.manual_seed(seed)
    return butfor.prepare(MODELS[name]().eval(), random_graph(seed))


def certified(session: butfor.Session, target: int) -> butfor.Counterfactual:
    """With few seconds for a proof: where nothing can be bounded, every set would have to be tried."""
    method = butfor.Exact(certificate=True, threads=1)
    return session.explain(target, method, budget=butfor.Budget(evaluations=None, seconds=5))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_proof_is_confirmed_and_true(name: str) -> None:
    statuses = set()
    for seed in range(2):
        session = prepared(name, seed)
        truths = solve(Case(name, session.predictor.model, session.graph.data, classes=3, directed=False))
        for node in range(0, 8, 3):
            result = certified(session, node)
            statuses.add(result.status)
            if result.certificate is None:
                assert "There is no certificate" in result.note
                continue
            checked = session.check(result.certificate)
            assert checked.tried + checked.bounded
            cost = truths[node].cost
            assert result.certificate.limit == cost
            assert result.size == (None if cost == math.inf else cost)
    assert butfor.Status.OPTIMAL in statuses


@pytest.fixture(scope="module")
def proof() -> tuple[butfor.Session, Certificate]:
    """One with branches, sets that were tried, and something bounded."""
    for seed in range(40):
        session = prepared("GraphSAGE", seed)
        for node in range(8):
            result = certified(session, node)
            found = result.certificate
            if found is not None and (result.size or 0) > 1 and BOUNDED in found.tree and TRIED in found.tree:
                return session, found
    raise AssertionError("no such proof")


def test_it_is_the_same_after_a_file(proof: tuple[butfor.Session, Certificate]) -> None:
    session, certificate = proof
    again = Certificate.from_plain(json.loads(certificate.to_json()))
    assert again == certificate
    assert session.check(again).tried


def changed(certificate: Certificate, seed: int) -> Certificate:
    """The certificate with one thing changed."""
    random = np.random.default_rng(seed)
    tree = list(certificate.tree)
    at = int(random.integers(len(tree)))
    kind = seed % 8
    if kind == 0:
        del tree[at]
    elif kind == 1:
        tree.insert(at, TRIED)
    elif kind == 2:
        tree[at] = next(node for node in (TRIED, BOUNDED, 0) if node != tree[at])
    elif kind == 3:
        # What was tried is said to be bounded, and nothing else is asked.
        return replace(certificate, tree=(BOUNDED,), below=None)
    elif kind == 4:
        return replace(certificate, below=certificate.limit + 1 + int(random.integers(3)))
    elif kind == 5:
        name = ("graph_id", "model_id", "space_id", "goal")[int(random.integers(4))]
        return replace(certificate, **{name: "another"})
    elif kind == 6:
        edits = list(certificate.edits)
        del edits[int(random.integers(len(edits)))]
        return replace(certificate, edits=tuple(edits))
    else:
        return replace(certificate, target=((certificate.target[0] + 1) % 8,))
    return replace(certificate, tree=tuple(tree))


def made_at(tree: tuple[int, ...], leaf: int) -> tuple[int, ...]:
    """The edits that are made on the way to a leaf."""
    stack: list[tuple[int, ...]] = [()]
    for node in tree[:leaf]:
        made = stack.pop()
        stack += [made, (*made, node)] if node >= 0 else []
    return stack[-1]


def is_proof_by_a_bound(session: butfor.Session, certificate: Certificate, broken: Certificate) -> bool:
    """Whether a proof is left: of another target, or with a set bounded that was tried, if the model is clear about it.

    That it holds of the other target is seen by trying all sets.
    """
    if broken == replace(certificate, target=broken.target):
        problem = session.problem(*broken.target)
        sizes = range(1, math.ceil(certificate.limit))
        sets = [some for size in sizes for some in itertools.combinations(range(len(problem.edits)), size)]
        return not replace(problem, oracle=problem.oracle.general).ask(sets).reached.any()
    changes = [at for at, (one, other) in enumerate(zip(certificate.tree, broken.tree, strict=False)) if one != other]
    if broken != replace(certificate, tree=broken.tree) or len(broken.tree) != len(certificate.tree):
        return False
    if len(changes) != 1 or (certificate.tree[changes[0]], broken.tree[changes[0]]) != (TRIED, BOUNDED):
        return False
    # Where sets are tried there is only one left.
    problem = session.problem(*certificate.target)
    answer = replace(problem, oracle=problem.oracle.general).ask([made_at(certificate.tree, changes[0])])
    return bool(answer.margins[0] > 1e-3)


@pytest.mark.parametrize("seed", split(range(200), range(40)))
def test_a_changed_one_is_refused(proof: tuple[butfor.Session, Certificate], seed: int) -> None:
    """Unless it still is a proof, which a set that is bounded instead of tried makes of it."""
    session, certificate = proof
    broken = changed(certificate, seed)
    assert broken != certificate
    problem = refusal(session, broken)
    assert "\n" not in problem
    assert (problem == "") == is_proof_by_a_bound(session, certificate, broken)


def test_what_is_bounded_hides_no_answer(proof: tuple[butfor.Session, Certificate]) -> None:
    """However a tree is cut into branches that are said to be bounded: one of them has the answer, and is found."""
    session, certificate = proof
    random = np.random.default_rng(0)
    count = len(certificate.edits)
    for _ in range(20):
        decided = random.permutation(count)[: random.integers(count + 1)].tolist()
        tree = (*(node for edit in decided for node in (edit, BOUNDED)), BOUNDED)
        assert "is said to be bounded and is not" in refusal(session, replace(certificate, below=None, tree=tree))
    # The same with every single set a leaf of its own.
    tree = [BOUNDED]
    for edit in range(count):
        tree = [edit, *tree, *tree]
    assert "is said to be bounded and is not" in refusal(session, replace(certificate, below=None, tree=tuple(tree)))


def refusal(session: butfor.Session, certificate: Certificate) -> str:
    """What is wrong with a certificate; empty where nothing is."""
    try:
        session.check(certificate)
    except Refused as problem:
        return str(problem)
    return ""


def test_another_graph_is_refused(proof: tuple[butfor.Session, Certificate]) -> None:
    session, certificate = proof
    data = session.graph.data.clone()
    data.x = data.x + 1
    other = butfor.prepare(session.predictor.model, data)
    with pytest.raises(Refused, match="another graph"):
        other.check(certificate)


def test_a_set_that_reaches_the_goal_is_noticed() -> None:
    """A tree that tries everything below a cost at which there is an answer."""
    results = ((session, certified(session, node)) for session in map(prepared, MODELS) for node in range(8))
    session, result = next((session, one) for session, one in results if one.size == 1)
    problem = session.problem(result.target)
    tree = [node for edit in range(len(problem.edits)) for node in (edit, TRIED)] + [TRIED]
    assert result.certificate is not None
    claim = replace(result.certificate, below=2.0, tree=tuple(tree))
    with pytest.raises(Refused, match="reaches the goal"):
        session.check(claim)


def test_costs_and_a_wanted_class() -> None:
    torch.manual_seed(3)
    data = random_graph(3)
    model = GraphSAGE(4, 6, 2, 3).eval()
    costs = torch.linspace(0.5, 2, data.num_edges // 2).repeat(2)
    confirmed = 0
    for wanted in range(3):
        session = butfor.prepare(model, data, goal=butfor.Goal(wanted=wanted), space=butfor.EditSpace(costs=costs))
        for node in range(4):
            result = certified(session, node)
            if result.certificate is not None:
                session.check(result.certificate)
                confirmed += 1
                claimed = math.inf if result.lower_bound is None else result.lower_bound
                assert result.certificate.limit == claimed
    assert confirmed > 4


SPACES = {
    "additions": butfor.EditSpace(add=butfor.Within(2, most=8)),
    "features": butfor.EditSpace(features=butfor.Features(values=[0.0, 1.0], within=0)),
    "connected": butfor.EditSpace(keep_connected=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
def test_other_edits_are_certified_too(space: str) -> None:
    """Features only by sets that were tried; and what is too much is refused."""
    confirmed = wrong = bounded = 0
    for seed in range(2):
        torch.manual_seed(seed)
        session = butfor.prepare(GraphSAGE(4, 6, 2, 3).eval(), random_graph(seed), space=SPACES[space])
        for node in range(0, 8, 2):
            result = certified(session, node)
            if result.certificate is None:
                continue
            confirmed += 1
            bounded += session.check(result.certificate).bounded
            if result.size is not None:
                wrong += 1
                further = replace(result.certificate, below=result.cost + 1)
                assert refusal(session, further)
                assert refusal(session, replace(further, tree=(BOUNDED,)))
    assert confirmed >= 6
    assert wrong >= 2
    assert bool(bounded) == (space != "features")


class Waves(torch.nn.Module):
    """Computes a function that the checker does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = GraphSAGE(4, 6, 2, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.inner(x, edge_index).cos()


class Sorted(Waves):
    """Cannot be traced."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.inner(x, edge_index).sort(dim=-1).values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "why"), [(Waves, "computes a function"), (Sorted, "cannot be bounded")], ids=["function", "trace"]
)
def test_what_the_checker_cannot_follow_is_tried(model: type[Waves], why: str) -> None:
    torch.manual_seed(0)
    session = butfor.prepare(model().eval(), random_graph(0, nodes=6, edges=7))
    assert why in refusal_of_bounds(session)
    tried = 0
    for node in range(6):
        certificate = certified(session, node).certificate
        if certificate is not None:
            checked = session.check(certificate)
            assert not checked.bounded
            tried += checked.tried
    assert tried >= 8


def refusal_of_bounds(session: butfor.Session) -> str:
    """What is said of a proof that bounds everything at once."""
    certificate = next(
        one
        for one in (certified(session, node).certificate for node in range(session.graph.num_nodes))
        if one is not None
    )
    return refusal(session, replace(certificate, tree=(BOUNDED,)))


def test_a_proof_that_is_too_long_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    session = butfor.prepare(Sorted().eval(), random_graph(0))
    monkeypatch.setattr(write, "MOST_NODES", 3)
    with pytest.raises(Unwritten, match="too long to be written down, because the model's scores cannot be bounded"):
        written(session.problem(0), 3.0)


class Molecule(Waves):
    """The class of a whole graph."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return global_add_pool(self.inner(x, edge_index), batch)


class Link(Waves):
    """A score of two nodes."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_label_index: torch.Tensor) -> torch.Tensor:
        first, second = self.inner(x, edge_index)[edge_label_index]
        return (first * second).sum(-1)


@pytest.mark.slow
def test_whole_graphs_and_links() -> None:
    confirmed = 0
    for seed in range(4):
        torch.manual_seed(seed)
        for model, task, target in ((Molecule(), "graph", None), (Link(), "link", butfor.Pair(0, 5))):
            session = butfor.prepare(model.eval(), random_graph(seed), task=task, goal=link_goal(task))
            result = session.explain(target, butfor.Exact(certificate=True, threads=1))
            if result.certificate is not None:
                session.check(result.certificate)
                confirmed += 1
                assert refusal(session, replace(result.certificate, tree=result.certificate.tree[1:]))
    assert confirmed >= 4


def link_goal(task: str) -> butfor.Goal | None:
    return butfor.Goal(threshold=0.0) if task == "link" else None
