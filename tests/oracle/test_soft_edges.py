"""Soft weights of 0 and 1 are deletion and no deletion, for every layer of the table, and gradients are right."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, degree, softmax

from butfor.oracle.soft_edges import soft_edges
from butfor.predict.preserved import preserved
from soft_layers import LAYERS, NODES, WIDTH, make, multigraph

FAITHFUL = [name for name, layer in LAYERS.items() if layer.faithful]

UNFAITHFUL = [name for name, layer in LAYERS.items() if not layer.faithful]

SMOOTH = [name for name in FAITHFUL if LAYERS[name].smooth]


def soft(model: nn.Module, x: Tensor, edge_index: Tensor, weights: Tensor, **fields: Tensor) -> Tensor:
    with preserved(model), soft_edges(model, edge_index, weights):
        return model(x, edge_index, **fields)


def read(out: Tensor) -> Tensor:
    """One number to take the gradient of, in which every output counts differently."""
    return (out * torch.linspace(-1, 1.1, out.numel(), dtype=out.dtype).view_as(out)).sum()


def masks(edge_index: Tensor, link: Tensor) -> list[Tensor]:
    """All kept, some kept, one node cut off, none kept; a self-loop stays and links go together."""
    random = torch.Generator().manual_seed(1)
    links = int(link.max()) + 1
    kept = [torch.rand(links, generator=random) < chance for chance in (1.1, 0.8, 0.4, -1)]
    cut = torch.ones(links, dtype=torch.bool)
    cut[link[(edge_index == 3).any(0)]] = False
    return [mask[link] | (edge_index[0] == edge_index[1]) for mask in (*kept, cut)]


def compare(name: str, directed: bool, number: int | None = None) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each mask: the weights, the output with them, and the output after true deletion."""
    model = make(name)
    x, edge_index, link, fields = multigraph(directed)
    fields = {field: fields[field] for field in LAYERS[name].fields}
    found = []
    for mask in masks(edge_index, link)[:number]:
        with preserved(model):
            hard = model(x, edge_index[:, mask], **{field: value[mask] for field, value in fields.items()})
        weights = mask.double().requires_grad_()
        found.append((weights, soft(model, x, edge_index, weights, **fields), hard))
    return found


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", FAITHFUL)
def test_weights_of_zero_and_one_are_deletion(name, directed):
    for weights, out, hard in compare(name, directed):
        assert hard.isfinite().all()
        assert torch.allclose(out, hard, rtol=0, atol=1e-6)
        (gradient,) = torch.autograd.grad(read(out), weights)
        assert gradient.isfinite().all()
        assert gradient.abs().max() < 1e6


@pytest.mark.parametrize("name", UNFAITHFUL)
def test_what_is_not_followed_is_known(name):
    # Two masks only: PyG's median fails by itself where the first nodes have no edges.
    (_, out, hard), (_, some, without) = compare(name, directed=False, number=2)
    assert torch.allclose(out, hard)
    assert not torch.allclose(some, without, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["GCN weighted", "Cheb weighted", "TAG", "LE", "GraphConv weighted"])
def test_between_zero_and_one_it_is_what_edge_weights_do(name):
    model = make(name)
    x, edge_index, link, fields = multigraph(directed=False)
    own = fields["edge_weight"]
    weights = torch.rand(int(link.max()) + 1, dtype=torch.float64)[link].masked_fill(edge_index[0] == edge_index[1], 1)
    given = model(x, edge_index, edge_weight=own * weights)
    assert torch.allclose(soft(model, x, edge_index, weights, edge_weight=own), given)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_finite_differences(name):
    model = make(name)
    x, edge_index, link, fields = multigraph(directed=False)
    fields = {field: fields[field] for field in LAYERS[name].fields}
    loop = edge_index[0] == edge_index[1]
    random = torch.Generator().manual_seed(5)
    at = torch.rand(int(link.max()) + 1, generator=random, dtype=torch.float64) * 0.5 + 0.3

    def value(links: Tensor) -> Tensor:
        return read(soft(model, x, edge_index, links[link].masked_fill(loop, 1.0), **fields))

    (gradient,) = torch.autograd.grad(value(at.requires_grad_()), at)
    with torch.no_grad():
        for place in range(0, len(at), 8):
            step = torch.zeros_like(at)
            step[place] = 1e-6
            slope = (value(at + step) - value(at - step)) / 2e-6
            assert torch.isclose(gradient[place], slope, rtol=1e-4, atol=1e-6), place


def snapshot(model: nn.Module) -> list[Any]:
    """Everything that a run could leave behind."""
    seen: list[Any] = [sorted(vars(module)) for module in model.modules()]
    seen += [dict(value) for module in model.modules() for name, value in vars(module).items() if "hooks" in name]
    seen += [parameter.requires_grad for parameter in model.parameters()]
    spaces = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    spaces |= {name for name in sys.modules if name.startswith(("torch_geometric.nn", "torch_geometric.utils"))}
    functions = [(space, dict(vars(sys.modules[space]))) for space in sorted(spaces)]
    seen += [(space, {key: id(value) for key, value in held.items() if callable(value)}) for space, held in functions]
    return seen


def fail(*_: Any) -> None:
    raise KeyError


