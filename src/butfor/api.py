"""`explain`, the whole idea in one call; and `prepare`, for whoever has many questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

import torch
from torch_geometric.data import Batch, Data, HeteroData

from butfor.boundary.arguments import check_whole
from butfor.errors import InputError
from butfor.executors import chosen_executor
from butfor.graph.stores import from_stores, is_stores
from butfor.graphs import Graphs
from butfor.live import shown
from butfor.methods import Exact
from butfor.problem.builder import MAX_EDGES
from butfor.problem.target import Pair, as_targets, task_of
from butfor.result.result_list import ResultList
from butfor.session import Session, check_settings
from butfor.spread import Search, spread

if TYPE_CHECKING:
    from torch import Tensor, nn

    from butfor.edits.space import EditSpace
    from butfor.executors import Executor
    from butfor.methods import Method
    from butfor.predict.call import Task
    from butfor.predict.predictor import Scope
    from butfor.problem.budget import Budget
    from butfor.problem.goal import Goal
    from butfor.result.counterfactual import Counterfactual

__all__ = ["explain", "prepare"]


@overload
def explain(
    model: nn.Module,
    data: Data | HeteroData,
    target: int | Pair | None = ...,
    method: Method | None = ...,
    *,
    goal: Goal | None = ...,
    space: EditSpace | None = ...,
    otherwise: EditSpace | None = ...,
    budget: Budget | None = ...,
    directed: bool | None = ...,
    node_type: str | tuple[str, str] | None = ...,
    probabilities: bool | None = ...,
    verify: Scope | None = ...,
    max_edges: int = ...,
    seed: int = ...,
    progress: bool = ...,
    jobs: int = ...,
    executor: Executor | None = ...,
) -> Counterfactual: ...


@overload
def explain(
    model: nn.Module,
    data: Data | HeteroData | Iterable[Data | HeteroData],
    target: Iterable[int] | Iterable[Pair] | Tensor | None = ...,
    method: Method | None = ...,
    *,
    goal: Goal | None = ...,
    space: EditSpace | None = ...,
    otherwise: EditSpace | None = ...,
    budget: Budget | None = ...,
    directed: bool | None = ...,
    node_type: str | tuple[str, str] | None = ...,
    probabilities: bool | None = ...,
    verify: Scope | None = ...,
    max_edges: int = ...,
    seed: int = ...,
    progress: bool = ...,
    jobs: int = ...,
    executor: Executor | None = ...,
) -> ResultList: ...


def explain(
    model: nn.Module,
    data: Data | HeteroData | Iterable[Data | HeteroData],
    target: int | Pair | Iterable[int] | Iterable[Pair] | Tensor | None = None,
    method: Method | None = None,
    *,
    goal: Goal | None = None,
    space: EditSpace | None = None,
    otherwise: EditSpace | None = None,
    budget: Budget | None = None,
    directed: bool | None = None,
    node_type: str | tuple[str, str] | None = None,
    probabilities: bool | None = None,
    verify: Scope | None = None,
    max_edges: int = MAX_EDGES,
    seed: int = 0,
    progress: bool = False,
    jobs: int = 1,
    executor: Executor | None = None,
) -> Counterfactual | ResultList:
    """What would have to change for the model to predict something else?

    What the model predicts follows from what is asked: a node's class for a node, a link for a `Pair`, and the whole
    graph's class where no target is given.

    Args:
        model: a classifier whose ``forward`` takes ``x`` and ``edge_index``; of a ``HeteroData`` the dictionaries of
            them by type. One that predicts links also takes ``edge_label_index``, or has ``encode`` and ``decode``; one
            of whole graphs may take ``batch`` (``batch_dict``). For one that returns a single number,
            ``goal.threshold`` says where another answer begins.
        data: the graph; or several graphs, each of which is explained as a whole. A graph may also be one that
            `open_graph` opened, or PyG's pair of a ``FeatureStore`` and a ``GraphStore``.
        target: a node, a `Pair`, or several of either (a boolean mask or an index tensor of nodes works too).
        method: how to search; by default `Exact`.
        goal: what counts as something else; by default any other class.
        space: which edits are allowed, at what cost; by default the deletion of any edge, at cost 1.
        otherwise: another edit space, which is searched too where nothing is found in the first. The result stays what
            it is; its ``otherwise`` is the result of that search, and its note says what would help.
        budget: what may be spent on each target.
        directed: whether the graph is directed; by default this is found out.
        node_type: in a graph of several node types, the one that targets belong to; for links those of their two ends,
            such as ``("user", "item")``.
        probabilities: whether the model returns probabilities; by default this is found out.
        verify: what the edits are made and the model is run on to verify them: "whole-graph", or the "receptive-field"
            of each target, which costs the same however large the graph is. By default the whole graph, unless it is
            large and the model's code shows that it hears along edges alone.
        max_edges: a target whose neighbourhood has more edges is not searched. By default a million, which fit into
            2 GB of memory.
        seed: for methods that draw random numbers.
        progress: show a progress bar on standard error, where that is a terminal; for one target, its best answer and
            lower bound as they move.
        jobs: in how many processes to search. With more than one, a target that fails does not end the run: its result
            has the status ``failed`` and says why.
        executor: where to search instead, such as ``butfor.Ray()``.

    Returns:
        One result for one target; for several, a list in their order, which shows itself as a table in a notebook.

    Raises:
        GraphError: the graph is malformed.
        ModelError: the model does not fit the graph or the method.
        InputError: a target is not in the graph, or an argument makes no sense.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> print(butfor.explain(model, data, 597))
        Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.
        >>> space = butfor.EditSpace(protected=[(596, 597)])
        >>> print(butfor.explain(model, data, 597, space=space))
        Node 597 is predicted 'motif' (0.85). But for these 2 of its 14 edges it would be 'base' (0.73):
            595–596, 598–599.
        >>> butfor.explain(model, data, [600, 605, 606], butfor.Greedy())
        <3 results: 3 optimal>
        >>> butfor.explain(model, data, 9999)
        Traceback (most recent call last):
            ...
        butfor.errors.InputError: node 9999 is not in this graph (0 to 870)
    """
    check_settings(method=method, goal=goal, space=space, budget=budget, otherwise=otherwise)
    check_whole(seed, "seed", 0)
    chosen = chosen_executor(jobs, executor)
    question: dict[str, Any] = {
        "goal": goal,
        "space": space,
        "otherwise": otherwise,
        "directed": directed,
        "probabilities": probabilities,
        "verify": verify,
        "max_edges": max_edges,
    }
    search: dict[str, Any] = {"budget": budget, "seed": seed}
    if isinstance(data, Batch) and target is None:
        data = data.to_data_list()
    if is_stores(data):
        data = from_stores(data)
    if not isinstance(data, (Data, HeteroData)):
        if target is not None or isinstance(data, torch.Tensor) or not isinstance(data, Iterable):
            raise InputError("give one graph to explain its nodes or links; several graphs are explained as wholes")
        graphs = Graphs(model, list(data), question)
        numbers = range(len(graphs.graphs))
        if chosen is None:
            found = graphs.stream(numbers, method, **search)
        else:
            found = spread(Search(graphs, method or Exact(), **search), numbers, chosen)
        explained = dict(shown(found, len(numbers), progress))
        return ResultList(explained[number] for number in numbers)
    given = as_targets(target, lambda: _num_nodes(data, node_type))
    targets = given if isinstance(given, list) else [given]
    session = Session.of(model, data, task=task_of(targets[0] if targets else 0), node_type=node_type, **question)
    results = session.explain_all(targets, method, budget, seed, progress, executor=chosen)
    return results if isinstance(given, list) else results[0]


def prepare(
    model: nn.Module,
    data: Data | HeteroData,
    *,
    task: Task = "node",
    node_type: str | tuple[str, str] | None = None,
    goal: Goal | None = None,
    space: EditSpace | None = None,
    otherwise: EditSpace | None = None,
    directed: bool | None = None,
    probabilities: bool | None = None,
    verify: Scope | None = None,
    max_edges: int = MAX_EDGES,
) -> Session:
    """Make a model and a graph ready once, to ask many questions about them.

    Everything that can be checked is checked here, and the model runs once. The session then explains any targets by
    any methods: ``session.explain(targets, method, budget=...)``.

    Args:
        model: as for `explain`.
        data: one graph.
        task: what is to be explained: "node", "link" (pairs of nodes) or "graph" (the graph as a whole).
        node_type: in a graph of several node types, the one that targets belong to; for links those of their two ends,
            such as ``("user", "item")``.
        goal: what counts as another prediction; by default any other class.
        space: which edits are allowed, at what cost; by default the deletion of any edge, at cost 1.
        otherwise: another edit space, which is searched too where nothing is found in the first. The result stays what
            it is; its ``otherwise`` is the result of that search, and its note says what would help.
        directed: whether the graph is directed; by default this is found out.
        probabilities: whether the model returns probabilities; by default this is found out.
        verify: what the edits are made and the model is run on to verify them: "whole-graph", or the "receptive-field"
            of each target, which costs the same however large the graph is. By default the whole graph, unless it is
            large and the model's code shows that it hears along edges alone.
        max_edges: a target whose neighbourhood has more edges is not searched. By default a million, which fit into
            2 GB of memory.

    Raises:
        GraphError: the graph is malformed.
        ModelError: the model does not fit the graph.
        InputError: an argument makes no sense.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> session = butfor.prepare(model, data)
        >>> session.explain([597, 600, 605], butfor.Greedy())
        <3 results: 3 optimal>
        >>> session.explain([597, 600, 605], butfor.Exact())
        <3 results: 3 optimal>
    """
    if task not in ("node", "link", "graph"):
        raise InputError(f"task is {task!r}; give 'node', 'link' or 'graph'")
    return Session.of(
        model,
        data,
        task=task,
        node_type=node_type,
        goal=goal,
        space=space,
        otherwise=otherwise,
        directed=directed,
        probabilities=probabilities,
        verify=verify,
        max_edges=max_edges,
    )


def _num_nodes(data: Data | HeteroData, node_type: str | tuple[str, str] | None) -> int:
    if isinstance(data, HeteroData):
        if node_type is None and len(data.node_types) == 1:
            (node_type,) = data.node_types
        if node_type not in data.node_types:
            known = " or ".join(map(repr, data.node_types))
            raise InputError(f"node_type is {node_type!r}; say which is meant: node_type={known}")
        return int(data[node_type].num_nodes)
    return int(data.num_nodes or 0)
