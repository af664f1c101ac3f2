"""What makes a run: two of the same give the same results."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from butfor.graph.edge_keys import TargetType
    from butfor.methods import Method
    from butfor.problem.goal import Goal
    from butfor.problem.method_record import MethodRecord
    from butfor.result.counterfactual import Counterfactual
    from butfor.session import Session

__all__ = ["Run", "RunOfGraphs"]


@dataclass(frozen=True)
class Run:
    """What all results of one file have in common.

    It is not written down by itself: every result repeats it, and `difference` compares. The budget is not part of it:
    it says when to stop, not what is asked. `Run.of` makes one from a session and a method.

    Attributes:
        graph_id: the graph's fingerprint.
        model_id: the model's fingerprint.
        method: the method and its hyper-parameters.
        goal: what counts as another prediction.
        space_id: the fingerprint of what may be edited.
        seed: of methods that draw random numbers.
        directed: whether the graph is read as directed.
        task: "node", "link" or "graph".
        node_type: in a graph of several node types, that of the targets.
        defaults: the default of each hyper-parameter, for results of versions that did not have it yet.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.runs import Run
        >>> session = butfor.prepare(model, data)
        >>> run = Run.of(session, butfor.Greedy())
        >>> print(run.difference(session.explain(597, butfor.Greedy())))
        None
        >>> print(run.difference(session.explain(597, butfor.KeepEgo())))
        another method (KeepEgo() instead of Greedy(width=64))
    """

    graph_id: str
    model_id: str
    method: MethodRecord
    goal: Goal
    space_id: str
    seed: int
    directed: bool
    task: str = "node"
    node_type: TargetType | None = None
    defaults: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, session: Session, method: Method, seed: int = 0) -> Run:
        """The run that the results of this session and method will belong to."""
        return cls(
            graph_id=session.graph_id,
            model_id=session.model_id,
            method=method.record(),
            goal=session.goal,
            space_id=session.space_id,
            seed=seed,
            directed=session.graph.directed,
            task=session.predictor.task,
            node_type=session.predictor.node_type,
            defaults=method.default_settings(),
        )

    def difference(self, result: Counterfactual) -> str | None:
        """What shows that a result belongs to another run, in words; None if it may belong to this one."""
        words = {
            "graph_id": "graph",
            "model_id": "model",
            "space_id": "edit space",
            "directed": "reading of the graph (directed or not)",
            "node_type": "node type",
        }
        for item in fields(self):
            if not item.compare:
                continue
            theirs, ours = getattr(result, item.name), getattr(self, item.name)
            if item.name == "method" and theirs.name == ours.name:
                # A result of an earlier version lacks settings that did not exist then.
                theirs = replace(theirs, settings={**self.defaults, **theirs.settings})
                ours = replace(ours, settings={**self.defaults, **ours.settings})
            if theirs != ours:
                return f"another {words.get(item.name, item.name)} ({_shown(theirs)} instead of {_shown(ours)})"
        return None


@dataclass(frozen=True, eq=False)
class RunOfGraphs:
    """What the results of one file have in common where several graphs are explained, each as a whole.

    Each result must belong to the graph whose number it has. A graph is checked only when such a result comes up.

    Attributes:
        first: the run of any of the graphs.
        graphs: all graphs, including those that are not explained.
        directed: whether they are directed; by default this is found out for each graph.

    Examples:
        >>> import butfor
        >>> from butfor.runs import Run, RunOfGraphs
        >>> graphs = butfor.datasets.ba_2motifs(graphs=4)
        >>> model = butfor.models.GraphClassifier(num_features=10, num_classes=2).eval()
        >>> method = butfor.Greedy()
        >>> first = Run.of(butfor.prepare(model, graphs[0], task="graph"), method)
        >>> results = butfor.explain(model, graphs, method=method)
        >>> [RunOfGraphs(first, graphs).difference(result) for result in results]
        [None, None, None, None]
    """

    first: Run
    graphs: Sequence[Data]
    directed: bool | None = None

    def difference(self, result: Counterfactual) -> str | None:
        """What shows that a result belongs to another run, in words; None if it may belong to this one."""
        number = result.target
        if result.task != "graph" or isinstance(number, tuple):
            return self.first.difference(result)
        if not 0 <= number < len(self.graphs):
            return f"other graphs ({result.target_name} instead of 0 to {len(self.graphs) - 1})"
        from butfor.graph.graph import Graph  # imported here because it is slow to import

        graph = Graph.of(self.graphs[number], self.directed)
        difference = replace(self.first, graph_id=graph.fingerprint(), directed=graph.directed).difference(result)
        return None if difference is None else f"{difference}: {result.target_name}"


def _shown(value: object) -> str:
    # The default edit space has an empty fingerprint, and a graph of one node type has no node type.
    return str(value) if value not in ("", None) else "none"
