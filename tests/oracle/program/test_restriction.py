"""A program of the whole graph, of which each target takes its part, says what the model says of edited graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

import butfor
from butfor.oracle import registry
from butfor.oracle.program import oracle as oracles
from butfor.oracle.program.build import WholeProgram, build
from butfor.oracle.program.oracle import ProgramOracle, program_oracle
from butfor.oracle.program.restriction import Restrictable
from butfor.oracle.program.steps import Gather, Reduce, Space, Value
from butfor.oracle.program.trace import Untraceable
from gnns import FAMILIES, LOCAL, quick_ones
from program_cases import EXACT, kind_case
from sampling import split

if TYPE_CHECKING:
    from butfor.oracle.program.program import Program

# Models of which the whole graph's program serves. It is recorded only if the code shows that messages along edges are
# all that reaches a node, so it serves no layers that `predict/structure.py` does not know.
SERVED = (
    "GCN", "GCN, edge_weight", "GraphSAGE, mean", "GraphSAGE, max", "GraphSAGE, sum", "GAT", "GATv2", "GIN",
    "GINE, edge_attr", "GraphConv", "GraphConv, edge_weight", "TransformerConv", "batch norm", "SGConv",
    "SGConv, cached", "APPNP", "APPNP, cached",
)  # fmt: skip


# Of directed graphs fewer nodes have parts: one model of each family.
KINDS = [*((name, False) for name in LOCAL), *((name, True) for name in FAMILIES)]


@pytest.fixture(autouse=True)
def _parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole graph is recorded for the first target already, and GCNs have programs too."""
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])
    monkeypatch.setattr(oracles, "MANY_TARGETS", 1)


def part_of(oracle: object, edits: object) -> Program | None:
    """The program that answers, if it is a part of the whole graph's."""
    program = oracle._program(edits) if isinstance(oracle, ProgramOracle) else None
    return program if program is not None and program.is_part else None


@pytest.mark.parametrize(("name", "directed"), split(KINDS, quick_ones(KINDS[: len(LOCAL)])))
def test_parts_say_what_the_model_says(name: str, directed: bool) -> None:
    seed = 13 * list(LOCAL).index(name) + directed
    parts = 0
    for node in (1, 6):
        case = kind_case(LOCAL[name], seed, directed, node, False)
        if len(case.edits) and part_of(case.problem.oracle, case.edits) is not None:
            assert case.disagreement(case.problem.oracle, seed) < EXACT
            parts += 1
    assert parts or name not in SERVED or directed


def random_data(seed: int, nodes: int = 60, edges: int = 70) -> Data:
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(nodes, (2, edges), generator=generator)
    ends = ends[:, ends[0] < ends[1]].unique(dim=1)
    x = torch.randn(nodes, 5, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


@pytest.mark.parametrize("make", [GCN, GraphSAGE, GIN, GAT], ids=lambda make: make.__name__)
def test_a_part_is_what_the_neighbourhood_alone_gives(make: type) -> None:
    data = random_data(3)
    torch.manual_seed(0)
    model = make(5, 8, 2, 3).double().eval()
    session = butfor.prepare(model, data)
    compared = 0
    for node in range(0, 60, 4):
        problem = session.problem(node)
        if not len(problem.edits):
            continue  # an isolated node
        part, alone = part_of(problem.oracle, problem.edits), build(session.predictor, problem.edits, 10**7)
        assert part is not None
        states = [one.layout.state() for one in (part, alone)]
        outs = []
        for one, state in zip((part, alone), states, strict=True):
            flat, output = one.layout.flat, one.layout.output
            at = flat.start[output] + one.layout.row * flat.width[output]
            outs.append(state.base[at : at + flat.width[output]])
        np.testing.assert_allclose(outs[0], outs[1], atol=1e-12)
        np.testing.assert_array_equal(part.layout.reads, alone.layout.reads)
        compared += 1
    assert compared > 5


def test_a_part_holds_no_more_than_the_neighbourhood() -> None:
    data = random_data(5, nodes=2000, edges=2200)
    torch.manual_seed(0)
    session = butfor.prepare(GraphSAGE(5, 8, 2, 3).double().eval(), data)
    problem = session.problem(int(data.edge_index[0, 0]))
    part = part_of(problem.oracle, problem.edits)
    assert part is not None
    assert part.layout.flat.rows.max() <= 2 * problem.edits.neighbourhood.num_columns + 10


def test_a_whole_graph_that_is_too_large_is_not_recorded() -> None:
    session = butfor.prepare(GraphSAGE(5, 8, 2, 3).double().eval(), random_data(0))
    with pytest.raises(Untraceable, match="too large"):
        WholeProgram.of(session.predictor, "source_to_target", 100)


def test_an_edge_outside_is_refused() -> None:
    nodes = Space(3)
    x = Value(nodes, 1, np.arange(3.0)[:, None])
    reduce = Reduce([x], "sum", np.array([1, 2]), np.array([0, 1]), np.array([0, 1]))
    program = Restrictable(Value(nodes, 1, step=reduce))
    out, row = program.of(1, np.array([0]))
    assert out.rows == 2
    assert row == 1
    with pytest.raises(Untraceable, match="outside"):
        program.of(2, np.array([0]))


def test_rows_of_two_depths_keep_apart() -> None:
    """Two rounds of messages: the first is needed at more rows than the second."""
    nodes = Space(4)
    x = Value(nodes, 1, np.array([[1.0], [2.0], [4.0], [8.0]]))
    receiver, sender = np.array([1, 2, 3]), np.array([0, 1, 2])
    first = Value(nodes, 1, step=Reduce([x], "sum", receiver, sender, np.arange(3)))
    second = Value(nodes, 1, step=Reduce([first], "sum", receiver, sender, np.arange(3)))
    copied = Value(Space(2), 1, step=Gather([second], np.array([2, 3])))
    out, row = Restrictable(copied).of(1, np.arange(3))
    assert row == 0
    assert out.rows == 1
    gather = out.step
    assert isinstance(gather, Gather)
    assert gather.inputs[0].rows == 3  # nodes 1, 2 and 3: node 0 has no part in what node 3 hears twice removed
