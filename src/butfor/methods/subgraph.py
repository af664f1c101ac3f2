"""Subgraph explainers turned into counterfactuals: remove what they call most important."""

from __future__ import annotations

import copy
import hashlib
import logging
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from butfor.copies import Copies
from butfor.edits import pack
from butfor.errors import InputError, ModelError
from butfor.methods.base import Method
from butfor.models import fingerprint
from butfor.problem import Proposal
from butfor.untouched import untouched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch_geometric.explain import Explainer, ExplainerAlgorithm

    from butfor.problem import Budget, Problem

    # What one explainer said about one model, by all that it read.
    Memory = dict[tuple[nn.Module, ExplainerAlgorithm | None, str], NDArray[np.float64]]

__all__ = ["Question", "RemoveSubgraph"]


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
    """

    explainer: ExplainerAlgorithm | None = None
    size: int | Literal["ground-truth"] = "ground-truth"
    epochs: int = 100
    lr: float = 0.01
    memory: Memory | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        # A file of results belongs to one method, so its settings must be told: PyG's own repr hides them.
        explainer = "None" if self.explainer is None else _described(self.explainer)
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


@dataclass(frozen=True, eq=False)
class Question:
    """What one of PyG's explainers is asked about one target.

    Attributes:
        x: the features of the neighbourhood.
        edge_index: its edges, also those that cannot matter, self-loops last.
        arguments: what else the model is given.
        index: the row of the model's output that is explained; None for all.
        setting: how PyG is told what kind of model this is.
        lower: whether the model returns one number and the answer is that it lies below the threshold.
        columns: for each edge here its column in the neighbourhood.
    """

    x: Tensor
    edge_index: Tensor
    arguments: dict[str, Any]
    index: int | None
    setting: dict[str, str]
    lower: bool
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem) -> Question:
        """The question that a problem poses.

        Raises:
            InputError: PyG's explainers cannot be asked about such a graph or model.
        """
        predictor, near = problem.predictor, problem.edits.neighbourhood
        if problem.graph.types is not None or (predictor.task == "link" and "edge_label_index" not in predictor.takes):
            raise InputError(
                "RemoveSubgraph asks one of PyG's explainers, which want a graph of one type and a model that can be "
                "called as model(x, edge_index, ...); use Greedy or Exact"
            )
        # Layers that see to self-loops themselves put them last, and PyG does not always follow with the mask.
        columns = np.argsort(near.edge_index[0] == near.edge_index[1], kind="stable")
        copies = replace(
            Copies.of([(problem.edits, pack([()]))]),
            edge_index=near.edge_index[:, columns],
            columns=near.edges[columns],
        )
        inputs = predictor.inputs(copies)
        arguments = dict(inputs.fields)
        if predictor.task == "link":
            arguments["edge_label_index"] = inputs.centres.T
        if predictor.wants_batch:
            arguments["batch"] = inputs.batch
        index = None if predictor.task == "graph" else 0 if predictor.task == "link" else int(inputs.centres[0, 0])
        setting = {
            "mode": "multiclass_classification" if predictor.threshold is None else "regression",
            "task_level": "edge" if predictor.task == "link" else predictor.task,
            "return_type": "probs" if predictor.probabilities else "raw",
        }
        lower = predictor.threshold is not None and problem.before == 0
        return cls(inputs.x, inputs.edge_index, arguments, index, setting, lower, columns)

    def digest(self, model: nn.Module, algorithm: ExplainerAlgorithm, seed: int) -> str:
        """A hash of all that the answer depends on, as far as model and explainer show it."""
        # The coefficients of a class are shared by its instances, and changed by whoever makes one with others.
        explainer = _described(algorithm), _weights(algorithm), getattr(algorithm, "coeffs", None)
        digest = hashlib.sha256(
            repr((fingerprint(model), explainer, seed, self.index, self.setting, self.lower)).encode()
        )
        for name, value in {"x": self.x, "edge_index": self.edge_index, **self.arguments}.items():
            digest.update(f"\0{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def explainer(self, algorithm: ExplainerAlgorithm, model: nn.Module) -> Explainer:
        """PyG's explainer with this algorithm, which is changed, and this model, which is marked.

        Raises:
            InputError: the algorithm does not support such questions.
        """
        from torch_geometric.explain import Explainer

        with _overheard() as reasons:
            for kind in ("model", "phenomenon"):
                try:
                    return Explainer(
                        _Called(model, tuple(self.arguments), self.lower),
                        algorithm,
                        explanation_type=kind,
                        edge_mask_type="object",
                        model_config=self.setting,
                    )
                except ValueError as error:
                    refusal = str(error)
        name, level, why = type(algorithm).__name__, self.setting["task_level"], dict.fromkeys(reasons)
        raise InputError(
            f"{name} cannot be asked to explain this {level}-level prediction: {'; '.join(why) or refusal}"
        )

    def ask(self, algorithm: ExplainerAlgorithm, model: nn.Module, seed: int) -> NDArray[np.float64]:
        """The mask of each column of the neighbourhood.

        Raises:
            InputError: the algorithm does not support such questions, or it has not been trained.
            ModelError: it fails on this model, or gives no mask of edges.
        """
        from torch_geometric.explain import CaptumExplainer

        # PyG's explainers leave marks on the layers they explain, and keep what they did last.
        model, algorithm = copy.deepcopy(model).eval(), copy.deepcopy(algorithm)
        explainer = self.explainer(algorithm, model)
        # Captum's hooks want gradients everywhere, also before the first edge comes into play.
        x = (
            self.x.clone().requires_grad_()
            if isinstance(algorithm, CaptumExplainer) and self.x.is_floating_point()
            else self.x
        )
        with untouched(model), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # And it tells of every one that it sets.
            warnings.filterwarnings("ignore", module=r"captum\.")
            torch.manual_seed(seed)
            try:
                explanation = explainer(x, self.edge_index, **self.target(explainer), **self._given)
            except Exception as error:
                raise _failure(algorithm, model, error) from error
        mask = explanation.get("edge_mask")
        if mask is None:
            raise ModelError(f"{type(algorithm).__name__} gives no edge mask, so there are no edges to rank")
        values = np.empty(len(self.columns))
        values[self.columns] = mask.detach().cpu().double().numpy()
        return values

    @property
    def _given(self) -> dict[str, Any]:
        return self.arguments if self.index is None else {**self.arguments, "index": self.index}

    def target(self, explainer: Explainer) -> dict[str, Tensor]:
        """What a phenomenon is: here also what the model predicts."""
        if explainer.explanation_type.value == "model":
            return {}
        prediction = explainer.get_prediction(self.x, self.edge_index, **self.arguments)
        return {"target": explainer.get_target(prediction)}


class _Called(nn.Module):
    """A model that can be called with its further arguments by position, as Captum does, whatever their places are.

    The number of a model that returns one is turned around where it lies below the threshold: explainers tell what
    makes it large, and the question is what keeps it where it is.
    """

    def __init__(self, model: nn.Module, names: tuple[str, ...], lower: bool) -> None:
        super().__init__()
        self.model, self.names, self.lower = model, names, lower

    def forward(self, x: Tensor, edge_index: Tensor, *values: Any, **named: Any) -> Tensor:
        out: Tensor = self.model(x, edge_index, **dict(zip(self.names, values, strict=False)), **named)
        return -out if self.lower else out


def _described(explainer: ExplainerAlgorithm) -> str:
    """An explainer with its settings and, where it has learnt something, a fingerprint of that."""
    from torch_geometric.explain import ExplainerAlgorithm

    if type(explainer).__repr__ is not ExplainerAlgorithm.__repr__:
        return repr(explainer)
    settings: dict[str, object] = {}
    for name, value in vars(explainer).items():
        if isinstance(value, (int, float, str)) and name != "training" and not name.startswith("_"):
            settings[name] = value
        elif isinstance(value, type):  # Captum's method, whose own settings are in kwargs
            settings[name] = value.__name__
        elif name == "kwargs" and value:
            settings[name] = value
    if next(explainer.parameters(), None) is not None:
        settings["weights"] = _weights(explainer)
    return f"{type(explainer).__name__}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"


def _weights(explainer: ExplainerAlgorithm) -> str | None:
    """A fingerprint of what an explainer has learnt; None where it has not begun to."""
    return None if any(map(is_lazy, explainer.parameters())) else fingerprint(explainer)


def _failure(algorithm: ExplainerAlgorithm, model: nn.Module, error: Exception) -> InputError | ModelError:
    from torch_geometric.explain import PGExplainer

    what = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(algorithm, PGExplainer) and isinstance(error, ValueError):
        return InputError(
            f"{what} Or let butfor do it: butfor.paper.explainers.trained_pg_explainer(model, data) gives one that is"
        )
    return ModelError(f"{type(algorithm).__name__} cannot explain {type(model).__name__}: {what}")


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What PyG logs meanwhile; it is kept from the user's log, as a refusal of one kind of question is no error."""
    said: list[str] = []
    me = threading.get_ident()

    def listen(record: logging.LogRecord) -> bool:
        if record.thread == me:
            said.append(record.getMessage())
        return record.thread != me

    root = logging.getLogger()
    # Without any handler, logging.error would set up logging for the whole program.
    silent = logging.NullHandler()
    root.addHandler(silent)
    root.addFilter(listen)
    try:
        yield said
    finally:
        root.removeFilter(listen)
        root.removeHandler(silent)
