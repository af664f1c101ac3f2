"""Any graph neural network is explained, whatever its layers, and is as it was afterwards.

The truth is in `gnns`: edges cut by hand from plain lists, and a model that was never run before.
"""

from __future__ import annotations

import itertools
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import butfor
from butfor.edits.space import EditSpace
from butfor.methods.cf_gnn import INSTEAD
from butfor.methods.greedy import NO_GRADIENT
from butfor.problem.builder import WHOLE_GRAPH
from gnns import (
    CLASSES,
    FRAGILE,
    GLOBAL,
    LOCAL,
    WIDTH,
    Kind,
    Shared,
    Stack,
    Then,
    Truth,
    all_scores,
    brute_force,
    graph,
    kept,
    links,
    ring,
    scores_without,
    small,
    tiny,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butfor.problem.problem import Problem
    from butfor.result.counterfactual import Counterfactual

# Torch says once that its sparse tensors are new and that nobody checks them; GraphUNet makes some.
SPARSE = pytest.mark.filterwarnings("ignore:Sparse")

RELAXED = [name for name, kind in LOCAL.items() if kind.relaxed]
SOME = [0, 1, 3, 4]  # nodes of a small graph that are worth asking about
BOTH = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


def pose(kind: Kind, data: Data, nodes: Iterable[int], directed: bool) -> list[Problem]:
    explainer = butfor.Session.of(kind.make(data), data)
    assert explainer.graph.directed == directed
    return [explainer.builder.build((node,)) for node in nodes]


def pairs_of(problem: Problem, chosen: Sequence[int]) -> list[tuple[int, int]]:
    return [(edit.source, edit.target) for edit in problem.edits.records(chosen)]


def sometimes(name: str) -> bool:
    """Every other model is tried on a directed graph, where trying each on both would take too long."""
    return list(LOCAL).index(name) % 2 == 1


@cache
def posed(name: str, directed: bool) -> list[Problem]:
    """A node of the ring, the end of a short way across, and one with a leaf; all of them send and receive."""
    return pose(LOCAL[name], ring(directed), (7, 13, 21), directed)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("name", LOCAL)
def test_the_neighbourhood_reproduces_the_whole_graph(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], ring(directed)
    random = np.random.default_rng(1)
    for problem in posed(name, directed):
        (node,) = problem.target
        count = len(problem.edits)
        sets = [np.flatnonzero(random.random(count) < chance) for chance in (0.0, 0.2, 0.6)]
        truths = [scores_without(kind, data, pairs_of(problem, chosen), directed)[node] for chosen in sets]
        for chosen, scores, truth in zip(sets, problem.ask(sets).logits, truths, strict=True):
            assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5), (node, chosen)
        # What was left out cannot matter, or nothing would be proved.
        outside = sorted(set(links(data, directed)) - set(pairs_of(problem, range(count))))
        bare = scores_without(kind, data, [*pairs_of(problem, sets[1]), *outside], directed)[node]
        assert torch.allclose(bare, truths[1], rtol=1e-5, atol=2e-5), node
        if not directed:
            assert outside, "the neighbourhood is the whole graph, so nothing was tested"
            assert problem.edits.neighbourhood.num_nodes < data.num_nodes
            assert WHOLE_GRAPH not in problem.note


@pytest.mark.slow
@pytest.mark.parametrize("name", RELAXED)
def test_weights_of_zero_and_one_are_deletion(name: str) -> None:
    kind, directed = LOCAL[name], sometimes(name)
    data, problems = ring(directed), posed(name, directed)[:2]
    if WHOLE_GRAPH in problems[0].note:
        problems = problems[:1]  # such as ChebConv's out-degrees in a directed graph: one graph at a time
    oracle = problems[0].oracle
    assert all(problem.oracle is oracle for problem in problems)
    together = oracle.relax([problem.edits for problem in problems])
    assert together is not None
    random = np.random.default_rng(2)
    for chance in (0.0, 0.15, 0.5, 1.0):
        gone = [random.random(len(problem.edits)) < chance for problem in problems]
        truths = [
            scores_without(kind, data, pairs_of(problem, np.flatnonzero(one)), directed)[problem.target[0]]
            for problem, one in zip(problems, gone, strict=True)
        ]
        weights = torch.from_numpy(1.0 - np.concatenate(gone)).float()
        assert torch.allclose(together.logits(weights), torch.stack(truths), rtol=1e-4, atol=1e-4), chance
        alone = oracle.relax([problems[0].edits]).logits(weights[: len(problems[0].edits)])
        assert torch.allclose(alone, truths[0][None], rtol=1e-4, atol=1e-4), chance
    gradient = problems[0].gradient()
    assert gradient is not None
    assert np.isfinite(gradient).all()
    assert (np.abs(gradient) > 1e-6).any()


