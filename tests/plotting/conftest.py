"""Results to draw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

import butfor
from butfor import Counterfactual, Deletion, Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from butfor.plotting.appearance import Appearance


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session")
def real() -> Counterfactual:
    """A result of the library itself."""
    data = butfor.datasets.tree_cycles(seed=0)
    model = butfor.models.PaperGCN(data.num_features, 2)
    butfor.models.train(model, data, epochs=100, lr=0.01)
    return next(result for result in butfor.explain(model, data, range(600, 640)) if result.found)


@pytest.fixture
def result_of(real: Counterfactual) -> Callable[..., Counterfactual]:
    """Makes results for graphs of which no model knows: these edges removed, of a neighbourhood of so many hops."""

    def make(
        target: int, removed: list[tuple[int, int]], look: Appearance, hops: int | None = None, **more: Any
    ) -> Counterfactual:
        graph, context = look.graph, look.context
        near = graph.neighbourhood(target, hops)
        links = {(u, v) if graph.directed else (min(u, v), max(u, v)) for u, v in near.edge_index.T.tolist()}
        label = int(context.classes[target])
        fields = {
            "target": target,
            "status": Status.FOUND if removed else Status.IMPOSSIBLE,
            "before": Prediction(label, context.class_names[label], 0.9),
            "after": Prediction(1, context.class_names[1], 0.7) if removed else None,
            "edits": tuple(Deletion(u, v) for u, v in removed),
            "cost": float(len(removed)),
            "lower_bound": 1.0,
            "nodes": near.num_nodes,
            "edges": sum(u != v for u, v in links),
            "directed": graph.directed,
            "hops": hops,
        }
        return replace(real, **{**fields, **more})

    return make
