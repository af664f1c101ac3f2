"""Subgraph explainers turned into counterfactuals: remove what they call most important."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from butfor.boundary.arguments import is_whole
from butfor.errors import InputError
from butfor.methods.base import Method
from butfor.methods.explainer_masks import Question, described
from butfor.problem.proposal import Proposal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.problem.problem import Problem

    # What one explainer said about one model, by all that it read.
    Memory = dict[tuple[nn.Module, ExplainerAlgorithm | None, str], NDArray[np.float64]]

__all__ = ["RemoveSubgraph"]


@dataclass(frozen=True, repr=False)
class RemoveSubgraph(Method):
    """The paper's GNNExplainer baseline, for any explainer of PyG: remove its ``size`` top edges.

    Both directions of an undirected edge count as one, scored by the sum of their masks. Edges are ranked by signed
    value: GNNExplainer's masks are never negative, but an attribution of Captum's is where an edge speaks against the
    predicted class, and to remove that edge would only confirm it. (Captum's Saliency drops the sign itself.)

    The explainer is asked for the model's own prediction, as explanation type "model", or as "phenomenon" with the
    predicted class as target where it knows no other (PGExplainer, which must have been trained:
    `butfor.paper.explainers.trained_pg_explainer`).

    Attributes:
        explainer: a PyG explainer algorithm; None for ``GNNExplainer(epochs, lr)``. Each target gets a
            copy of its own, so nothing is carried from one to the next.
        size: S, how many edges to remove, or "ground-truth" for the number of edges in the motif.
        epochs: of the default explainer.
        lr: of the default explainer.
        memory: a dictionary to keep masks in, which are the same for every size: methods that are given the same one
            ask each explainer once per target. A mask is found again only for the same model and explainer objects
            with unchanged weights and plain settings, the same inputs (features, edges and fields around the target)
            and the same seed; the edit space and the goal have no part in it. What is not noticed is a change to
            anything else that the same object holds, such as a function put in place of another.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from torch_geometric.explain import CaptumExplainer
        >>> method = butfor.RemoveSubgraph(CaptumExplainer("IntegratedGradients"), size=2)
        >>> print(butfor.explain(model, data, 511, method))
        Node 511 is predicted 'motif' (0.87). But for these 2 of its 23 edges it would be 'base' (0.93):
            512–513, 515–516.
        >>> butfor.RemoveSubgraph(size=4, epochs=50)  # the four best edges of GNNExplainer
        RemoveSubgraph(explainer=None, size=4, epochs=50, lr=0.01)
    """

    explainer: ExplainerAlgorithm | None = None
    size: int | Literal["ground-truth"] = "ground-truth"
    epochs: int = 100
    lr: float = 0.01
    memory: Memory | None = field(default=None, compare=False, repr=False)

    def settings(self) -> dict[str, Any]:
        """The hyper-parameters as plain data; PyG's own repr of an explainer hides its settings."""
        explainer = None if self.explainer is None else described(self.explainer)
        return {**super().settings(), "explainer": explainer}

    def __repr__(self) -> str:
        told = {name: value if name == "explainer" else repr(value) for name, value in self.settings().items()}
        return f"RemoveSubgraph({', '.join(f'{name}={value}' for name, value in told.items())})"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size != "ground-truth" and not (is_whole(self.size) and self.size >= 1):
            raise InputError(f"size is {self.size!r}; give a positive number of edges or 'ground-truth'")
        from torch_geometric.explain import ExplainerAlgorithm

        if self.explainer is not None and not isinstance(self.explainer, ExplainerAlgorithm):
            raise InputError(f"explainer is {self.explainer!r}; give one of PyG's algorithms, such as GNNExplainer()")
        if self.memory is not None and not isinstance(self.memory, dict):
            raise InputError(f"memory is {self.memory!r}; give a dictionary, or None")
        if self.epochs < 1:
            raise InputError(f"epochs is {self.epochs}; at least 1 is needed")

    def solve(self, problem: Problem) -> Proposal:
        """Explain, rank, remove, ask once."""
        scores = self._scores(problem)
        order = np.lexsort([np.arange(len(scores)), -scores])
        chosen = sorted(order[np.isfinite(scores[order])][: self._size(problem)].tolist())
        if not chosen:
            return Proposal((), problem.least_cost)
        reached = problem.ask([chosen]).reached[0]
        return Proposal((tuple(chosen),) if reached else (), problem.least_cost)

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
        scores = np.zeros(len(problem.edits) + 1)
        np.add.at(scores, problem.edits.edit_of, self._mask(problem))
        # A mask says nothing of edges that are not there, nor of features.
        return np.where(problem.edits.deletes, scores[:-1], -np.inf)

    def _mask(self, problem: Problem) -> NDArray[np.float64]:
        """What the explainer says of each edge of the neighbourhood, now or when it was asked before."""
        from torch_geometric.explain import GNNExplainer

        question, model = Question.of(problem), problem.predictor.model
        algorithm = GNNExplainer(epochs=self.epochs, lr=self.lr) if self.explainer is None else self.explainer
        seed = problem.generator().initial_seed()
        if self.memory is None:
            return question.ask(algorithm, model, seed)
        # The model itself is part of the key, for what its fingerprint does not see; modules are equal by identity.
        key = (model, self.explainer, question.digest(model, algorithm, seed))
        if key not in self.memory:
            self.memory[key] = question.ask(algorithm, model, seed)
        return self.memory[key]