@pytest.mark.parametrize("name", [name for name, kind in LOCAL.items() if not kind.relaxed])
def test_no_relaxation_is_offered_where_none_is_faithful(name: str) -> None:
    for problem in posed(name, False):
        assert problem.oracle.relax([problem.edits]) is None
        assert problem.gradient() is None


@cache
def truths_of(name: str, directed: bool) -> list[Truth]:
    return brute_force(LOCAL[name], small(directed), directed)


def check_exact(results: list[Counterfactual], truths: list[Truth]) -> None:
    """The very sets that brute force finds, or the proof that there are none."""
    clear = [(result, truths[result.target]) for result in results if not truths[result.target].close]
    assert len(clear) >= len(results) - 1, "too many near ties to learn anything"
    assert any(truth.size for _, truth in clear), "no edges decide anything, so nothing was tested"
    for result, truth in clear:
        assert result.before.label == truth.before
        assert result.size == truth.size, str(result)
        assert result.status.value == ("impossible" if truth.size is None else "optimal"), str(result)
        if truth.size is not None:
            assert result.lower_bound == truth.size
            others = [frozenset((edit.source, edit.target) for edit in edits) for edits in result.alternatives]
            assert {frozenset(result.removed_edges), *others} == truth.smallest, str(result)


@BOTH
@pytest.mark.parametrize("name", LOCAL)
def test_exact_equals_brute_force(name: str, directed: bool) -> None:
    kind, data = LOCAL[name], small(directed)
    results = butfor.explain(kind.make(data), data, SOME, butfor.Exact(all_smallest=True))
    check_exact(results, truths_of(name, directed))
    check_by_hand(kind, data, directed, results[:1], truths_of(name, directed))


@pytest.mark.parametrize("name", LOCAL)
def test_brute_force_side_by_side_is_one_after_the_other(name: str) -> None:
    sets, scores = all_scores(LOCAL[name], small(False), False)
    for number in (0, 100, len(sets) - 1):
        alone = scores_without(LOCAL[name], small(False), sets[number], False)
        assert np.allclose(alone.numpy(), scores[number], atol=1e-5)


def check_by_hand(
    kind: Kind, data: Data, directed: bool, results: list[Counterfactual], truths: list[Truth] | None = None
) -> int:
    """Cut the edges by hand: the prediction is what the result says. Returns how many were found."""
    for result in results:
        intact = scores_without(kind, data, (), directed)[result.target]
        assert result.before.label == int(intact.argmax())
        assert result.before.probability == pytest.approx(float(intact.softmax(0).max()), abs=1e-4)
        assert (result.after is None) == (not result.removed_edges)
        if result.after is not None:
            assert set(result.removed_edges) <= set(links(data, directed))
            scores = scores_without(kind, data, result.removed_edges, directed)[result.target]
            assert result.after.label == int(scores.argmax()) != result.before.label, str(result)
            assert result.after.probability == pytest.approx(float(scores.softmax(0).max()), abs=1e-4)
        if truths is not None and not truths[result.target].close:
            least = truths[result.target].size
            assert not result.found or result.size >= least
            assert result.status.value != "impossible" or least is None
            assert result.status.value != "optimal" or result.size == least
            assert least is None or result.lower_bound <= least
    return sum(result.found for result in results)


