"""Putting a problem to one of PyG's explainers: what it is asked, and what it makes of the edges."""

from __future__ import annotations

import copy
import hashlib
import logging
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from butfor.edits.edits import pack
from butfor.errors import InputError, ModelError
from butfor.graph.fingerprint import add_tensors, model_fingerprint
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch_geometric.explain import Explainer, ExplainerAlgorithm

    from butfor.graph.edge_keys import Relation, TargetType
    from butfor.predict.predictor import Predictor
    from butfor.problem.problem import Problem

__all__ = ["Question", "described"]


SIDE_BY_SIDE = (
    "RemoveSubgraph asks one of PyG's explainers, which mask edges of several types only in layers that have one for "
    "each relation, as HeteroConv and to_hetero make them; use Greedy or Exact"
)


@dataclass(frozen=True, eq=False)
class Question:
    """What one of PyG's explainers is asked about one target.

    Attributes:
        x: the features of the neighbourhood; in a graph of several node types by type, and so are edges.
        edge_index: its edges, also those that cannot matter, self-loops last.
        arguments: what else the model is given.
        node_type: in a graph of several node types, the type of the target.
        relations: in such a graph, the relations that are explained: PyG refuses to mask those that do not matter.
        index: the row of the model's output that is explained; None for all.
        setting: how PyG is told what kind of model this is.
        lower: whether the model returns one number and the answer is that it lies below the threshold.
        columns: for each edge that is explained its column in the neighbourhood.
        num_columns: how many columns that has.
    """

    x: Any
    edge_index: Any
    arguments: dict[str, Any]
    index: int | None
    setting: dict[str, str]
    lower: bool
    columns: NDArray[np.int64]
    num_columns: int
    node_type: TargetType | None = None
    relations: tuple[Relation, ...] = ()

    @classmethod
    def of(cls, problem: Problem) -> Question:
        """The question that a problem poses.

        Raises:
            InputError: PyG's explainers cannot be asked about such a graph or model.
        """
        predictor, near = problem.predictor, problem.edits.neighbourhood
        if predictor.task == "link" and "edge_label_index" not in predictor.call.takes:
            raise InputError(
                "RemoveSubgraph asks one of PyG's explainers, which want a model that can be called as "
                "model(x, edge_index, ...); use Greedy or Exact"
            )
        # Layers that see to self-loops themselves put them last, and PyG does not always follow with the mask.
        columns = np.argsort(near.edge_index[0] == near.edge_index[1], kind="stable")
        edited = replace(
            EditedBatch.of([(problem.edits, pack([()]))]),
            edge_index=near.edge_index[:, columns],
            columns=near.columns[columns],
        )
        inputs = predictor.call.inputs(edited)
        arguments = dict(inputs.fields)
        if predictor.task == "link":
            arguments["edge_label_index"] = inputs.target_rows.T
        if predictor.call.wants_batch:
            arguments[predictor.call.batch_name] = inputs.batch
        index = None if predictor.task == "graph" else 0 if predictor.task == "link" else int(inputs.target_rows[0, 0])
        setting = {
            "mode": "multiclass_classification" if predictor.threshold is None else "regression",
            "task_level": "edge" if predictor.task == "link" else predictor.task,
            "return_type": "probs" if predictor.probabilities else "raw",
        }
        lower = predictor.threshold is not None and problem.before == 0
        relations: tuple[Relation, ...] = ()
        if problem.graph.types is not None:
            types = problem.graph.types
            kinds = np.searchsorted(types.edge_starts, edited.columns, side="right") - 1
            matter = [kind for kind in np.unique(kinds).tolist() if _matters(predictor, edited, kinds == kind)]
            relations = tuple(types.relations[kind] for kind in matter)
            # The masks will come relation by relation.
            columns = np.concatenate([columns[:0], *(columns[kinds == kind] for kind in matter)])
        return cls(
            x=inputs.x,
            edge_index=inputs.edge_index,
            arguments=arguments,
            index=index,
            setting=setting,
            lower=lower,
            columns=columns,
            num_columns=near.num_columns,
            node_type=predictor.node_type,
            relations=relations,
        )

    def digest(self, model: nn.Module, algorithm: ExplainerAlgorithm, seed: int) -> str:
        """A hash of all that the answer depends on, as far as model and explainer show it."""
        # The coefficients of a class are shared by its instances, and changed by whoever makes one with others.
        explainer = described(algorithm), _weights(algorithm), getattr(algorithm, "coeffs", None)
        digest = hashlib.sha256(
            repr((model_fingerprint(model), explainer, seed, self.index, self.setting, self.lower)).encode()
        )
        add_tensors(digest, _flat({"x": self.x, "edge_index": self.edge_index, **self.arguments}))
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
                        _Called(model, tuple(self.arguments), self.lower, self.node_type, self.edge_index),
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

        values = np.zeros(self.num_columns)
        if not len(self.columns):
            return values
        # PyG's explainers leave marks on the layers they explain, and keep what they did last.
        model, algorithm = copy.deepcopy(model).eval(), copy.deepcopy(algorithm)
        explainer = self.explainer(algorithm, model)
        # Captum's hooks want gradients everywhere, also before the first edge comes into play.
        x = _with_gradients(self.x) if isinstance(algorithm, CaptumExplainer) else self.x
        with preserved(model), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # And it tells of every one that it sets.
            warnings.filterwarnings("ignore", module=r"captum\.")
            torch.manual_seed(seed)
            try:
                explanation = explainer(x, self._edges, **self.target(explainer), **self._given)
            except Exception as error:
                if isinstance(self.x, dict) and "does not require grad" in str(error):
                    raise InputError(SIDE_BY_SIDE) from error
                raise _failure(algorithm, model, error) from error
        mask = _mask(explanation, self._edges)
        if mask is None:
            raise ModelError(f"{type(algorithm).__name__} gives no edge mask, so there are no edges to rank")
        values[self.columns] = mask.detach().cpu().double().numpy()
        return values

    @property
    def _edges(self) -> Any:
        """The edges that are explained."""
        if not isinstance(self.edge_index, dict):
            return self.edge_index
        return {relation: self.edge_index[relation] for relation in self.relations}

    @property
    def _given(self) -> dict[str, Any]:
        return self.arguments if self.index is None else {**self.arguments, "index": self.index}

    def target(self, explainer: Explainer) -> dict[str, Tensor]:
        """What a phenomenon is: here also what the model predicts."""
        if explainer.explanation_type.value == "model":
            return {}
        prediction = explainer.get_prediction(self.x, self._edges, **self.arguments)
        return {"target": explainer.get_target(prediction)}


