"""`explain`: the whole idea in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import torch
from torch_geometric.data import Batch, Data, HeteroData
from tqdm import tqdm

from butfor.errors import InputError
from butfor.problem.target import Pair, as_targets, task_of
from butfor.session import Explainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from butfor.edits.space import EditSpace
    from butfor.methods import Method
    from butfor.problem.goal import Goal
    from butfor.problem.problem import Budget
    from butfor.result.counterfactual import Counterfactual

__all__ = ["explain"]


@overload
def explain(
    model: nn.Module,
    data: Data | HeteroData,
    target: int | Pair | None = ...,
    method: Method | None = ...,
    *,
    goal: Goal | None = ...,
    space: EditSpace | None = ...,
    budget: Budget | None = ...,
    directed: bool | None = ...,
    node_type: str | None = ...,
    probabilities: bool | None = ...,
    seed: int = ...,
    progress: bool = ...,
) -> Counterfactual: ...


@overload
def explain(
    model: nn.Module,
    data: Data | HeteroData | Iterable[Data],
    target: Iterable[int] | Iterable[Pair] | Tensor | None = ...,
    method: Method | None = ...,
    *,
    goal: Goal | None = ...,
    space: EditSpace | None = ...,
    budget: Budget | None = ...,
    directed: bool | None = ...,
    node_type: str | None = ...,
    probabilities: bool | None = ...,
    seed: int = ...,
    progress: bool = ...,
) -> list[Counterfactual]: ...


def explain(
    model: nn.Module,
    data: Data | HeteroData | Iterable[Data],
    target: Any = None,
    method: Method | None = None,
    *,
    goal: Goal | None = None,
    space: EditSpace | None = None,
    budget: Budget | None = None,
    directed: bool | None = None,
    node_type: str | None = None,
    probabilities: bool | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Counterfactual | list[Counterfactual]:
    """What would have to change for the model to predict something else?

    What the model predicts follows from what is asked: a node's class for a node, a link for a `Pair`, and the
    whole graph's class where no target is given.

    Args:
        model: a classifier whose ``forward`` takes ``x`` and ``edge_index``. One that predicts links also takes
            ``edge_label_index``, or has ``encode`` and ``decode``; one of whole graphs may take ``batch``. One that
            returns a single number is told apart by ``goal.threshold``.
        data: the graph; or several graphs, each of which is explained as a whole.
        target: a node, a `Pair`, or several of either (a boolean mask or an index tensor of nodes will do).
        method: how to search; `Exact` unless given.
        goal: what counts as something else; any other class unless given.
        space: which edits are allowed, at what cost; the deletion of any edge, at 1, unless given.
        budget: what may be spent on each target.
        directed: whether the graph is directed; found out unless given.
        node_type: in a graph of several node types, the one that targets belong to.
        probabilities: whether the model returns probabilities; found out unless given.
        seed: for methods that draw random numbers.
        progress: show a progress bar on standard error, where that is a terminal.

    Returns:
        One result for one target; for several, a list in their order.

    Raises:
        GraphError: the graph is malformed.
        ModelError: the model does not fit the graph or the method.
        InputError: a target is not in the graph, or an argument makes no sense.

    Example:
        >>> import butfor
        >>> data = butfor.datasets.tree_cycles(seed=0)
        >>> model, training = butfor.models.trained_gcn(data)
        >>> print(butfor.explain(model, data, 600))
    """
    settings: dict[str, Any] = {
        "method": method,
        "goal": goal,
        "space": space,
        "budget": budget,
        "directed": directed,
        "probabilities": probabilities,
        "seed": seed,
    }
    if isinstance(data, Batch) and target is None:
        data = data.to_data_list()
    if not isinstance(progress, bool):
        raise InputError(f"progress is {progress!r}; give True or False")
    if not isinstance(data, (Data, HeteroData)):
        if target is not None or isinstance(data, torch.Tensor) or not isinstance(data, Iterable):
            raise InputError("give one graph to explain its nodes or links; several graphs are explained as wholes")
        graphs = list(data)
        explained = (
            Explainer.of(model, graph, task="graph", number=number, **settings).one(None)
            for number, graph in enumerate(graphs)
        )
        return list(_shown(explained, len(graphs), progress))
    given = as_targets(target, lambda: _num_nodes(data, node_type))
    targets = given if isinstance(given, list) else [given]
    task = task_of(targets[0] if targets else 0)
    explainer = Explainer.of(model, data, task=task, node_type=node_type, **settings)
    results = dict(_shown(explainer.stream(targets), len(targets), progress))
    ordered = [results[number] for number in range(len(targets))]
    return ordered if isinstance(given, list) else ordered[0]


def _num_nodes(data: Data | HeteroData, node_type: str | None) -> int:
    if isinstance(data, HeteroData):
        if node_type not in data.node_types:
            known = " or ".join(map(repr, data.node_types))
            raise InputError(f"node_type is {node_type!r}; say which is meant: node_type={known}")
        return int(data[node_type].num_nodes)
    return int(data.num_nodes or 0)


Shown = TypeVar("Shown")


def _shown(results: Iterator[Shown], total: int, progress: bool) -> Iterator[Shown]:
    """The same results, with a progress bar where one is wanted and standard error is a terminal."""
    yield from tqdm(results, total=total, unit="target", desc="explaining", disable=None if progress else True)