def state(model: nn.Module) -> dict[str, Any]:
    """Everything about a model that somebody could change, and what the whole process shares with it."""
    parts: dict[str, Any] = {}
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            parts[f"{name}.{key}"] = dict(value) if isinstance(value, dict) else value
            parts[f"{name}.{key}, what it is"] = id(value)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        parts[f"{name}, a copy"] = (value.detach().clone(), value.requires_grad, value.grad)
    for space in [name for name in sys.modules if name.startswith("torch_geometric.")]:
        parts[space] = {key: id(value) for key, value in vars(sys.modules[space]).items() if callable(value)}
    parts["modes"] = (torch.is_grad_enabled(), torch._C._len_torch_function_stack(), torch.get_default_dtype())
    parts["random numbers"] = torch.get_rng_state()
    return parts


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other or bool(one == other)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of all parts that are not what they were."""
    return [name for name in before | after if not same(before.get(name, "none"), after.get(name, "none"))]


def in_use(kind: Kind, data: Data) -> nn.Module:
    """A model in the middle of its life: run before, so that caches are full, and about to be trained further."""
    model = kind.make(data)
    with torch.no_grad():
        model(*kept(data, kind, range(data.num_edges))[:2], **kept(data, kind, range(data.num_edges))[2])
    return model.train()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_counterfactuals_of_other_methods_are_verified(name: str) -> None:
    kind, directed = LOCAL[name], not sometimes(name)
    data, model = small(directed), in_use(kind, small(directed))
    before = state(model)
    truths = truths_of(name, directed)
    easiest = sorted(range(6), key=lambda node: truths[node].size or 9)[:2]
    quick = butfor.CFGNN(epochs=30, lr=0.5, beta=0.0, optimizer="adam", keep="first")
    for method, note in ((butfor.Greedy(width=2), NO_GRADIENT), (quick, INSTEAD)):
        results = butfor.explain(model, data, easiest, method)
        assert check_by_hand(kind, data, directed, results, truths), "nothing was found, so nothing was tested"
        for result in results:
            assert (note in result.note) == (not kind.relaxed), result.note
    assert not changed(before, state(model))


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_searched_on_the_whole_graph(name: str) -> None:
    kind, data = GLOBAL[name], tiny()
    truths = brute_force(kind, data, False)
    for method in (butfor.Exact(all_smallest=True), butfor.Greedy(width=2), butfor.CFGNN(epochs=10, lr=1.0)):
        results = butfor.explain(kind.make(data), data, SOME if isinstance(method, butfor.Exact) else [1, 4], method)
        check_by_hand(kind, data, False, results, truths)
        for result in results:
            assert WHOLE_GRAPH in result.note
            assert (result.nodes, result.edges) == (5, 6)
            if isinstance(method, butfor.CFGNN):
                assert (INSTEAD in result.note) == (not kind.relaxed)
        if isinstance(method, butfor.Exact):
            check_exact(results, truths)


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_found_out_on_a_large_graph_too(name: str) -> None:
    kind, data = GLOBAL[name], ring(False)
    random = np.random.default_rng(3)
    (problem,) = pose(kind, data, [7], False)
    assert WHOLE_GRAPH in problem.note
    assert len(problem.edits) == len(links(data, False)) == 43
    sets = [np.flatnonzero(random.random(43) < chance) for chance in (0.0, 0.2, 0.5)]
    for chosen, scores in zip(sets, problem.ask(sets).logits, strict=True):
        truth = scores_without(kind, data, pairs_of(problem, chosen), False)[7]
        assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5)


class Broken(Exception):
    """What a model of these tests raises."""


class Tripwire(nn.Module):
    """Fails from some run on. It counts outside of the model, which must not change."""

    left = 0
    raises: type[BaseException] = Broken

    def forward(self, x: Tensor) -> Tensor:
        Tripwire.left -= 1
        if Tripwire.left < 0:
            raise Tripwire.raises("the wire was touched")
        return x


class Lived(Then):
    """Caches, statistics, attention and dropout, some of it in training, some frozen, with hooks of its owner."""

    def __init__(self) -> None:
        super().__init__(
            pyg.GCNConv(WIDTH, WIDTH, cached=True),
            pyg.BatchNorm(WIDTH),
            nn.Dropout(),
            pyg.GATConv(WIDTH, WIDTH),
            pyg.SGConv(WIDTH, CLASSES, K=2, cached=True),
            Tripwire(),
        )


def lived() -> tuple[nn.Module, Data]:
    kind, data = Kind(Lived), small(False)
    Tripwire.left = 10
    model = in_use(kind, data)
    cached, norm, _, attention, simple, _ = model.layers
    assert cached._cached_edge_index is not None
    assert simple._cached_x is not None
    norm.eval()
    attention.att_src.requires_grad_(False)
    cached.bias.grad = torch.ones_like(cached.bias)
    attention.register_forward_hook(lambda *_: None)
    attention.register_message_forward_hook(lambda *_: None)
    model.register_forward_pre_hook(lambda *_: None)
    return model, data


@pytest.mark.parametrize(
    "method",
    [butfor.Exact(), butfor.Greedy(width=2), butfor.CFGNN(epochs=3), butfor.RemoveSubgraph(size=2, epochs=3)],
    ids=lambda method: type(method).__name__,
)
def test_the_model_is_as_it_was_wherever_it_fails(method) -> None:
    model, data = lived()
    before = state(model)
    Tripwire.left, Tripwire.raises = 1000, Broken
    results = butfor.explain(model, data, [0, 3], method)
    runs = 1000 - Tripwire.left
    assert len(results) == 2
    assert not changed(before, state(model))
    assert runs >= 5
    middle = runs // 2
    places = [(number, Broken) for number in sorted({0, 1, 2, 3, middle, runs - 2, runs - 1})]
    places += [(number, error) for number in (2, middle) for error in (RuntimeError, KeyboardInterrupt)]
    for number, error in places:
        Tripwire.left, Tripwire.raises = number, error
        with pytest.raises((error, butfor.errors.ModelError)):
            butfor.explain(model, data, [0, 3], method)
        assert Tripwire.left < 0
        assert not changed(before, state(model)), (number, error)


def test_a_change_of_the_model_would_be_noticed() -> None:
    """The test of the tests above: each of these is a change."""
    changes = {
        "weight": lambda model: model.layers[0].lin.weight.data.add_(1e-6),
        "frozen": lambda model: model.layers[0].bias.requires_grad_(False),
        "gradient": lambda model: setattr(model.layers[0].bias, "grad", None),
        "training": lambda model: model.eval(),
        "statistics": lambda model: model.layers[1].module.running_mean.add_(1e-6),
        "hook": lambda model: model.layers[3].register_propagate_forward_pre_hook(lambda *_: None),
        "cache": lambda model: setattr(model.layers[4], "_cached_x", None),
        "cached": lambda model: setattr(model.layers[4], "cached", False),
        "random": lambda model: torch.rand(1),
    }
    for name, change in changes.items():
        model, _ = lived()
        before = state(model)
        assert not changed(before, state(model))
        change(model)
        assert changed(before, state(model)), f"a change of the {name} goes unnoticed"


# Layers and how far each sees; all of them normalise by degrees.
FAR = {
    "SGConv": (3, lambda: Stack(pyg.SGConv(WIDTH, CLASSES, K=3))),
    "APPNP": (5, lambda: Then(nn.Linear(WIDTH, CLASSES), pyg.APPNP(K=5, alpha=0.1))),
    "TAGConv": (3, lambda: Stack(pyg.TAGConv(WIDTH, CLASSES, K=3))),
    "ChebConv": (4, lambda: Stack(pyg.ChebConv(WIDTH, CLASSES, K=5))),
    "ARMAConv": (3, lambda: Stack(pyg.ARMAConv(WIDTH, CLASSES, num_layers=3, act=nn.Tanh()))),
    "one layer three times": (3, Shared),
}


@pytest.mark.parametrize("name", FAR)
def test_edges_at_the_rim_of_the_receptive_field_are_found(name: str) -> None:
    reach, build = FAR[name]
    kind = Kind(build)
    data = graph([(node, node + 1) for node in range(15)], directed=False)
    # The last edge that carries a message, and the one behind it that counts in a degree.
    for edge in ((reach - 1, reach), (reach, reach + 1)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            model = build().eval()
        with torch.no_grad():
            whole, cut = (model(*kept(data, kind, columns_without(data, gone))[:2])[0] for gone in ((), edge))
            beyond = model(*kept(data, kind, columns_without(data, (reach + 1, reach + 2)))[:2])[0]
            assert torch.equal(beyond, whole), "it sees further than the table says"
            assert float((whole - cut).abs().max()) > 1e-3, "the edge does not matter, so nothing was tested"
            # Half of the way between the two, so that this very edge decides.
            model.shift += (whole + cut) / 2
        result = butfor.explain(model, data, 0, space=EditSpace(allowed=[edge]))
        assert result.removed_edges == (edge,)
        assert result.status.value == "optimal"
        assert result.nodes < 16
        every = butfor.explain(model, data, 0, butfor.Exact(all_smallest=True))
        assert edge in {(edit.source, edit.target) for edits in (every.edits, *every.alternatives) for edit in edits}


def columns_without(data: Data, edge: tuple[int, ...]) -> list[int]:
    return [column for column, pair in enumerate(data.edge_index.T.tolist()) if sorted(pair) != list(edge)]


class Ignoring(nn.Module):
    """Reads no edges at all."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.linear(x)