@pytest.mark.parametrize("name", ["GCN cached", "GAT edge_attr", "Transformer", "PNA", "own attention", "SAGE max"])
def test_model_is_as_found(name):
    model = make(name)
    x, edge_index, _, fields = multigraph(directed=False)
    fields = {field: fields[field] for field in LAYERS[name].fields}
    weights = torch.rand(edge_index.size(1), dtype=torch.float64)
    before, plain = snapshot(model), model(x, edge_index, **fields)
    with soft_edges(model, edge_index, weights, counted=weights):
        assert not torch.allclose(soft(model, x, edge_index, weights, **fields), plain)
    assert snapshot(model) == before
    with pytest.raises(KeyError), soft_edges(model, edge_index, weights, counted=weights):
        raise KeyError
    assert snapshot(model) == before
    handle = next(model.modules()).register_forward_hook(fail)
    with pytest.raises(KeyError), soft_edges(model, edge_index, weights, counted=weights):
        model(x, edge_index, **fields)
    handle.remove()
    assert snapshot(model) == before
    assert torch.equal(model(x, edge_index, **fields), plain)


def test_other_threads_see_no_weights():
    model = make("Transformer")
    x, edge_index, _, _ = multigraph(directed=False)
    plain = model(x, edge_index)
    found = []
    with soft_edges(model, edge_index, torch.zeros(edge_index.size(1), dtype=torch.float64)):
        thread = threading.Thread(target=lambda: found.append(model(x, edge_index)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], plain)


@pytest.mark.parametrize("aggregation", ["mean", "max", "softmax"])
def test_gradient_sees_the_last_edge_of_a_receiver(aggregation):
    model = pyg.SimpleConv(aggr=aggregation)
    x = torch.tensor([[3.0], [0.0]])
    edge_index = torch.tensor([[0], [1]])
    weights = torch.ones(1, requires_grad=True)
    with soft_edges(model, edge_index, weights):
        out = model(x, edge_index)[1, 0]
    assert out.item() == 3
    assert torch.autograd.grad(out, weights)[0].item() == 3


def test_gradient_of_a_maximum_is_what_deletion_costs():
    model = pyg.SimpleConv(aggr="max")
    x = torch.tensor([[5.0], [3.0], [2.0], [0.0]])
    edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
    weights = torch.ones(3, requires_grad=True)
    with soft_edges(model, edge_index, weights):
        out = model(x, edge_index)[3, 0]
    assert torch.autograd.grad(out, weights)[0].tolist() == [2, 0, 0]


@pytest.mark.parametrize("options", [{}, {"improved": True}, {"add_self_loops": False}, {"normalize": False}])
@pytest.mark.parametrize("weighted", [False, True])
def test_degrees_are_counted_with_their_own_weights(options, weighted):
    torch.manual_seed(0)
    layer = pyg.GCNConv(WIDTH, WIDTH, **options).double()
    x, edge_index, link, fields = multigraph(directed=True)
    own = fields["edge_weight"] if weighted else torch.ones(edge_index.size(1), dtype=torch.float64)
    loop = edge_index[0] == edge_index[1]
    message, counted = (torch.rand(int(link.max()) + 1, dtype=torch.float64)[link] for _ in range(2))
    message, counted = message.masked_fill(loop, 1), counted.masked_fill(loop, 1)
    with soft_edges(layer, edge_index, message, counted):
        out = layer(x, edge_index, own if weighted else None)
    if options.get("normalize", True):
        ends, sent, seen = edge_index, message * own, counted * own
        if options.get("add_self_loops", True):
            # PyG fills in the 2 of an improved layer only where the graph has weights of its own.
            fill = 2.0 if options.get("improved") and weighted else 1.0
            ends, sent = add_remaining_self_loops(edge_index, message * own, fill, NODES)
            _, seen = add_remaining_self_loops(edge_index, counted * own, fill, NODES)
        scale = torch.zeros(NODES, dtype=x.dtype).index_add(0, ends[1], seen).pow(-0.5)
        scale = scale.masked_fill(scale.isinf(), 0)
        sent = scale[ends[0]] * sent * scale[ends[1]]
    else:
        ends, sent = edge_index, message * own
    expected = torch.zeros(NODES, WIDTH, dtype=x.dtype).index_add(0, ends[1], sent.view(-1, 1) * layer.lin(x)[ends[0]])
    assert torch.allclose(out, expected + layer.bias)


def test_single_precision_and_large_scores():
    """Scores far apart: what is deleted may be above what is kept, and no share may vanish or overflow."""
    model = pyg.TransformerConv(1, 1, root_weight=False, bias=False)
    with torch.no_grad():
        for layer in (model.lin_key, model.lin_query, model.lin_value):
            layer.weight.fill_(1.0)
    x = torch.tensor([[500.0], [3.0], [1.0]])
    edge_index = torch.tensor([[0, 1], [2, 2]])
    weights = torch.tensor([0.0, 1.0], requires_grad=True)
    with soft_edges(model, edge_index, weights):
        out = model(x, edge_index)
    assert torch.allclose(out, model(x, edge_index[:, 1:]))
    assert torch.autograd.grad(out.sum(), weights)[0].isfinite().all()


def test_graph_without_edges():
    x, edge_index = torch.randn(3, WIDTH), torch.zeros(2, 0, dtype=torch.long)
    for layer in (pyg.GCNConv(WIDTH, 2), pyg.GATConv(WIDTH, 2), pyg.SAGEConv(WIDTH, 2, aggr="max")):
        with soft_edges(layer, edge_index, torch.zeros(0)):
            out = layer(x, edge_index)
        assert torch.equal(out, layer(x, edge_index))


def test_names_that_are_replaced_are_those_that_layers_use():
    """The replacement goes by identity, so it must be the very functions that PyG's layers import."""
    assert sys.modules[pyg.TransformerConv.__module__].softmax is softmax
    assert sys.modules[pyg.SGConv.__module__].gcn_norm is gcn_norm
    assert degree(torch.tensor([0, 0]), 1).tolist() == [2]
