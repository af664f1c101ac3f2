"""Checks that results belong to a model and its graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.errors import StoreError
from butfor.graph.graph import Graph
from butfor.models import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch_geometric.data import Data

    from butfor.cli.source import ModelAndGraphs
    from butfor.result.counterfactual import Counterfactual

__all__ = ["check_provenance", "graph_of"]


def graph_of(result: Counterfactual, subject: ModelAndGraphs) -> Data:
    """The graph that a result is about.

    Raises:
        InputError: there are several graphs, and the result is not about a whole graph.
        StoreError: no graph has its number.
    """
    if result.task != "graph" or isinstance(result.target, tuple):
        return subject.graph
    if not 0 <= result.target < len(subject.graphs):
        raise StoreError(
            f"{result.target_name} is not there (0 to {len(subject.graphs) - 1}); "
            "give the graphs that the results are of"
        )
    return subject.graphs[result.target]


def check_provenance(path: Path, results: Sequence[Counterfactual], subject: ModelAndGraphs) -> None:
    """Refuse results of another graph or model.

    Raises:
        StoreError: the message says which of the two it is.
    """
    known: dict[int, str] = {}
    model_id = fingerprint(subject.model)
    for result in results:
        data = graph_of(result, subject)
        graph_id = known.get(id(data)) or known.setdefault(id(data), Graph.of(data).fingerprint())
        for what, theirs, ours in (("graph", result.graph_id, graph_id), ("model", result.model_id, model_id)):
            if theirs != ours:
                raise StoreError(
                    f"{path} holds results of another {what} ({theirs} instead of {ours}); "
                    f"give the {what} that they are of"
                )
