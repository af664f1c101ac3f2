"""Targets: what a user may ask about, and what that means for the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from butfor.boundary.arguments import as_items, is_whole
from butfor.errors import InputError
from butfor.graph.validate import check_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.graph.edge_keys import TargetType
    from butfor.graph.graph import Graph
    from butfor.predict.call import Task

__all__ = ["Pair", "Target", "as_targets", "target_nodes", "task_of"]


class Pair(NamedTuple):
    """Two nodes, to ask why a link between them is predicted, or why not.

    In a graph of several node types each is numbered within its type: ``node_type=("user", "item")``.

    Attributes:
        source: the node that the link would leave.
        target: the node that it would lead to.

    Examples:
        >>> import butfor
        >>> import torch
        >>> from butfor.testing import random_problem
        >>> gcn, data = random_problem(seed=0)
        >>> class Links(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.gcn = gcn
        ...     def forward(self, x, edge_index, edge_label_index):
        ...         source, target = self.gcn(x, edge_index)[edge_label_index]
        ...         return (source * target).sum(-1)
        >>> cf = butfor.explain(Links(), data, butfor.Pair(0, 3), goal=butfor.Goal(threshold=0))
        >>> print(cf)
        Link 0–3 is predicted 'linked' (0.19). But for these 3 of its 11 edges it would be 'not linked' (-0.07):
            0–3, 0–4, 2–3.
    """

    source: int
    target: int


# A node, a pair of nodes, or the whole graph.
Target = int | Pair | None


def as_targets(given: Any, num_nodes: Callable[[], int]) -> Target | list[Target]:
    """One target, or several as a list; a boolean mask or an index tensor of nodes will do.

    Raises:
        InputError: what was given are no targets, or of different kinds.
    """
    targets = given
    if isinstance(given, (torch.Tensor, np.ndarray)):
        if isinstance(given, torch.Tensor):
            check_plain("target", given)
        values = as_items(given.reshape(-1), "target")
        if given.ndim and given.dtype in (torch.bool, np.dtype(bool)):
            if tuple(given.shape) != (num_nodes(),):
                raise InputError(f"the mask has shape {tuple(given.shape)}, but the graph has {num_nodes()} nodes")
            return [node for node, chosen in enumerate(values) if chosen]
        targets = values if given.ndim else values[0]
    if targets is None or isinstance(targets, Pair):
        return targets
    if is_whole(targets):
        return int(targets)
    if not isinstance(targets, Iterable):
        raise InputError(f"{targets!r} is not a node; give a whole number, several of them, a mask, or a butfor.Pair")
    found = list(targets)
    for target in found:
        if not isinstance(target, Pair) and not is_whole(target):
            raise InputError(f"{target!r} is not a node; nodes are whole numbers from 0 to {num_nodes() - 1}")
    if len({isinstance(target, Pair) for target in found}) > 1:
        raise InputError("nodes and pairs of nodes were given together; explain them in two calls")
    return [target if isinstance(target, Pair) else int(target) for target in found]


_KIND: dict[Task, str] = {"node": "a node", "link": "a pair of nodes", "graph": "the whole graph"}
_KINDS: dict[Task, str] = {"node": "nodes", "link": "pairs of nodes", "graph": "whole graphs"}


def task_of(target: Target) -> Task:
    """What a model must predict for this to be a target."""
    if target is None:
        return "graph"
    return "link" if isinstance(target, Pair) else "node"


def target_nodes(target: Target, graph: Graph, task: Task, node_type: TargetType | None) -> tuple[int, ...]:
    """The nodes of a target by their numbers in the graph.

    Raises:
        InputError: it is not in the graph, or not what the model predicts.
    """
    if task_of(target) != task:
        raise InputError(
            f"{_KIND[task_of(target)]} is asked about, but the model was prepared for {_KINDS[task]}; "
            f"prepare it anew with task={task_of(target)!r}"
        )
    if target is None:
        return ()
    nodes = tuple(target) if isinstance(target, Pair) else (target,)
    if graph.types is None or node_type is None:
        return tuple(map(graph.check_node, nodes))
    kinds = (node_type,) if isinstance(node_type, str) else node_type
    return tuple(map(graph.types.number, kinds, nodes))
