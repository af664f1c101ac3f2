"""Subgraph explainers turned into counterfactuals: remove what they call most important."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from butfor.copies import Copies
from butfor.edits import pack
from butfor.errors import InputError, ModelError
from butfor.methods.base import Method
from butfor.problem import Proposal
from butfor.untouched import untouched

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.problem import Budget, Problem

__all__ = ["RemoveSubgraph"]


@dataclass(frozen=True, repr=False)
class RemoveSubgraph(Method):
    """The paper's GNNExplainer baseline, for any explainer of PyG: remove its ``size`` top edges.

    Both directions of an undirected edge count as one, scored by the sum of their masks.

    Attributes:
        explainer: a PyG explainer algorithm; None for ``GNNExplainer(epochs, lr)``. Each target gets a
            copy of its own, so nothing is carried from one to the next.
        size: S, how many edges to remove, or "ground-truth" for the number of edges in the motif.
        epochs: of the default explainer.
        lr: of the default explainer.
    """

    explainer: ExplainerAlgorithm | None = None
    size: int | Literal["ground-truth"] = "ground-truth"
    epochs: int = 100
    lr: float = 0.01

    def __repr__(self) -> str:
        # A file of results belongs to one method, so its settings must be told: PyG's own repr hides them.
        explainer = "None"
        if self.explainer is not None:
            plain = {
                name: value for name, value in vars(self.explainer).items() if isinstance(value, (int, float, str))
            }
            settings = ", ".join(f"{name}={value!r}" for name, value in plain.items() if name != "training")
            explainer = f"{type(self.explainer).__name__}({settings})"
        return f"RemoveSubgraph(explainer={explainer}, size={self.size!r}, epochs={self.epochs}, lr={self.lr})"

    def __post_init__(self) -> None:
        if self.size != "ground-truth" and (not isinstance(self.size, int) or self.size < 1):
            raise InputError(f"size is {self.size!r}; give a positive number of edges or 'ground-truth'")
        if self.epochs < 1:
            raise InputError(f"epochs is {self.epochs}; at least 1 is needed")

    def solve(self, problem: Problem, budget: Budget) -> Proposal:  # noqa: ARG002
        """Explain, rank, remove, ask once."""
        scores = self._scores(problem)
        order = np.lexsort([np.arange(len(scores)), -scores])
        chosen = sorted(order[np.isfinite(scores[order])][: self._size(problem)].tolist())
        if not chosen:
            return Proposal((), problem.least_cost)
        reached = problem.ask([chosen]).reached[0]
        return Proposal((tuple(chosen),) if reached else (), problem.least_cost, evaluations=1)

    def _size(self, problem: Problem) -> int:
        if self.size != "ground-truth":
            return self.size
        size = getattr(problem.graph.data, "motif_size", None)
        if size is None:
            raise InputError(
                "size='ground-truth' needs a graph whose motifs are known (data.motif_size); give a number"
            )
        return int(size)

    def _scores(self, problem: Problem) -> NDArray[np.float64]:
        from torch_geometric.explain import Explainer, GNNExplainer

        predictor = problem.predictor
        if problem.graph.types is not None or (predictor.task == "link" and "edge_label_index" not in predictor.takes):
            raise InputError(
                "RemoveSubgraph asks one of PyG's explainers, which want a graph of one type and a model that can be "
                "called as model(x, edge_index, ...); use Greedy or Exact"
            )
        # PyG's explainers leave marks on the layers they explain, so they get a copy of the model.
        model = copy.deepcopy(predictor.model).eval()
        algorithm = copy.deepcopy(self.explainer) or GNNExplainer(epochs=self.epochs, lr=self.lr)
        near = problem.edits.neighbourhood
        copies = Copies.of([(problem.edits, pack([()]))])
        # The explainer sees every edge of the neighbourhood, also those that cannot matter.
        inputs = predictor.inputs(replace(copies, edge_index=near.edge_index, columns=near.edges))
        more: dict[str, Any] = {"index": int(inputs.centres[0, 0])} if predictor.task == "node" else {}
        if predictor.task == "link":
            more = {"edge_label_index": inputs.centres.T, "index": 0}
        if predictor.wants_batch:
            more["batch"] = inputs.batch
        explainer = Explainer(
            model,
            algorithm,
            explanation_type="model",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification" if predictor.threshold is None else "regression",
                "task_level": "edge" if predictor.task == "link" else predictor.task,
                "return_type": "probs" if predictor.probabilities else "raw",
            },
        )
        with untouched(model), torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.generator().initial_seed())
            explanation = explainer(inputs.x, inputs.edge_index, **inputs.fields, **more)
        mask = explanation.get("edge_mask")
        if mask is None:
            raise ModelError(f"{type(algorithm).__name__} gives no edge mask, so there are no edges to rank")
        scores = np.zeros(len(problem.edits) + 1)
        np.add.at(scores, problem.edits.edit_of, mask.detach().cpu().double().numpy())
        # A mask says nothing of edges that are not there, nor of features.
        return np.where(problem.edits.deletes, scores[:-1], -np.inf)