class _Called(nn.Module):
    """A model that can be called with its further arguments by position, as Captum does, whatever their places are.

    The number of a model that returns one is turned around where it lies below the threshold: explainers tell what
    makes it large, and the question is what keeps it where it is.
    """

    def __init__(
        self, model: nn.Module, names: tuple[str, ...], lower: bool, node_type: TargetType | None, edges: Any
    ) -> None:
        super().__init__()
        self.model, self.names, self.lower, self.node_type, self.edges = model, names, lower, node_type, edges

    def forward(self, x: Any, edge_index: Any, *values: Any, **named: Any) -> Tensor:
        if isinstance(edge_index, dict):
            # With the relations that are not explained, in the order of the graph.
            edge_index = {relation: edge_index.get(relation, ends) for relation, ends in self.edges.items()}
        out: Any = self.model(x, edge_index, **dict(zip(self.names, values, strict=False)), **named)
        scores: Tensor = out[self.node_type] if isinstance(out, dict) else out
        return -scores if self.lower else scores


def _matters(predictor: Predictor, edited: EditedBatch, columns: NDArray[np.bool_]) -> bool:
    """Whether the model says anything else without these columns."""
    without = replace(edited, edge_index=edited.edge_index[:, ~columns], columns=edited.columns[~columns])
    with preserved(predictor.model), torch.no_grad():
        try:
            return not torch.equal(predictor(edited), predictor(without))
        except ModelError:
            return True


def _flat(tensors: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors by their names; those of a dictionary by its name and their keys."""
    flat: dict[str, Tensor] = {}
    for name, value in tensors.items():
        flat |= {f"{name}{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _with_gradients(x: Any) -> Any:
    if isinstance(x, dict):
        return {kind: _with_gradients(features) for kind, features in x.items()}
    return x.clone().requires_grad_() if x.is_floating_point() else x


def _mask(explanation: Any, edge_index: Any) -> Tensor | None:
    """The mask of all edges, relation by relation; None if there is none."""
    if not isinstance(edge_index, dict):
        found: Tensor | None = explanation.get("edge_mask")
        return found
    masks = explanation.collect("edge_mask", True)
    return torch.cat([masks[relation] for relation in edge_index]) if set(masks) == set(edge_index) else None


def described(explainer: ExplainerAlgorithm) -> str:
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
    return None if any(map(is_lazy, explainer.parameters())) else model_fingerprint(explainer)


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
