"""The program of a model says what the model says on edited graphs, for every kind of layer, edit and task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.nn import GraphSAGE, SAGEConv, global_add_pool

import butfor
from butfor.edits.edits import pack
from butfor.oracle.general import ModelOracle
from butfor.oracle.program import layout
from butfor.oracle.program.oracle import ProgramOracle
from butfor.session import Session
from butfor.testing import random_problem
from gnns import GLOBAL, LOCAL, one_way, ring

if TYPE_CHECKING:
    from butfor.edits.edits import Edits

# Torch says once that its sparse tensors are new and that nobody checks them; GraphUNet makes some.
SPARSE = pytest.mark.filterwarnings("ignore:Sparse")

TARGETS = (0, 5, 20, 31)


def everything(fields: tuple[str, ...]) -> butfor.EditSpace:
    """Deletions, additions and changed features."""
    carries = {"edge_weight": 0.7, "edge_attr": [0.5, 0.5], "edge_type": 0}
    return butfor.EditSpace(
        add=butfor.Within(hops=2, most=10),
        features=butfor.Features(values=[0.0, 1.0], within=1, columns=[0, 2]),
        carries={name: carries[name] for name in fields if name in carries},
    )


def random_sets(edits: Edits, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    chosen = [random.random((1, len(edits))) < share for share in (0.0, 0.05, 0.1, 0.3, 0.6, 1.0)]
    return pack([np.flatnonzero(edits.without_conflicts(row)[0]) for row in chosen])


def values(oracle: ProgramOracle, edits: Edits, sets: np.ndarray) -> np.ndarray:
    return oracle._values(edits, sets, np.full(len(sets), -1), np.arange(len(sets) + 1))


def difference(oracle: ProgramOracle, edits: Edits, sets: np.ndarray) -> float:
    """How far program and model are apart, both on the neighbourhood."""
    truth = oracle.general.logits([(edits, sets)])[0].double().numpy()
    return float(np.abs(values(oracle, edits, sets) - truth).max())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "directed"), one_way(first=False))
def test_programs_say_what_models_say(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], ring(directed)
    model = kind.make(data)
    for space in (butfor.EditSpace(), everything(kind.fields)):
        session = Session.of(model, data, space=space)
        oracle = ProgramOracle(ModelOracle(session.predictor))
        asked = 0
        for target in TARGETS:
            edits = session.problem(target).edits
            if oracle.refusal(edits):
                # Where no edge leads to the target its prediction follows from its features alone.
                assert "no edit can change" in oracle.refusal(edits)
                continue
            asked += 1
            sets = random_sets(edits, target)
            assert difference(oracle, edits, sets) < 1e-5
            # From a prefix, only what a further edit changes is computed: it must be what all of it would be.
            prefix = sets[2][sets[2] >= 0]
            further = np.setdiff1d(np.arange(len(edits)), prefix)[:8]
            further = further[edits.permits(pack([[*prefix, edit] for edit in further]))]
            extended = oracle._values(edits, pack([prefix]), further, np.array([0, len(further)]))
            whole = values(oracle, edits, pack([[*prefix, edit] for edit in further]))
            np.testing.assert_allclose(extended, whole, atol=1e-9)
        assert asked >= 2


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_reads_all_nodes_is_no_program_of_a_node(name: str) -> None:
    data = ring(False)
    session = Session.of(GLOBAL[name].make(data), data)
    assert ProgramOracle(ModelOracle(session.predictor)).refusal(session.problem(5).edits)


class Pooled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = SAGEConv(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return self.last(global_add_pool(self.first(x, edge_index).relu(), batch))


class Links(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = SAGEConv(4, 8)

    def encode(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.layer(x, edge_index).relu()

    def decode(self, z: torch.Tensor, edge_label_index: torch.Tensor) -> torch.Tensor:
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def test_whole_graphs_and_links() -> None:
    _, data = random_problem(1, nodes=10)
    goal = butfor.Goal(threshold=0.1)
    for session, target in (
        (Session.of(Pooled(), data, task="graph"), None),
        (Session.of(Links(), data, task="link", goal=goal), butfor.Pair(0, 3)),
    ):
        edits = session.problem(target).edits
        oracle = ProgramOracle(ModelOracle(session.predictor))
        assert not oracle.refusal(edits)
        assert difference(oracle, edits, random_sets(edits, 0)) < 1e-5


@pytest.mark.slow
def test_answers_are_those_of_the_general_oracle() -> None:
    _, data = random_problem(4, nodes=14)
    torch.manual_seed(0)
    session = Session.of(GraphSAGE(4, 8, 2, 3).eval(), data)
    assert isinstance(session.problem(0).oracle, ProgramOracle)
    for node in range(0, data.num_nodes, 2):
        problem = session.problem(node)
        general = type(problem)(**{**vars(problem), "oracle": problem.oracle.general})
        proposals = [
            butfor.Exact(all_smallest=True).solve(one.metered(butfor.Budget(None))) for one in (problem, general)
        ]
        assert proposals[0].candidates[:1] == proposals[1].candidates[:1]
        assert {*proposals[0].alternatives} == {*proposals[1].alternatives}
        assert proposals[0].lower_bound == proposals[1].lower_bound


def test_a_broken_program_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = random_problem(4, nodes=14)
    torch.manual_seed(0)
    session = Session.of(GraphSAGE(4, 8, 2, 3).eval(), data)
    general, edits = ModelOracle(session.predictor), session.problem(0).edits
    assert not ProgramOracle(general).refusal(edits)
    put_lists = layout._Tables.put_lists

    def without_edges(self, keys, size):
        """The entries of edges are forgotten, so that no deletion is noticed."""
        places = put_lists(self, keys, size)
        if size == edits.all_ends.shape[1]:
            self.parts[-2][:] = 0
        return places

    monkeypatch.setattr(layout._Tables, "put_lists", without_edges)
    assert "differ" in ProgramOracle(general).refusal(edits)