class WithoutGradients(Stack):
    """For predictions only, as people write it."""

    @torch.no_grad()
    def forward(self, x, edge_index):
        return self.run(x, edge_index)


@pytest.mark.parametrize("method", [butfor.Greedy(width=2), butfor.CFGNN(epochs=5)], ids=["Greedy", "CFGNN"])
@pytest.mark.parametrize("build", [Ignoring, lambda: WithoutGradients(pyg.GCNConv(WIDTH, CLASSES))])
def test_a_model_that_gives_no_gradients_is_searched_without(build, method) -> None:
    data = small(False)
    torch.manual_seed(0)
    model = build().eval()
    (result,) = butfor.explain(model, data, [0], method)
    assert (NO_GRADIENT if isinstance(method, butfor.Greedy) else INSTEAD) in result.note


class Highest(nn.Module):
    """Class 1 where the highest mean of all neighbourhoods is above 5, wherever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SimpleConv(aggr="mean", combine_root="sum")

    def forward(self, x, edge_index):
        highest = pyg.global_max_pool(self.layer(x, edge_index), None).expand(len(x), 1)
        return torch.cat([torch.full_like(highest, 5.0), highest], dim=1)


def test_a_maximum_of_all_nodes_that_lies_nearby_is_no_proof() -> None:
    # The highest of all is next to node 0; at the other end two neighbours keep one down that would be higher.
    pairs = [(node, node + 1) for node in range(12)]
    data = graph(pairs, directed=False)
    data.x = torch.zeros(13, 1)
    data.x[[0, 1, 10, 11, 12], 0] = torch.tensor([1.0, 3.0, -10.0, 10.0, -20.0])
    model = Highest()
    assert model(data.x, data.edge_index)[0].tolist() == [5, 4]
    far = [column for column, pair in enumerate(data.edge_index.T.tolist()) if 11 not in pair]
    assert model(data.x, data.edge_index[:, far])[0].tolist() == [5, 10]
    result = butfor.explain(model, data, 0)
    assert result.status.value == "optimal"
    assert set(result.removed_edges) == {(10, 11), (11, 12)}
    assert WHOLE_GRAPH in result.note


@pytest.mark.parametrize("name", FRAGILE)
def test_edits_on_which_the_model_fails_are_no_counterfactuals(name: str) -> None:
    kind, data = FRAGILE[name], tiny()
    assert scores_without(kind, data, links(data, False), False).isnan().all()
    truths = brute_force(kind, data, False)
    for method in (butfor.Exact(all_smallest=True), butfor.Greedy(), butfor.CFGNN(epochs=5)):
        results = butfor.explain(kind.make(data), data, SOME, method)
        check_by_hand(kind, data, False, results, truths)
        if isinstance(method, butfor.Exact):
            check_exact(results, truths)


def test_a_model_that_fails_on_a_neighbourhood_does_not_fail_on_the_graph() -> None:
    kind, data = FRAGILE["median"], ring(False)
    for node, size in {26: 2, 32: 1, 37: 1}.items():
        own = [pair for pair in links(data, False) if node in pair]
        intact = scores_without(kind, data, (), False)[node]
        sets = [chosen for count in range(1, size + 1) for chosen in itertools.combinations(own, count)]
        changed = [
            chosen
            for chosen in sets
            if int(scores_without(kind, data, chosen, False)[node].argmax()) != int(intact.argmax())
        ]
        assert min(map(len, changed)) == size
        result = butfor.explain(kind.make(data), data, node)
        assert (result.status.value, result.size) == ("optimal", size)


def test_an_lstm_over_neighbours_sees_how_many_any_node_has() -> None:
    kind, data = FRAGILE["LSTM"], ring(False)
    # Node 3 has the most neighbours. Without them everything else changes, far away too.
    centre = [pair for pair in links(data, False) if 3 in pair]
    here, there = (scores_without(kind, data, gone, False)[20] for gone in ((), centre))
    assert float((here - there).abs().max()) > 1e-2
    for problem in pose(kind, data, [10, 20], False):
        (node,) = problem.target
        assert WHOLE_GRAPH in problem.note
        chosen = [edit for edit in range(len(problem.edits)) if pairs_of(problem, [edit])[0] in centre]
        for number, some in enumerate(([], chosen)):
            truth = scores_without(kind, data, pairs_of(problem, some), False)[node]
            assert torch.allclose(problem.ask([[], chosen]).logits[number], truth, atol=2e-5)


class Batched(nn.Module):
    """A norm over the nodes of each graph, which must be told which node belongs to which."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = pyg.GCNConv(WIDTH, 8), pyg.GraphNorm(8), pyg.GCNConv(8, CLASSES)

    def forward(self, x, edge_index, batch):
        return self.last(self.norm(self.first(x, edge_index), batch).tanh(), edge_index)


def test_a_model_of_nodes_that_takes_batch() -> None:
    data = Data(x=tiny().x, edge_index=tiny().edge_index, batch=torch.zeros(5, dtype=torch.long))
    torch.manual_seed(0)
    result = butfor.explain(Batched().eval(), data, 0)
    assert result.nodes == 5
