"""Rows of several tables in one, as HGT has them: heads and types one behind the other, counted on from each."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HGTConv, global_mean_pool
from torch_geometric.transforms import ToUndirected

import butfor
from butfor.edits.edits import pack
from butfor.oracle import registry
from butfor.oracle.general import ModelOracle
from butfor.oracle.program.lowering import moves
from butfor.oracle.program.oracle import ProgramOracle
from butfor.session import Session
from sampling import split

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors = dict[Any, Tensor]

BUYS, BACK, KNOWS = ("user", "buys", "item"), ("item", "rev_buys", "user"), ("user", "knows", "user")
RELATIONS = [BUYS, KNOWS, BACK]


def ring(users: int, items: int) -> HeteroData:
    """Users buy two items each, and know the next user."""
    torch.manual_seed(users)
    data, user = HeteroData(), torch.arange(users)
    data["user"].x, data["item"].x = torch.randn(users, 3), torch.randn(items, 4)
    data[BUYS].edge_index = torch.cat([torch.stack([user, (user + way) % items]) for way in (0, 1)], dim=1)
    data[KNOWS].edge_index = torch.stack([user, (user + 1) % users])
    return ToUndirected()(data)


class Transformer(nn.Module):
    """HGT, twice, with weights of its own for every relation."""

    def __init__(self, heads: int, relations: list[tuple[str, str, str]] = RELATIONS) -> None:
        super().__init__()
        torch.manual_seed(heads)
        metadata = ["user", "item"], relations
        self.first = HGTConv({"user": 3, "item": 4}, 6, metadata, heads=heads)
        self.second = HGTConv(6, 6, metadata, heads=heads)
        for layer in (self.first, self.second):
            for weights in (layer.p_rel, layer.skip):
                for parameter in weights.values():
                    nn.init.normal_(parameter)
        self.head = nn.Linear(6, 3)
        nn.init.normal_(self.head.weight, std=5.0)

    def encode(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensors:
        return self.second(self.first(x_dict, edge_index_dict), edge_index_dict)

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        return self.head(self.encode(x_dict, edge_index_dict)["user"])


class Links(Transformer):
    """Whether a user buys an item."""

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors, edge_label_index: Tensor) -> Tensor:
        z = self.encode(x_dict, edge_index_dict)
        return self.head(z["user"][edge_label_index[0]] * z["item"][edge_label_index[1]])


class Graphs(Transformer):
    """A class of the whole graph."""

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors, batch_dict: Tensors) -> Tensor:
        z = self.encode(x_dict, edge_index_dict)
        return self.head(sum(global_mean_pool(z[kind], batch_dict[kind]) for kind in z))


TASKS = {
    "node": (Transformer, 2, "user"),
    "link": (Links, butfor.Pair(2, 1), ("user", "item")),
    "graph": (Graphs, None, None),
}
SPACES = {
    "delete": butfor.EditSpace(),
    "add": butfor.EditSpace(delete=False, add=butfor.Within(hops=2, most=6)),
    "change": butfor.EditSpace(delete=False, features=butfor.Features(values=[-2.0], columns=[0, 1])),
    "all": butfor.EditSpace(
        add=butfor.Within(hops=2, most=4), features=butfor.Features(values=[2.0], columns=[3], node_type="item")
    ),
}


def asked(task: str, space: str, heads: int, users: int, items: int) -> Any:
    """A problem of that kind."""
    model, target, node_type = TASKS[task]
    session = Session.of(model(heads).eval(), ring(users, items), task=task, node_type=node_type, space=SPACES[space])
    return session.problem(target)


def disagreement(problem: Any) -> float:
    """How far program and model are apart on edited graphs."""
    edits, general = problem.edits, ModelOracle(problem.predictor)
    program = ProgramOracle(general)
    assert program.refusal(edits) == ""
    random = np.random.default_rng(0)
    sizes = [1, 1, 2, 3, 5, len(edits)]
    sets = pack([np.sort(random.choice(len(edits), size=min(size, len(edits)), replace=False)) for size in sizes])
    mine, truth = (oracle.logits([(edits, sets)])[0].double().numpy() for oracle in (program, general))
    assert np.ptp(truth, axis=0).max() > 1e-3
    return float(np.abs(mine - truth).max() / (1 + np.abs(truth).max()))


# Equally many of both types, more of one, fewer nodes of a type than heads.
SIZES = ((6, 6), (7, 4), (5, 2))
CASES = [(task, space, heads, *sizes) for task in TASKS for space in SPACES for heads in (1, 2, 3) for sizes in SIZES]


@pytest.mark.parametrize(("task", "space", "heads", "users", "items"), split(CASES[::5], CASES[::17]))
def test_the_program_of_hgt_says_what_the_model_says(task: str, space: str, heads: int, users: int, items: int) -> None:
    assert disagreement(asked(task, space, heads, users, items)) < 1e-5


def test_gradients_are_slopes() -> None:
    problem = asked("node", "delete", 2, 6, 6)
    relaxation = ProgramOracle(ModelOracle(problem.predictor)).relax([problem.edits])
    assert relaxation is not None
    weights = 0.2 + 0.6 * torch.rand(len(problem.edits), dtype=torch.float64)
    (slope,) = torch.autograd.grad(relaxation.logits(weights.requires_grad_()).sum(), weights)
    for edit in range(len(weights)):
        step = torch.zeros_like(weights)
        step[edit] = 1e-5
        ends = [float(relaxation.logits(weights.detach() + sign * step).sum()) for sign in (1, -1)]
        assert float(slope[edit]) == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5, rel=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_exact_search_gives_the_same_sets(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, target, node_type = TASKS[task]
    space, method = butfor.EditSpace(max_edits=2), butfor.Exact(all_smallest=True, threads=1)

    def explained() -> butfor.Counterfactual:
        return butfor.explain(model(2).eval(), ring(6, 6), target, method, node_type=node_type, space=space)

    mine = explained()
    monkeypatch.setattr(registry, "FAST_ORACLES", [])
    truth = explained()
    assert (mine.status, mine.lower_bound, mine.edits) == (truth.status, truth.lower_bound, truth.edits)
    assert {*mine.alternatives} == {*truth.alternatives}


def test_heads_in_the_wrong_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    made = moves.Pick

    def turned(values: list[Any], which: np.ndarray, columns: np.ndarray) -> Any:
        return made(values, len(values) - 1 - which, columns)

    problem = asked("node", "delete", 2, 6, 6)
    monkeypatch.setattr(moves, "Pick", turned)
    found = ProgramOracle(ModelOracle(problem.predictor)).refusal(problem.edits)
    assert found == "edited graphs on which program and model differ"


# How far it sees.

SIZE, TARGET = 40, 20


def is_shown_local(model: nn.Module, hops: int, users: int = SIZE, items: int = SIZE) -> bool:
    """Whether the program shows that the neighbourhood of a user is enough."""
    session = Session.of(model.eval(), ring(users, items), node_type="user")
    edits = session.rules.edits(session.graph.neighbourhood(TARGET, hops))
    return ProgramOracle(ModelOracle(session.predictor)).proves_locality(edits)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("items", [SIZE, SIZE - 9])
def test_hgt_is_local(heads: int, items: int) -> None:
    model = Transformer(heads)
    assert is_shown_local(model, 2, items=items)
    assert not is_shown_local(model, 1, items=items)


def test_relations_in_another_order_than_those_of_the_layer() -> None:
    """PyG then takes one relation's matrix for another's; a slice of each head has no rows."""
    model = Transformer(2, [KNOWS, BACK, BUYS])
    problem = Session.of(model.eval(), ring(6, 6), node_type="user").problem(2)
    assert disagreement(problem) < 1e-5


class InOne(nn.Module):
    """All types in one table; ``starts`` says where users and items begin, and ``cut`` what is cut out in the end."""

    def __init__(self, starts: Callable[[Tensor, Tensor], Any], cut: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.users, self.items, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.starts, self.cut = starts, cut

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        user, item = self.users(x_dict["user"]), self.items(x_dict["item"])
        x = torch.cat([user, item])
        first = dict(zip(("user", "item"), self.starts(user, item), strict=True))
        ends = [edge_index_dict[r] + torch.tensor([[first[r[0]]], [first[r[2]]]]) for r in RELATIONS]
        source, target = torch.cat(ends, dim=1)
        x = x + torch.zeros_like(x).index_add(0, target, x[source].tanh())
        start, end = self.cut(user, item)
        return self.head(user + x[start:end])


def in_turn(user: Tensor, _: Tensor) -> tuple[int, int]:
    return 0, len(user)


def all_users(user: Tensor, _: Tensor) -> tuple[int, int]:
    return 0, len(user)


@cache
def nearby(hops: int) -> int:
    """How many users there are in the target's neighbourhood; known before a model that asks is recorded."""
    graph = Session.of(InOne(in_turn, all_users), ring(SIZE, SIZE), node_type="user").graph
    return int((graph.neighbourhood(TARGET, hops).nodes < SIZE).sum())


