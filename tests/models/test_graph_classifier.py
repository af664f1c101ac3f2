"""The classifier of whole graphs: what it computes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data

from butfor.errors import ModelError
from butfor.models import GraphClassifier
from butfor.testing import random_problem

every_model = pytest.mark.parametrize(
    ("conv", "readout"), [*itertools.product(("gin", "gcn"), ("sum", "mean", "max"))], ids="-".join
)


def small_graphs() -> list[Data]:
    """The first has a single node and no edge."""
    one = Data(x=torch.ones(1, 4), edge_index=torch.zeros(2, 0, dtype=torch.long))
    return [one, *(random_problem(seed, nodes=2 + seed, density=0.4)[1] for seed in range(11))]


def model_of(conv: str, readout: str = "max") -> GraphClassifier:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GraphClassifier(4, 3, hidden=8, layers=2, conv=conv, readout=readout)
        for norm in model.norms:  # fresh ones do nothing
            for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
                torch.nn.init.uniform_(tensor, 0.5, 1.5)
        return model.eval()


@every_model
def test_a_batch_is_classified_as_graph_by_graph(conv: str, readout: str) -> None:
    model, graphs = model_of(conv, readout), small_graphs()
    batch = Batch.from_data_list(graphs)
    together = model(batch.x, batch.edge_index, batch.batch)
    assert together.shape == (12, 3)
    alone = torch.cat([model(graph.x, graph.edge_index) for graph in graphs])
    torch.testing.assert_close(together, alone)


@every_model
def test_the_order_of_the_nodes_does_not_matter(conv: str, readout: str) -> None:
    model, graph = model_of(conv, readout), small_graphs()[-1]
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(1))
    x = torch.empty_like(graph.x)
    x[order] = graph.x
    torch.testing.assert_close(model(x, order[graph.edge_index]), model(graph.x, graph.edge_index))


def test_readouts_differ() -> None:
    graph = small_graphs()[-1]
    outputs = [model_of("gin", readout)(graph.x, graph.edge_index) for readout in ("sum", "mean", "max")]
    assert not any(torch.allclose(one, other) for one, other in itertools.combinations(outputs, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 0}, "num_classes is 0, but a GraphClassifier needs at least 1"),
        ({"layers": 0}, "layers is 0"),
        ({"conv": "gat"}, "conv is 'gat', but a GraphClassifier knows gin, gcn"),
        ({"readout": "min"}, "readout is 'min', but a GraphClassifier knows sum, mean, max"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        GraphClassifier(**{"num_features": 4, "num_classes": 3, **arguments})


def test_wrong_features_are_refused() -> None:
    with pytest.raises(ModelError, match="takes 4 features per node, but x has 7"):
        model_of("gin")(torch.ones(3, 7), torch.zeros(2, 0, dtype=torch.long))
