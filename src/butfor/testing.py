"""The contract that every method passes, ours or a third party's.

    from butfor.testing import check_method
    check_method(MyMethod())

Each check is a function that raises ``AssertionError`` with what was broken; `CHECKS` lists them, for
use with ``pytest.mark.parametrize``. The truth they compare with is computed here, by deleting edges
from plain edge lists and running the model, and by brute force: it shares no code with the library.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from butfor.api import explain
from butfor.edits.space import EditSpace
from butfor.problem.budget import Budget
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch import Tensor, nn

    from butfor.methods import Method
    from butfor.result.counterfactual import Counterfactual

__all__ = ["CHECKS", "brute_force", "check_method", "links", "predict_without", "random_problem"]


def random_problem(
    seed: int, nodes: int = 8, classes: int = 3, directed: bool = False, density: float = 0.35
) -> tuple[nn.Module, Data]:
    """A small random graph and a random two-layer GCN whose predictions depend on the edges.

    Args:
        seed: of the graph, its features and the weights.
        nodes: how many nodes the graph has.
        classes: how many classes the model tells apart.
        directed: whether the graph is directed.
        density: the share of all pairs of nodes that are joined.

    Returns:
        The model, in evaluation mode, and the graph.

    Examples:
        >>> import butfor
        >>> from butfor.testing import random_problem
        >>> model, data = random_problem(seed=2)
        >>> data
        Data(x=[8, 4], edge_index=[2, 16])
        >>> print(butfor.explain(model, data, 0))
        Node 0 is predicted 'class 2' (0.38). No allowed edits change that; this is proved.
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.rand(nodes, nodes, generator=generator) < density
    chosen.fill_diagonal_(False)
    edges = chosen.nonzero() if directed else torch.triu(chosen, 1).nonzero()
    edge_index = edges.T if directed else torch.cat([edges, edges.flip(1)]).T
    x = torch.randn(nodes, 4, generator=generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GCN(4, 8, num_layers=2, out_channels=classes)
    return model.eval(), Data(x=x, edge_index=edge_index.contiguous())


def links(data: Data, directed: bool = False) -> list[tuple[int, int]]:
    """The edges as a person counts them: no self-loops, each undirected edge once.

    Args:
        data: the graph.
        directed: whether its edges have a direction.

    Returns:
        Pairs of nodes in order; of an undirected edge the smaller node first.

    Examples:
        >>> from butfor.testing import links, random_problem
        >>> model, data = random_problem(seed=2, nodes=5)
        >>> data.num_edges, links(data)
        (4, [(1, 2), (1, 4)])
    """
    pairs = {(u, v) if directed else (min(u, v), max(u, v)) for u, v in data.edge_index.T.tolist() if u != v}
    return sorted(pairs)


def predict_without(model: nn.Module, data: Data, removed: Iterable[tuple[int, int]], directed: bool = False) -> Tensor:
    """The class scores of all nodes after these edges are deleted from the whole graph.

    Args:
        model: a classifier of nodes that takes ``x`` and ``edge_index``; a copy of it is run.
        data: the graph.
        removed: the edges to delete, as pairs of nodes; both directions go, unless the graph is directed.
        directed: whether its edges have a direction.

    Returns:
        A row of scores for each node.

    Examples:
        >>> from butfor.testing import predict_without, random_problem
        >>> model, data = random_problem(seed=2, nodes=5, density=0.6)
        >>> predict_without(model, data, []).argmax(1)
        tensor([2, 2, 2, 2, 2])
        >>> predict_without(model, data, [(0, 1)]).argmax(1)
        tensor([0, 2, 2, 0, 2])
    """
    gone = set(removed) if directed else {pair for u, v in removed for pair in ((u, v), (v, u))}
    kept = [number for number, pair in enumerate(data.edge_index.T.tolist()) if tuple(pair) not in gone]
    fresh = copy.deepcopy(model).eval()
    with torch.no_grad():
        scores: Tensor = fresh(data.x, data.edge_index[:, kept])
    return scores


def brute_force(
    model: nn.Module, data: Data, directed: bool = False, wanted: int | None = None
) -> list[tuple[int | None, set[frozenset[tuple[int, int]]]]]:
    """For each node the size of its smallest counterfactual and all sets of that size.

    Tries every subset of the edges: for graphs of a dozen or so.

    Args:
        model: a classifier of nodes that takes ``x`` and ``edge_index``.
        data: the graph.
        directed: whether its edges have a direction.
        wanted: the class to reach; by default any other one.

    Returns:
        The least size and all sets of edges of that size, for each node; (None, empty) where there is none.

    Examples:
        >>> import butfor
        >>> from butfor.testing import brute_force, random_problem
        >>> model, data = random_problem(seed=2, nodes=5, density=0.6)
        >>> truth = brute_force(model, data)
        >>> [size for size, sets in truth]
        [1, None, 2, 1, None]
        >>> [cf.size for cf in butfor.explain(model, data, range(5))]
        [1, None, 2, 1, None]
    """
    before = predict_without(model, data, (), directed).argmax(1)
    best: list[tuple[int | None, set[frozenset[tuple[int, int]]]]] = [(None, set()) for _ in before]
    pairs = links(data, directed)
    for size in range(1, len(pairs) + 1):
        for removed in itertools.combinations(pairs, size):
            after = predict_without(model, data, removed, directed).argmax(1)
            changed = after != before if wanted is None else (after == wanted) & (before != wanted)
            for node in changed.nonzero().flatten().tolist():
                if best[node][0] in (None, size):
                    best[node] = (size, best[node][1] | {frozenset(removed)})
        if all(least is not None for least, _ in best):
            break
    return best


def check_method(method: Method) -> None:
    """Run every check of the contract that a method must pass; it takes some seconds.

    Args:
        method: the method, with the hyper-parameters that it is to be checked with.

    Raises:
        AssertionError: the method breaks the contract; the message says where.

    Examples:
        >>> import butfor
        >>> from butfor.testing import check_method
        >>> check_method(butfor.KeepEgo())
    """
    for check in CHECKS:
        check(method)


def check_plain_value(method: Method) -> None:
    """A method is a frozen dataclass: it can be compared, printed, sent to a worker, and not changed."""
    parameters = vars(type(method)).get("__dataclass_params__")
    assert parameters is not None, f"{type(method).__name__} is not a dataclass"
    assert parameters.frozen, f"{type(method).__name__} is not frozen"
    assert type(method).__name__ in repr(method), "its repr does not name it"
    assert pickle.loads(pickle.dumps(method)) == method, "it does not survive pickling"
    assert copy.deepcopy(method) == method, "it does not equal its copy"


def check_valid(method: Method) -> None:
    """Every counterfactual changes the prediction when its edges are deleted, and says so truly."""
    for model, data, directed in _problems():
        for result in explain(model, data, range(data.num_nodes), method):
            _check_result(result, model, data, directed)


def check_bounds(method: Method) -> None:
    """Lower bounds are sound, `optimal` and `impossible` are true, and nothing beats brute force."""
    for seed in range(4):
        model, data, truth = _small(seed)
        for result, (least, _) in zip(explain(model, data, range(data.num_nodes), method), truth, strict=True):
            if least is None:
                assert not result.found, f"brute force finds nothing, but: {result}"
                continue
            assert result.status.value != "impossible", f"{least} edges suffice, but: {result}"
            assert result.lower_bound is not None
            assert result.lower_bound <= least, f"{least} edges suffice, but the bound is higher: {result}"
            if result.size is not None:
                assert result.size >= least, f"brute force needs {least} edges, but: {result}"
                proved = result.status.value == "optimal"
                assert not proved or result.size == least, f"{least} edges suffice, but 'optimal': {result}"


def check_repeatable(method: Method) -> None:
    """The same seed gives the same result, alone or among others, in any order; no state is kept."""
    model, data = random_problem(3, nodes=10)
    nodes = list(range(data.num_nodes))
    first = explain(model, data, nodes, method, seed=7)
    assert first == explain(model, data, nodes, method, seed=7), "a second run gives another result"
    backwards = explain(model, data, nodes[::-1], method, seed=7)
    assert first == backwards[::-1], "the order of the targets changes the results"
    alone = [explain(model, data, node, method, seed=7) for node in nodes]
    assert first == alone, "a target explained alone gets another result than among others"


def check_leaves_model_alone(method: Method) -> None:
    """Parameters, training flags, hooks, caches and the data are as they were found."""
    model, data = random_problem(4)
    model.train()
    for parameter in itertools.islice(model.parameters(), 1):
        parameter.requires_grad_(False)
    before, before_data = _state(model), data.clone()
    state = torch.random.get_rng_state()
    explain(model, data, range(4), method)
    assert torch.equal(state, torch.random.get_rng_state()), "it draws from torch's global generator"
    _assert_same_state(before, _state(model))
    for key, value in before_data.to_dict().items():
        assert torch.equal(value, data[key]), f"data.{key} was changed"


def check_respects_space(method: Method) -> None:
    """Protected edges stay, only allowed ones go, and costs are counted."""
    for model, data, directed in _problems():
        pairs = links(data, directed)
        protected, priced = pairs[::2], dict.fromkeys(pairs[1::2], 2.5)
        space = EditSpace(protected=protected, costs=priced)
        for result in explain(model, data, range(data.num_nodes), method, space=space):
            _check_result(result, model, data, directed)
            assert not set(result.removed_edges) & set(protected), f"a protected edge is gone: {result}"
            assert result.cost == 2.5 * len(result.removed_edges), f"the cost is wrong: {result.cost} for {result}"
        allowed = pairs[:3]
        for result in explain(model, data, range(data.num_nodes), method, space=EditSpace(allowed=allowed)):
            assert set(result.removed_edges) <= set(allowed), f"an edge is gone that may not go: {result}"


def check_reaches_goal(method: Method) -> None:
    """With a wanted class the prediction becomes that class, by the least margin where one is asked."""
    for model, data, directed in _problems():
        before = predict_without(model, data, (), directed).argmax(1)
        for wanted in range(3):
            nodes = (before != wanted).nonzero().flatten().tolist()
            for result in explain(model, data, nodes, method, goal=Goal(wanted=wanted, least=0.05)):
                if result.after is not None:
                    scores = predict_without(model, data, result.removed_edges, directed)[result.target]
                    rest = torch.cat([scores[:wanted], scores[wanted + 1 :]])
                    assert result.after.label == wanted, f"class {wanted} was wanted: {result}"
                    assert scores[wanted] - rest.max() > 0.05 - 1e-4, f"the margin is too small: {result}"


def check_budget(method: Method) -> None:
    """No more edit sets are put to the oracle than the budget allows."""
    model, data = random_problem(5, nodes=10)
    for limit in (1, 5, 20):
        for result in explain(model, data, range(data.num_nodes), method, budget=Budget(evaluations=limit)):
            assert result.evaluations <= limit, f"{result.evaluations} evaluations, {limit} allowed"


def check_nothing_to_edit(method: Method) -> None:
    """A node without edges, or whose edges are all protected, is proved impossible."""
    model, data = random_problem(6, nodes=5)
    lonely = Data(x=data.x, edge_index=data.edge_index[:, (data.edge_index != 0).all(dim=0)])
    assert explain(model, lonely, 0, method).status.value == "impossible"
    space = EditSpace(protected=links(data))
    assert explain(model, data, 1, method, space=space).status.value == "impossible"


CHECKS: tuple[Callable[[Method], None], ...] = (
    check_plain_value,
    check_valid,
    check_bounds,
    check_repeatable,
    check_leaves_model_alone,
    check_respects_space,
    check_reaches_goal,
    check_budget,
    check_nothing_to_edit,
)
"""The checks of `check_method`, to be run one by one: each takes a method and raises ``AssertionError``.

Examples:
    >>> import butfor
    >>> from butfor.testing import CHECKS
    >>> [check.__name__ for check in CHECKS][:3]
    ['check_plain_value', 'check_valid', 'check_bounds']
    >>> CHECKS[0](butfor.Greedy())
"""


def _problems() -> Iterator[tuple[nn.Module, Data, bool]]:
    for seed in range(4):
        model, data = random_problem(seed, directed=seed % 2 == 1)
        yield model, data, seed % 2 == 1


@cache
def _small(seed: int) -> tuple[nn.Module, Data, list[tuple[int | None, set[frozenset[tuple[int, int]]]]]]:
    directed = seed % 2 == 1
    model, data = random_problem(seed, nodes=5, directed=directed, density=0.35 if directed else 0.6)
    return model, data, brute_force(model, data, directed)


def _check_result(result: Counterfactual, model: nn.Module, data: Data, directed: bool) -> None:
    intact = predict_without(model, data, (), directed)[result.target]
    assert result.before.label == int(intact.argmax()), f"wrong prediction before: {result}"
    assert set(result.removed_edges) <= set(links(data, directed)), f"it removes what is no edge: {result}"
    if result.after is None:
        assert not result.removed_edges, f"edges are removed to no effect: {result}"
        return
    after = predict_without(model, data, result.removed_edges, directed)[result.target]
    assert int(after.argmax()) != result.before.label, f"the prediction does not change: {result}"
    assert result.after.label == int(after.argmax()), f"wrong prediction after: {result}"
    probability = float(after.softmax(0).max())
    assert abs((result.after.probability or 0.0) - probability) < 1e-4, f"the probability is {probability}: {result}"


def _state(model: nn.Module) -> dict[str, object]:
    parts: dict[str, object] = {}
    for name, module in model.named_modules():
        parts[f"{name}.training"] = module.training
        for key, value in vars(module).items():
            if "hooks" in key:
                parts[f"{name}.{key}"] = len(value)
            elif key not in ("_parameters", "_buffers", "_modules"):
                parts[f"{name}.{key}"] = value
    for name, parameter in model.named_parameters():
        parts |= {name: parameter.detach().clone(), f"{name}.grad": parameter.grad}
        parts[f"{name}.requires_grad"] = parameter.requires_grad
    return parts


def _assert_same_state(before: dict[str, object], after: dict[str, object]) -> None:
    assert before.keys() == after.keys(), f"the model has other parts: {before.keys() ^ after.keys()}"
    for name, value in before.items():
        now = after[name]
        both = isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor)
        same = torch.equal(value, now) if both else value is now or value == now  # type: ignore[arg-type]
        assert same, f"the model was changed: {name}"
