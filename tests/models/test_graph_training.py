"""Training a classifier of whole graphs: repeatable, silent, and stopped when nothing gets better."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from butfor.datasets import ba_2motifs
from butfor.errors import GraphError, InputError, ModelError
from butfor.models import fingerprint, trained_graph_classifier
from butfor.models.graph_training import _Packed


def random_graphs(count: int = 12) -> list[Data]:
    generator = torch.Generator().manual_seed(5)
    graphs = []
    for number in range(count):
        nodes = 1 + number  # the first has a single node and no edge
        upper = torch.rand(nodes, nodes, generator=generator).triu(1) > 0.6
        edge_index = (upper | upper.t()).nonzero().t().contiguous()
        x = torch.randn(nodes, 4, generator=generator)
        graphs.append(Data(x=x, edge_index=edge_index, y=torch.tensor([number % 3])))
    return graphs


def test_packed_batches_are_those_of_pyg() -> None:
    graphs = random_graphs()
    for numbers in ([3, 0, 11, 7], [0], [11, 11]):
        batch = Batch.from_data_list([graphs[number] for number in numbers])
        x, edge_index, of = _Packed(graphs).batch(torch.tensor(numbers))
        assert torch.equal(x, batch.x)
        assert torch.equal(edge_index, batch.edge_index)
        assert torch.equal(of, batch.batch)


@pytest.mark.slow
@pytest.mark.parametrize("conv", ["gin", "gcn"])
def test_motifs_are_learnt(conv: str) -> None:
    graphs = ba_2motifs(240)
    model, result = trained_graph_classifier(graphs, seed=1, conv=conv, epochs=40, batch_size=16)
    assert result.test_accuracy > 0.9
    assert not model.training
    assert [len(part) for part in (result.train, result.val, result.test)] == [192, 24, 24]
    assert sorted(result.train + result.val + result.test) == list(range(240))
    right = [int(model(graph.x, graph.edge_index).argmax()) == int(graph.y) for graph in graphs]
    for name in ("train", "val", "test"):
        part = getattr(result, name)
        assert getattr(result, f"{name}_accuracy") == sum(right[number] for number in part) / len(part)
    assert 1 <= result.best_epoch <= result.epochs <= 40


def test_the_seed_decides_and_the_caller_s_random_state_is_kept() -> None:
    graphs, state = random_graphs(30), torch.get_rng_state()
    (one, first), (same, second) = (trained_graph_classifier(graphs, seed=3, epochs=4) for _ in range(2))
    other, third = trained_graph_classifier(graphs, seed=4, epochs=4)
    gcn, fourth = trained_graph_classifier(graphs, seed=3, epochs=4, conv="gcn")
    assert torch.equal(state, torch.get_rng_state())
    assert first == second
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(one) != fingerprint(other)
    assert first.test != third.test
    assert first.test == fourth.test  # the split is of the seed alone
    assert fingerprint(one) != fingerprint(gcn)


def test_training_stops_when_nothing_gets_better() -> None:
    graphs = random_graphs(30)  # random classes: nothing to learn
    hasty, short = trained_graph_classifier(graphs, epochs=500, patience=3)
    patient, long = trained_graph_classifier(graphs, epochs=500, patience=6)
    assert short.epochs == short.best_epoch + 3
    assert long.epochs == long.best_epoch + 6
    assert short.best_epoch == long.best_epoch
    assert fingerprint(hasty) == fingerprint(patient)  # the weights of the best epoch, not of the last


def test_training_is_silent_unless_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    trained_graph_classifier(random_graphs(), progress=True, epochs=2)
    assert capsys.readouterr() == ("", "")


def test_there_are_as_many_classes_as_labels_or_names() -> None:
    assert trained_graph_classifier(random_graphs(), epochs=1)[0].num_classes == 3
    named = random_graphs()
    for graph in named:
        graph.class_names = ["a", "b", "c", "d"]
    assert trained_graph_classifier(named, epochs=1)[0].num_classes == 4


def spoilt(number: int, **changes: object) -> list[Data]:
    graphs = random_graphs()
    for key, value in changes.items():
        graphs[number][key] = value
    return graphs


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (random_graphs()[:9], "there are 9 graphs, but a split into 80, 10 and 10 % needs at least 10"),
        (spoilt(4, x=torch.full((5, 4), torch.nan)), "^graph 4: x of node 0, column 0 is nan"),
        (spoilt(4, x=torch.ones(5, 3)), "x of graph 4 has 3 columns of dtype torch.float32"),
        (spoilt(4, x=torch.ones(5, 4, dtype=torch.long)), "x of graph 4 has 4 columns of dtype torch.int64"),
        (spoilt(4, y=None), "y of graph 4 is None, but"),
        (spoilt(4, y=torch.tensor([-1])), r"y of graph 4 is \[-1\], but training takes one integer class"),
        (spoilt(4, y=torch.zeros(5, dtype=torch.long)), r"y of graph 4 is \[0, 0, 0, 0, 0\], but"),
        (spoilt(4, y=torch.tensor([0.5])), r"y of graph 4 is \[0.5\], but"),
        (spoilt(0, class_names=["a", "b"]), "graph 2 has class 2, but class_names names 2"),
    ],
)
def test_graphs_that_cannot_be_trained_on_are_refused(graphs: list[Data], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        trained_graph_classifier(graphs)


def test_settings_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match="batch_size is 1, but training needs at least 2"):
        trained_graph_classifier(random_graphs(), batch_size=1)
    with pytest.raises(InputError, match="epochs is 0"):
        trained_graph_classifier(random_graphs(), epochs=0)
    with pytest.raises(ModelError, match=r"the training loss is .* in epoch \d+: lower lr \(it is 1e\+30\)"):
        trained_graph_classifier(random_graphs(), lr=1e30, conv="gcn")