HOPS = 1


def test_a_model_by_hand_is_local() -> None:
    assert is_shown_local(InOne(in_turn, all_users), HOPS)


WRONG: dict[str, tuple[Any, Any]] = {
    "items counted as users": (lambda user, item: (0, 0), all_users),
    "items among what is cut out": (in_turn, lambda user, item: (len(item), len(item) + len(user))),
    "one row too far": (lambda user, item: (0, len(user) - 1), all_users),
    "right on the neighbourhood alone": (lambda user, item: (0, min(len(user), nearby(HOPS))), all_users),
    "cut right on the neighbourhood alone": (
        in_turn,
        lambda user, item: (0, len(user)) if len(user) == nearby(HOPS) else (1, len(user) + 1),
    ),
}


@pytest.fixture
def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are not compared with the model, which shows on copies side by side what is wrong here."""
    monkeypatch.setattr(ProgramOracle, "_is_right", lambda *_: True)


@pytest.mark.usefixtures("_unguarded")
@pytest.mark.parametrize("wrong", WRONG)
def test_rows_that_stand_elsewhere_are_not_local(wrong: str) -> None:
    assert nearby(HOPS) < SIZE
    assert not is_shown_local(InOne(*WRONG[wrong]), HOPS)


class ByPlace(InOne):
    """Edges weighed by a table that has a row for each: by its relation, or by where it stands."""

    def __init__(self, by_relation: bool) -> None:
        super().__init__(in_turn, all_users)
        self.by_relation = by_relation

    def forward(self, x_dict: Tensors, edge_index_dict: Tensors) -> Tensor:
        user, item = self.users(x_dict["user"]), self.items(x_dict["item"])
        x, first = torch.cat([user, item]), {"user": 0, "item": len(user)}
        ends = [edge_index_dict[r] + torch.tensor([[first[r[0]]], [first[r[2]]]]) for r in RELATIONS]
        table = torch.cat([torch.full((one.size(1), 1), 1.0 + number) for number, one in enumerate(ends)])
        if not self.by_relation:
            table = torch.linspace(0, 1, len(table))[:, None]
        source, target = torch.cat(ends, dim=1)
        return self.head(torch.zeros_like(x).index_add(0, target, x[source] * table)[: len(user)])


@pytest.mark.usefixtures("_unguarded")
def test_weights_of_relations_are_local_and_those_of_places_are_not() -> None:
    assert is_shown_local(ByPlace(by_relation=True), 1)
    assert not is_shown_local(ByPlace(by_relation=False), 1)
