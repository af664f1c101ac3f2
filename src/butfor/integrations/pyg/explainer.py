"""The algorithm that PyG's ``Explainer`` runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import Explanation, HeteroExplanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import ExplanationType, MaskType, ModelMode, ModelReturnType, ModelTaskLevel

from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.errors import InputError, ModelError
from butfor.integrations.pyg.arguments import Arguments, call, chosen_rows
from butfor.integrations.pyg.parts import Part, check_batch
from butfor.problem.goal import Goal
from butfor.problem.target import target_nodes
from butfor.session import Session, check_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.graph.edge_keys import TargetType
    from butfor.graph.graph import Graph
    from butfor.methods import Method
    from butfor.predict.call import Task
    from butfor.problem.budget import Budget
    from butfor.problem.target import Target
    from butfor.result.counterfactual import Counterfactual

__all__ = ["CounterfactualExplainer"]

# How far the outputs of PyG's call of the model and of ours may differ: by this much, or by this many times the machine
# epsilon of their dtype.
TOLERANCE = 1e-4
EPSILONS = 16

TASKS: dict[Any, Task] = {ModelTaskLevel.node: "node", ModelTaskLevel.edge: "link", ModelTaskLevel.graph: "graph"}


class CounterfactualExplainer(ExplainerAlgorithm):  # type: ignore[misc]  # PyG is not typed
    """The fewest edits that change a prediction, as an explanation of PyG.

    The explanation's ``edge_mask`` is 1 on every removed edge (all its copies and, in an undirected graph, both
    directions) and 0 elsewhere. So ``get_explanation_subgraph()`` holds the removed edges, and the model really gives
    another answer on ``get_complement_subgraph()``. Where nothing was found the mask is 0 everywhere, and
    ``explanation.counterfactual.status`` says why.

    * ``explanation.counterfactual`` is the `Counterfactual`, if one output of the model was explained.
    * ``explanation.counterfactuals`` holds all counterfactuals by their ``index``. If there are several, the masks mark
      what is in at least one of them. Each result holds for its own index, and the complement need not change all of
      them. ``index=None`` means every output, as everywhere in PyG.

    Masks cannot show added edges. Changed features are 1 in ``node_mask``, if PyG is configured to have one. With
    ``node_mask_type="attributes"`` it marks each changed feature; with "object" it is a column that marks the nodes at
    which any feature changed; with "common_attributes" it is a row that marks the features that changed at any node.
    PyG's subgraphs then leave out whole nodes. In both cases, read the result instead.

    PyG's ``task_level`` says what is explained: a node; an "edge", which is a column of the argument
    ``edge_label_index``; or a graph. The graphs of a batch are explained one by one, and the nodes that a result or an
    `EditSpace` names are counted from the first node of their graph. A model may be given ``batch`` and
    ``edge_label_index`` at the other levels too. PyG's ``threshold_config`` changes the masks. Leave it out: one with
    "topk" may drop a part of the answer.

    Args:
        method: the search method; by default `Exact`.
        goal: what counts as another prediction. If the model returns one number, ``goal.threshold`` separates its two
            classes; for ``binary_classification`` it is by default 0 for raw outputs and 0.5 for probabilities.
        space: which edits are allowed; by default the deletion of any edge.
        budget: what may be spent on each target.
        directed: whether the graph is directed; by default this is found out from the graph.
        node_type: in a graph of several node types, the type that is predicted; by default the only type with as many
            nodes as the model has outputs. For links the types of their two ends, such as ``("user", "item")``.
        seed: the seed of methods that draw random numbers.

    Examples:
        >>> from torch_geometric.explain import Explainer
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.integrations.pyg import CounterfactualExplainer
        >>> explainer = Explainer(
        ...     model,
        ...     algorithm=CounterfactualExplainer(),
        ...     explanation_type="model",
        ...     edge_mask_type="object",
        ...     model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        ... )
        >>> explanation = explainer(data.x, data.edge_index, index=597)
        >>> print(explanation.counterfactual)
        Node 597 is predicted 'class 1' (0.85). But for this 1 of its 14 edges it would be 'class 0' (0.54):
            596–597.
        >>> explanation.get_explanation_subgraph().edge_index
        tensor([[596, 597],
                [597, 596]])
    """

    def __init__(
        self,
        *,
        method: Method | None = None,
        goal: Goal | None = None,
        space: EditSpace | None = None,
        budget: Budget | None = None,
        directed: bool | None = None,
        node_type: TargetType | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_settings(method=method, goal=goal, space=space, budget=budget)
        self.method = method
        self.goal = goal or Goal()
        self.space = space or EditSpace()
        self.budget = budget
        self.directed = directed
        self.node_type = node_type
        self.seed = seed

    def supports(self) -> bool:
        """Whether these settings can be explained; if not, the reason is logged, as PyG's algorithms do."""
        reason = self._refusal()
        if reason:
            logging.error("'%s' %s", type(self).__name__, reason)
        return not reason

    def _refusal(self) -> str:
        """Why these settings cannot be explained; nothing if they can."""
        mode, nodes = self.model_config.mode, self.explainer_config.node_mask_type
        if self.explainer_config.explanation_type != ExplanationType.model:
            return (
                "only explains what the model predicts, not what a given target says: use explanation_type='model' "
                f"(got '{self.explainer_config.explanation_type.value}')"
            )
        if self.explainer_config.edge_mask_type is None and self.space.delete:
            return (
                "deletes edges, so there must be a mask for them: use edge_mask_type='object' (got None), or allow no "
                "deletions with space=EditSpace(delete=False, ...)"
            )
        if nodes is not None and not self.space.features:
            return (
                f"changes no features (got node_mask_type='{nodes.value}'), so it has nothing to put into a node mask: "
                "leave node_mask_type out, or allow changes with space=EditSpace(features=Features(...))"
            )
        if mode == ModelMode.regression and self.goal.threshold is None:
            return (
                "needs to know where another answer begins for mode='regression': "
                "give the number with goal=Goal(threshold=...)"
            )
        if mode == ModelMode.multiclass_classification and self.goal.threshold is not None:
            return (
                "has no use for a threshold where classes have a score each: leave Goal(threshold="
                f"{self.goal.threshold:g}) out, or use mode='binary_classification' or 'regression'"
            )
        return ""

    def forward(
        self,
        model: nn.Module,
        x: Tensor | dict[str, Tensor],
        edge_index: Any,
        *,
        target: Tensor,  # noqa: ARG002 (the model is called again instead)
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation | HeteroExplanation:
        """Find a counterfactual for each index.

        Args:
            model: the model to explain.
            x: node features, by type in a graph of several types.
            edge_index: edges, by type in a graph of several types.
            target: not used, because the model's own prediction is explained.
            index: the rows of the model's output to explain; None for all.
            **kwargs: further arguments of the model.

        Raises:
            InputError: an index is out of range, or an argument cannot be carried over to an edited graph.
            ModelError: the model cannot be explained this way.
            GraphError: the graph is malformed.
        """
        task = TASKS[self.model_config.task_level]
        given = Arguments.of(model, task, x, edge_index, kwargs)
        out = call(model, task, x, edge_index, kwargs)
        wanted = chosen_rows(index, len(out), task)
        data = given.data

        jobs: list[tuple[Part, list[int], list[Target]]]
        if task == "graph" and given.batch is not None and len(out) > 1:
            check_batch(data, given.batch, len(out))
            jobs = [(Part.inside(data, given.batch, number), [number], [None]) for number in wanted]
        else:
            every = _targets(given, task, len(out))
            jobs = [(Part.whole(data), wanted, [every[number] for number in wanted])]

        results: dict[int, Counterfactual] = {}
        edge_mask = torch.zeros(data.num_edges, device=out.device)
        # By type; a graph of one type has the type None.
        node_mask = {
            kind: torch.zeros(features.shape, device=out.device)
            for kind, features in (x.items() if isinstance(x, dict) else [(None, x)])
        }
        for part, numbers, targets in jobs:
            session = self._session(given.model, part.data, out, task, numbers[0])
            found = self._results(session, targets, out[numbers])
            results |= zip(numbers, found, strict=True)
            for result in found:
                edge_mask[part.columns[_removed_columns(session.graph, result)]] = 1.0
                for change in result.changes:
                    row = change.node if isinstance(x, dict) else part.nodes[change.node]
                    node_mask[change.node_type][row, change.feature] = 1.0

        return self._explanation(data, edge_mask, node_mask, results)

    def _session(self, model: nn.Module, data: Data | HeteroData, out: Tensor, task: Task, number: int = 0) -> Session:
        single = out.dim() == 1 or out.size(1) == 1
        probabilities = self.model_config.return_type == ModelReturnType.probs
        goal = self.goal
        if self.model_config.mode == ModelMode.binary_classification and goal.threshold is None:
            if single:
                # The thresholds that PyG itself uses.
                goal = replace(goal, threshold=0.5 if probabilities else 0.0)
            elif out.size(1) > 2:
                raise InputError(
                    f"the model returns {out.size(1)} numbers for each {task}, which is no binary classification; "
                    "use mode='multiclass_classification' if they are scores of classes"
                )
        return Session.of(
            model,
            data,
            task=task,
            node_type=self._predicted_type(data, len(out)) if task == "node" else self.node_type,
            goal=goal,
            space=self.space,
            directed=self.directed,
            probabilities=probabilities and not single,
            number=number,
        )

    def _predicted_type(self, data: Data | HeteroData, rows: int) -> TargetType | None:
        if self.node_type is not None or not isinstance(data, HeteroData):
            return self.node_type
        sizes = {kind: int(data[kind].num_nodes) for kind in data.node_types}
        fits: list[str] = [kind for kind, size in sizes.items() if size == rows]
        if len(fits) == 1:
            return fits[0]
        known = ", ".join(f"{size} of '{kind}'" for kind, size in sizes.items())
        raise InputError(
            f"the model has {rows} outputs, and there are {known}: it does not follow which nodes they belong to; "
            "say so with CounterfactualExplainer(node_type=...)"
        )

    def _results(self, session: Session, targets: Sequence[Target], rows: Tensor) -> list[Counterfactual]:
        """One result for each target; ``rows`` are the outputs for these targets when PyG calls the model."""
        predictor = session.predictor
        keys = [target_nodes(target, session.graph, predictor.task, predictor.node_type) for target in targets]
        logits = predictor.intact_logits(keys)
        if predictor.threshold is not None:
            ours, given = logits[:, 1] + predictor.threshold, rows.reshape(len(rows))
        else:
            ours = logits.softmax(-1)
            given = rows / rows.sum(-1, keepdim=True) if predictor.probabilities else rows.softmax(-1)
        tolerance = max(TOLERANCE, EPSILONS * torch.finfo(rows.dtype).eps)
        if not torch.allclose(ours.double(), given.double(), rtol=tolerance, atol=tolerance):
            raise ModelError(
                f"{type(predictor.model).__name__} answers otherwise for one graph in evaluation mode than it did for "
                "PyG: it draws random numbers, or reads arguments that belong to the whole batch"
            )
        return session.explain_all(targets, self.method, self.budget, self.seed)

    def _explanation(
        self,
        data: Data | HeteroData,
        edge_mask: Tensor,
        node_mask: dict[str | None, Tensor],
        results: dict[int, Counterfactual],
    ) -> Explanation | HeteroExplanation:
        config = self.explainer_config
        kind_of_mask = config.node_mask_type
        masks = {} if kind_of_mask is None else {kind: _mask_of_type(m, kind_of_mask) for kind, m in node_mask.items()}
        if isinstance(data, HeteroData):
            parts = torch.split(edge_mask, [ends.size(1) for ends in data.edge_index_dict.values()])
            explanation = HeteroExplanation()
            if config.edge_mask_type is not None:
                explanation.set_value_dict("edge_mask", dict(zip(data.edge_types, parts, strict=True)))
            if masks:
                explanation.set_value_dict("node_mask", masks)
        else:
            explanation = Explanation()
            if config.edge_mask_type is not None:
                explanation.edge_mask = edge_mask
            if masks:
                explanation.node_mask = masks[None]
        # Not a list, because PyG takes a list with as many items as there are edges for an attribute of the edges.
        explanation.counterfactuals = results
        if len(results) == 1:
            (explanation.counterfactual,) = results.values()
        return explanation


def _targets(given: Arguments, task: Task, rows: int) -> Sequence[Target]:
    """The target of each row of the model's output."""
    if task != "link":
        return range(rows) if task == "node" else [None] * rows
    pairs = given.pairs or []
    if len(pairs) != rows:
        raise ModelError(f"the model returns {rows} rows for {len(pairs)} pairs of nodes; one each is needed")
    return pairs


def _mask_of_type(mask: Tensor, kind: MaskType) -> Tensor:
    """A mask of single features, converted to the type of mask that PyG was configured to use."""
    if kind == MaskType.attributes:
        return mask
    # One column for all features of a node, or one row for all nodes.
    return (mask > 0).any(1 if kind == MaskType.object else 0, keepdim=True).to(mask)


def _removed_columns(graph: Graph, result: Counterfactual) -> list[int]:
    """The columns of all removed edges, numbered relation by relation."""
    columns = []
    for edit in result.edits:
        if isinstance(edit, Deletion):
            columns += graph.columns_of(graph.edge_key(edit.edge))
    return columns
